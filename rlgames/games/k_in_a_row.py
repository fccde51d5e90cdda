"""k in a row, with or without gravity: tic-tac-toe, Connect 4, Gomoku, and boards of other sizes.

Two seats take turns. The first to have a whole line across, down or diagonally wins; a full board
is a draw. With gravity an action is a column, and the stone falls to its lowest empty cell; without
it an action is a cell, in row-major order from the top.

    . . . . . . .
    . . . X . . .      X  stones of the first seat
    . . O X . . .      O  stones of the second seat
    . O X X . . O
    1 2 3 4 5 6 7

Words: the stones of the seat to move, and all stones. Each is a set of cells, as bits. Spare bits,
which are always 0, keep lines from running over the edge. A board of 2 rows and 3 columns:

    with gravity        without             without, up to 16 cells (lines are in a table)
     2  5  8  spare
     1  4  7             0  1  2 | 3         0  1  2
     0  3  6             4  5  6 | 7         3  4  5
                               spare

On large boards without gravity a set is several words, and bit c of them is cell c.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Capability, MoverCells, SymmetricActions
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries
from rlgames.kernels.jit import jit
from rlgames.kernels.rules import Played, Position, implement, is_legal, load, play, replaced
from rlgames.kernels.words import Array, compiled

Bits: TypeAlias = Any
"""np.int64, a set of stones; numba infers more of it than mypy can."""

MAX_BITS = 62
"""The most bits of a board with gravity, spare ones included: no set is a negative number."""

MAX_TABLE_CELLS = 16
"""Up to this many cells without gravity, a table says of all sets of stones which have a line."""


class LineRules(NamedTuple):
    """Boards of at most MAX_BITS bits. cell_bits: int64 [cells], in row-major order from the top.
    board: their sum. line: the number of stones that win, or None for four: kernels are compiled by
    the types of their arguments, so four get their own code. line_table: bool [2^cells], which sets
    of stones have a line; empty on larger boards. stride: bits per column with gravity, per row
    without. bottom: the lowest cells, and piles: int64 [columns], the cells of each column, the
    central ones first; with gravity only."""

    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    board: int
    line: int | None
    line_table: Array
    stride: int
    has_gravity: bool
    bottom: int
    piles: Array


@compiled
def has_line(stones: Bits, line: int | None, stride: int) -> bool:
    """Whether the stones contain a whole line."""
    if line is not None:
        return has_any_line(stones, line, stride)
    pairs = stones & stones >> 1
    fours = pairs & pairs >> 2
    for direction in range(3):
        step = stride - 1 + direction
        pairs = stones & stones >> step
        fours |= pairs & pairs >> 2 * step
    return bool(fours != 0)


@compiled
def has_any_line(stones: Bits, line: int, stride: int) -> bool:
    """The same for lines of any length."""
    for direction in range(4):
        step = 1 if direction == 3 else stride - 1 + direction
        if (line - 1) * step > MAX_BITS:
            continue
        run, length = stones, 1  # the bits where a run of this length begins
        while length < line and run:
            added = min(length, line - length)
            run &= run >> added * step
            length += added
        if run:
            return True
    return False


@compiled
def is_won(rules: LineRules, stones: Bits) -> bool:
    """Whether the stones contain a whole line, by the table if there is one."""
    if len(rules.line_table) > 0:
        return bool(rules.line_table[stones])
    return has_line(stones, rules.line, rules.stride)


@compiled
def play_line(rules: LineRules, position: Position, action: int) -> Played:
    own, occupied = position
    stone = rules.cell_bits[action]
    if rules.has_gravity:
        # Adding the bottom bit carries over the stones, into the spare bit of a full column.
        pile = ((1 << (rules.stride - 1)) - 1) << (action * rules.stride)
        stone = np.int64((occupied + (1 << (action * rules.stride))) & pile & ~occupied)
    won = is_won(rules, own | stone)
    after = (own ^ occupied, occupied | stone)
    return after, won or after[1] == rules.board, np.float32(won)


@compiled
def is_legal_line(rules: LineRules, position: Position, action: int) -> bool:
    return not position[1] & rules.cell_bits[action]  # with gravity, the bit of the top row


@compiled
def observe_line(rules: LineRules, position: Position, planes: Array) -> None:
    own, other, cells = position[0], position[0] ^ position[1], len(rules.cell_bits)
    # Two loops with one array each: the compiler turns them into vector instructions.
    for cell in range(cells):
        planes[cell] = np.float32(1) if own & rules.cell_bits[cell] else np.float32(0)
    planes = planes[cells:]
    for cell in range(cells):
        planes[cell] = np.float32(1) if other & rules.cell_bits[cell] else np.float32(0)


@compiled
def write_cells(rules: Any, position: Position, open_value: int, values: Array) -> None:
    """For both kinds of rules: a set of stones is half of the words."""
    words = len(position) // 2
    for word in range(words):
        own, occupied = position[word], position[words + word]
        reached = occupied + rules.bottom if rules.has_gravity else -1
        part, bits = values[64 * word : 64 * word + 64], rules.cell_bits[64 * word :]
        for cell in range(len(part)):
            owner = np.float32(1) if own & bits[cell] else np.float32(2)
            empty = np.float32(open_value) if reached & bits[cell] else np.float32(0)
            part[cell] = owner if occupied & bits[cell] else empty


@compiled
def set_up_line(rules: LineRules, cells: Array) -> Played:
    own, other = np.int64(0), np.int64(0)
    for cell in range(len(cells)):
        own |= rules.cell_bits[cell] * (cells[cell] == 1)
        other |= rules.cell_bits[cell] * (cells[cell] == 2)
    won = is_won(rules, other)
    return (own, own | other), won or own | other == rules.board, np.float32(won)


implement(
    LineRules,
    play=play_line,
    is_legal=is_legal_line,
    observe=observe_line,
    write_cells=write_cells,
    set_up=set_up_line,
)


def line_rules(rows: int, columns: int, line: int, gravity: bool) -> LineRules:
    """The rules of boards whose sets of stones are one number."""
    cells, size = rows * columns, rows if gravity else columns
    row, column = np.divmod(np.arange(cells), columns)
    stride = size + 1
    cell_bits = 1 << (column * stride + rows - 1 - row if gravity else row * stride + column)
    line_argument = None if line == 4 and 3 * (size + 2) <= MAX_BITS else line
    table = np.zeros(0, np.bool_)
    if not gravity and cells <= MAX_TABLE_CELLS:
        sets = ((np.arange(1 << cells)[:, None] >> np.arange(cells)) & 1) @ cell_bits
        table = np.array([has_line(stones, line_argument, stride) for stones in sets.tolist()])
        cell_bits = 1 << np.arange(cells)
    piles = [((1 << rows) - 1) << each * stride for each in range(columns)] if gravity else []
    # Cells near the center belong to more lines: solvers search them first.
    piles.sort(key=lambda pile: abs(2 * (pile.bit_length() // stride) - columns + 1))
    return LineRules(
        start=(0, 0),
        actions=columns if gravity else cells,
        cell_bits=cell_bits,
        board=int(cell_bits.sum()),
        line=line_argument,
        line_table=table,
        stride=stride,
        has_gravity=gravity,
        bottom=sum(pile & -pile for pile in piles),
        piles=np.array(piles, np.int64),
    )


class LargeRules(NamedTuple):
    """Boards without gravity that need more bits. cell_bits: int64 [cells], in its word. board: all
    cells, as a set. line: the number of stones that win."""

    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    board: tuple[int, ...]
    line: int
    rows: int
    columns: int
    has_gravity: bool = False
    bottom: int = 0


@compiled
def has_stone(position: Position, first: int, cell: int) -> bool:
    """Whether the set that begins at a word contains a cell."""
    return bool((position[first + (cell >> 6)] >> (cell & 63)) & 1)


@compiled
def run_length(rules: LargeRules, stones: Position, cell: int, down: int, right: int) -> int:
    """How many stones follow a cell in one direction."""
    row, column, length = cell // rules.columns + down, cell % rules.columns + right, 0
    while 0 <= row < rules.rows and 0 <= column < rules.columns:
        if not has_stone(stones, 0, row * rules.columns + column):
            break
        row, column, length = row + down, column + right, length + 1
    return length


@compiled
def completes_line(rules: LargeRules, stones: Position, cell: int) -> bool:
    """Whether a stone on a cell is in a line with the stones of the first half of these words."""
    longest = 0
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = run_length(rules, stones, cell, down, right)
        length += run_length(rules, stones, cell, -down, -right)
        longest = max(longest, length)
    return longest + 1 >= rules.line


@compiled
def passed(position: Position) -> Position:
    """The position of the other seat, with the same stones."""
    words, after = len(position) // 2, position
    for word in range(words):
        after = replaced(after, word, position[word] ^ position[words + word])
    return after


@compiled
def with_stone(position: Position, cell: int, first: int) -> Position:
    """The position with a cell added to the set that begins at a word."""
    word = first + (cell >> 6)
    return replaced(position, word, position[word] | (np.int64(1) << np.int64(cell & 63)))


@compiled
def play_large(rules: LargeRules, position: Position, action: int) -> Played:
    words, after, is_full = len(position) // 2, passed(position), True
    for word in range(words):
        occupied = position[words + word]
        if word == action >> 6:
            occupied |= np.int64(1) << np.int64(action & 63)
        after = replaced(after, words + word, occupied)
        is_full &= occupied == rules.board[word]
    won = completes_line(rules, position, action)
    return after, won or is_full, np.float32(won)


@compiled
def is_legal_large(rules: LargeRules, position: Position, action: int) -> bool:
    return not has_stone(position, len(position) // 2, action)


@compiled
def set_up_large(rules: LargeRules, cells: Array) -> Played:
    position, won, is_full = rules.start, False, True
    for cell in range(len(cells)):
        is_full &= cells[cell] > 0
        if cells[cell] == 2:
            won |= completes_line(rules, position, cell)
            position = with_stone(position, cell, 0)
        if cells[cell] > 0:
            position = with_stone(position, cell, len(position) // 2)
    return passed(position), won or is_full, np.float32(won)


implement(
    LargeRules,
    play=play_large,
    is_legal=is_legal_large,
    write_cells=write_cells,
    set_up=set_up_large,
)


def large_rules(rows: int, columns: int, line: int) -> LargeRules:
    """The rules of boards without gravity whose sets of stones are several numbers."""
    bits = np.int64(1) << np.arange(rows * columns) % 64
    board = tuple(int(bits[first : first + 64].sum()) for first in range(0, len(bits), 64))
    return LargeRules((0,) * (2 * len(board)), len(bits), bits, board, line, rows, columns)


@jit()
def find_wins(rules: Any, words: Array, of_other: bool, wins: Array) -> None:
    """Write which actions complete a line of the seat to move, or of the other: bool [B, A]."""
    for row in range(len(wins)):
        position = load(rules.start, words, row)
        if of_other:
            position = passed(position)
        for action in range(rules.actions):
            can_play = is_legal(rules, position, action)
            wins[row, action] = can_play and play(rules, position, action)[2] > 0


class KInARow(BoardGame, MoverCells, SymmetricActions):
    """rows × columns cells, line stones in a row win, gravity makes stones fall.

    is_large: sets of stones are several words.
    Raises ValueError for a line that is too long and for a board that needs too many bits.
    """

    shows_mover = False

    def __init__(
        self, rows: int, columns: int, line: int, gravity: bool, name: str = "lines"
    ) -> None:
        longest = max(rows, columns)
        if line > longest:
            raise ValueError(
                f"line={line} is longer than a board of {rows}x{columns}; "
                f"the longest that does is {longest}"
            )
        bits = (rows + 1) * columns if gravity else rows * (columns + 1)
        if gravity and bits > MAX_BITS:
            raise ValueError(
                f"a board of {rows}x{columns} needs {bits} bits, and {MAX_BITS} is the most"
            )
        self.rows, self.columns, self.line, self.gravity = rows, columns, line, gravity
        self.is_large = bits > MAX_BITS
        self.rules = (
            large_rules(rows, columns, line)
            if self.is_large
            else line_rules(rows, columns, line, gravity)
        )
        self.spec = Spec(
            name=name,
            seats=2,
            actions=columns if gravity else rows * columns,
            observation=(2, rows, columns),
            has_cell_actions=not gravity,
            max_plies=rows * columns,
            max_positions=count_boards(3, rows * columns),
            goal="outcome",
        )

    def lacks(self, capability: type[Capability]) -> str:
        # With gravity, one more bit for each column is enough.
        return "" if self.gravity else super().lacks(capability)

    def is_valid(self, state: BoardState) -> Tensor:
        cells = self.cells(state).flatten(1)
        stones = (cells > 0).sum(1)
        takes_turns = (state.turn == stones) & (state.current_seat == stones % 2)
        return super().is_valid(state) & takes_turns & ~self._has_gap(cells)

    def _has_gap(self, cells: Tensor) -> Tensor:
        """Bool [B]: whether a stone floats above an empty cell, though it should fall."""
        empty = (cells == 0).view(-1, self.rows, self.columns)
        return (empty[:, 1:] & ~empty[:, :-1]).flatten(1).any(1) & self.gravity

    def key(self, state: BoardState) -> Tensor:
        if not self.gravity:
            return super().key(state)
        # One more bit on top of each column marks its height.
        return state.words.sum(1) + self.rules.bottom

    def state_from_key(self, key: Tensor) -> BoardState:
        if not self.gravity:
            return super().state_from_key(key)
        shift = self.rules.stride * torch.arange(self.columns)
        columns = (key[:, None] >> shift) & (2**self.rules.stride - 1)
        shown = (columns[:, None] >> torch.arange(self.rows - 1, -1, -1)[:, None]).flatten(1)
        taken = shown > 1
        seat = taken.sum(1) % 2
        return self.state_from_cells(self._from_seats(seat, taken * (2 - shown % 2)), seat)

    def open_cells(self, state: BoardState) -> Tensor:
        """As MoverCells.open_cells."""
        return self._open_cells(state) & ~state.done[:, None, None]

    def _open_cells(self, state: BoardState) -> Tensor:
        return self._as_boards(self._written_cells(state, 3)) == 3

    def completing_actions(self, state: BoardState, of_other: bool) -> Tensor:
        """Bool [B, A]: the legal actions that complete a line of the seat to move, or of the
        other."""
        wins = torch.empty(len(state), self.spec.actions, dtype=torch.bool)
        find_wins(self.rules, state.words.numpy(), of_other, wins.numpy())
        return wins

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns, upright=self.gravity)

    def action_symmetries(self) -> Tensor:
        cells = self.symmetries()
        return cells[:, : self.columns] if self.gravity else cells

    # Text

    @property
    def how_to_play(self) -> str:
        place = (
            "a stone falls to the lowest empty cell of its column" if self.gravity else "X starts"
        )
        return f"{self.line} in a row win, across, down or diagonally; {place}"

    def action_cells(self, state: BoardState, row: int) -> Tensor | None:
        if not self.gravity:
            return super().action_cells(state, row)
        open_cells = self._open_cells(state[row : row + 1])
        return (torch.eye(self.columns).bool()[:, None] & open_cells).flatten(1)

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        if not self.gravity:
            return super().board_format
        numbers = [str(column + 1) for column in range(self.columns)]
        return games_board.BoardFormat(self.rows, self.columns, below=numbers)

    def check_parsed(self, cells: Tensor, state: BoardState, other: BoardState) -> None:
        if bool(self._has_gap(cells).any()):
            raise ValueError("a stone floats above an empty cell")
        if bool(other.score.any()):
            raise ValueError("the seat to move has a line already")

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        form = self.board_format
        if not self.gravity:
            return form.cell_name(action)
        if not form.left:
            return form.below[action]
        column = self._open_cells(state[row : row + 1])[0, :, action]
        return form.cell_name(int(column.long().argmax()) * self.columns + action)


def tictactoe(board: int, line: int) -> KInARow:
    """game=tictactoe: a square board without gravity."""
    return KInARow(board, board, line, False, "tictactoe")


def connect4(rows: int, columns: int, line: int) -> KInARow:
    """game=connect4: stones fall to the lowest empty cell of a column."""
    return KInARow(rows, columns, line, True, "connect4")


def gomoku(board: int, line: int) -> KInARow:
    """game=gomoku: a square board without gravity."""
    return KInARow(board, board, line, False, "gomoku")
