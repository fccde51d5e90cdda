"""k in a row, with or without gravity: tic-tac-toe, Connect 4, Gomoku, and boards of other sizes.

Two seats take turns. The first to have a whole line across, down or diagonally wins; a full board
is a draw. With gravity an action is a column, and the stone falls to its lowest empty cell; without
it an action is a cell, in row-major order from the top.

    . . . . . . .
    . . . X . . .      X  stones of the first seat
    . . O X . . .      O  stones of the second seat
    . O X X . . O
    1 2 3 4 5 6 7

Words: the stones of the seat to move, and all stones. Each is a set of cells, as bits. Without
gravity, bit c is cell c, and each 64 cells have their own word. With gravity, spare bits, which are
always 0, keep lines from running over the edge. A board of 2 rows and 3 columns:

     2  5  8  spare
     1  4  7
     0  3  6
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rlgames.games import board_text
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Capability, MoverCells, Symmetric
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.kernels import rules as contract
from rlgames.kernels.jit import jit
from rlgames.kernels.rules import Played, Position, implement, load, replaced
from rlgames.kernels.words import Array, compiled, first_bit, write_set

Bits: TypeAlias = Any
"""np.int64, a set of stones; numba infers more of it than mypy can."""

U = np.uint64
MAX_BITS = 62
"""The most bits of a board with gravity, spare ones included: no set is a negative number."""

NO_LINES = np.zeros((0, 0, 0), np.int64)


class LineRules(NamedTuple):
    """cell_bits: int64 [cells], in row-major order from the top, each in its word. cell_of_bit:
    int64 [64 · words], the reverse. board: all cells, as a set. line: the number of stones that
    win, or None for four with gravity: kernels are compiled by the types of their arguments, so
    four get their own code.

    Without gravity: lines: int64 [cells, L, words], the other cells of each line through a cell,
    filled up with sets that no stones contain. With gravity: stride: bits per column. bottom: the
    lowest cells, and piles: int64 [columns], the cells of each column, the central ones first."""

    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    cell_of_bit: Array
    board: tuple[int, ...]
    line: int | None
    lines: Array
    stride: int
    has_gravity: bool
    bottom: int
    piles: Array


class FallingRules(LineRules):
    """The same with gravity."""


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
def completes_line(rules: LineRules, stones: Position, cell: int) -> bool:
    """Whether a stone on a cell is in a line with the stones of the first half of these words."""
    for number in range(rules.lines.shape[1]):
        missing = np.int64(0)
        for word in range(len(stones) // 2):
            missing |= rules.lines[cell, number, word] & ~stones[word]
        if missing == 0:
            return True
    return False


@compiled
def passed(position: Position) -> Position:
    """The position of the other seat, with the same stones."""
    words, after = len(position) // 2, position
    for word in range(words):
        after = replaced(after, word, position[word] ^ position[words + word])
    return after


@compiled
def placed(rules: LineRules, position: Position, word: int, stone: Bits) -> tuple[Position, bool]:
    """The position after a stone in a word of the sets, and whether the board is full."""
    words, after, is_full = len(position) // 2, passed(position), True
    for number in range(words):
        occupied = position[words + number]
        if number == word:
            occupied |= stone
        after = replaced(after, words + number, occupied)
        is_full &= occupied == rules.board[number]
    return after, is_full


@compiled
def play(rules: LineRules, position: Position, action: int) -> Played:
    won = completes_line(rules, position, action)
    after, is_full = placed(rules, position, action >> 6, rules.cell_bits[action])
    return after, won or is_full, np.float32(won)


@compiled
def play_falling(rules: FallingRules, position: Position, action: int) -> Played:
    own, occupied = position
    # Adding the bottom bit carries over the stones, into the spare bit of a full column.
    first = action * rules.stride
    pile = ((1 << (rules.stride - 1)) - 1) << first
    stone = np.int64((occupied + (1 << first)) & pile & ~occupied)
    won = has_line(own | stone, rules.line, rules.stride)
    after = (own ^ occupied, occupied | stone)
    return after, won or after[1] == rules.board[0], np.float32(won)


@compiled
def is_legal(rules: LineRules, position: Position, action: int) -> bool:
    words = len(position) // 2
    occupied = position[1] if words == 1 else position[words + (action >> 6)]
    return not occupied & rules.cell_bits[action]  # with gravity, the bit of the top row


@compiled
def observe(rules: LineRules, position: Position, planes: Array) -> None:
    words, cells = len(position) // 2, len(rules.cell_bits)
    for word in range(words):
        first, own = 64 * word, position[word]
        bits = rules.cell_bits[first : first + 64]
        write_set(own, bits, planes[first:])
        write_set(own ^ position[words + word], bits, planes[cells + first :])


@compiled
def write_cells(rules: LineRules, position: Position, open_value: int, values: Array) -> None:
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
def set_up(rules: LineRules, cells: Array) -> Played:
    words, position, won, is_full = len(rules.start) // 2, rules.start, False, True
    for cell in range(len(cells)):
        word, bit = cell >> 6, rules.cell_bits[cell]
        is_full &= cells[cell] > 0
        if cells[cell] == 2:
            won |= not rules.has_gravity and completes_line(rules, position, cell)
            position = replaced(position, word, position[word] | bit)
        if cells[cell] > 0:
            position = replaced(position, words + word, position[words + word] | bit)
    if rules.has_gravity:
        won = has_line(position[0], rules.line, rules.stride)
    return passed(position), won or is_full, np.float32(won)


@compiled
def placed_cell(rules: LineRules, before: Position, after: Position) -> int:
    words = len(before) // 2
    for word in range(words):
        stone = before[words + word] ^ after[words + word]
        if stone:
            return int(rules.cell_of_bit[64 * word + first_bit(U(stone))])
    return -1


implement(LineRules, play, is_legal, observe, write_cells, set_up, placed_cell)
implement(FallingRules, is_legal, observe, write_cells, set_up, placed_cell, play=play_falling)


def make_rules(rows: int, columns: int, line: int, gravity: bool) -> LineRules:
    """The rules on a board of this size."""
    cells, stride = rows * columns, rows + 1
    row, column = np.divmod(np.arange(cells), columns)
    bit = column * stride + rows - 1 - row if gravity else np.arange(cells)
    cell_bits = np.int64(1) << bit % 64
    cell_of_bit = np.zeros(64 * -(-cells // 64), np.int64)
    cell_of_bit[bit] = np.arange(cells)
    board = tuple(int(cell_bits[first : first + 64].sum()) for first in range(0, cells, 64))
    piles = [((1 << rows) - 1) << each * stride for each in range(columns)] if gravity else []
    # Cells near the center belong to more lines: solvers search them first.
    piles.sort(key=lambda pile: abs(2 * (pile.bit_length() // stride) - columns + 1))
    return (FallingRules if gravity else LineRules)(
        start=(0,) * (2 * len(board)),
        actions=columns if gravity else cells,
        cell_bits=cell_bits,
        cell_of_bit=cell_of_bit,
        board=board,
        line=None if gravity and line == 4 and 3 * (stride + 1) <= MAX_BITS else line,
        lines=NO_LINES if gravity else lines_through_cells(rows, columns, line),
        stride=stride,
        has_gravity=gravity,
        bottom=sum(pile & -pile for pile in piles),
        piles=np.array(piles, np.int64),
    )


def whole_lines(rows: int, columns: int, line: int) -> Iterator[list[int]]:
    """The cells of each line of this length."""
    for first in range(rows * columns):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            last_row = first // columns + down * (line - 1)
            last_column = first % columns + right * (line - 1)
            if last_row < rows and 0 <= last_column < columns:
                yield [first + (down * columns + right) * place for place in range(line)]


def lines_through_cells(rows: int, columns: int, line: int) -> Array:
    """LineRules.lines of boards without gravity."""
    cells = rows * columns
    through: list[list[int]] = [[] for _ in range(cells)]
    for whole in whole_lines(rows, columns, line):
        for cell in whole:
            through[cell].append(sum(1 << each for each in whole if each != cell))
    most = max(map(len, through))
    sets = [each + [-1] * (most - len(each)) for each in through]
    shifts, word = range(0, cells, 64), (1 << 64) - 1
    words = [[[each >> shift & word for shift in shifts] for each in row] for row in sets]
    return np.array(words, np.uint64).view(np.int64)


@jit()
def find_wins(rules: Any, words: Array, of_other: bool, wins: Array) -> None:
    """Write which actions complete a line of the seat to move, or of the other: bool [B, A]."""
    for row in range(len(wins)):
        position = load(rules.start, words, row)
        if of_other:
            position = passed(position)
        for action in range(rules.actions):
            can_play = is_legal(rules, position, action)
            wins[row, action] = can_play and contract.play(rules, position, action)[2] > 0


class KInARow(BoardGame, MoverCells, Symmetric):
    """rows × columns cells, line stones in a row win, gravity makes stones fall.

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
        bits = (rows + gravity) * columns
        if gravity and bits > MAX_BITS:
            raise ValueError(
                f"a board of {rows}x{columns} needs {bits} bits, and {MAX_BITS} is the most"
            )
        self.rows, self.columns, self.line, self.gravity = rows, columns, line, gravity
        self.rules = make_rules(rows, columns, line, gravity)
        if gravity:
            self.opened_by = (torch.arange(bits - columns) - columns).clamp(min=-1)
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
        return self.state_from_cells(self.from_seats(seat, taken * (2 - shown % 2)), seat)

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
        from rlgames.games.symmetry import board_symmetries

        return board_symmetries(self.rows, self.columns, upright=self.gravity)

    def action_symmetries(self) -> Tensor:
        return self.symmetries()[:, : self.spec.actions]

    # Text

    @property
    def how_to_play(self) -> str:
        place = (
            "a stone falls to the lowest empty cell of its column" if self.gravity else "X starts"
        )
        return f"{self.line} in a row win, across, down or diagonally; {place}"

    def winning_cells(self, state: BoardState, row: int) -> list[int]:
        owners = self.cells(state[row : row + 1]).flatten().tolist()
        lines = whole_lines(self.rows, self.columns, self.line)
        own = [line for line in lines if {owners[cell] for cell in line} in ({1}, {2})]
        return sorted({cell for line in own for cell in line})

    def action_cells(self, state: BoardState, row: int) -> Tensor | None:
        if not self.gravity:
            return super().action_cells(state, row)
        open_cells = self._open_cells(state[row : row + 1])
        return (torch.eye(self.columns).bool()[:, None] & open_cells).flatten(1)

    @cached_property
    def board_format(self) -> board_text.BoardFormat:
        if not self.gravity:
            return super().board_format
        numbers = [str(column + 1) for column in range(self.columns)]
        return board_text.BoardFormat(self.rows, self.columns, below=numbers)

    def check_parsed(self, cells: Tensor, state: BoardState, other: BoardState) -> None:
        if bool(self._has_gap(cells).any()):
            raise ValueError("a stone floats above an empty cell")
        if bool(other.score.any()):
            raise ValueError("the seat to move has a line already")

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        return str(action + 1) if self.gravity else super().action_to_string(state, row, action)


def tictactoe(board: int, line: int) -> KInARow:
    """game=tictactoe: a square board without gravity."""
    return KInARow(board, board, line, False, "tictactoe")


def connect4(rows: int, columns: int, line: int) -> KInARow:
    """game=connect4: stones fall to the lowest empty cell of a column."""
    return KInARow(rows, columns, line, True, "connect4")


def gomoku(board: int, line: int) -> KInARow:
    """game=gomoku: a square board without gravity."""
    return KInARow(board, board, line, False, "gomoku")
