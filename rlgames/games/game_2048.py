"""2048 on a board of up to 8 × 8 cells.

A move slides all tiles to one side. Two equal tiles that meet merge into one of twice the value,
the pair nearest the side first and each tile at most once a move; the score grows by the value of
the new tile. Then a 2, or sometimes a 4, appears on a random empty cell. The game is over when no
move changes the board.

    .    .    2    .
    .    .    4    2      actions: up, right, down, left
    2    .    8    4
    2    4   16   32

Words: a tile is its exponent, 0 for an empty cell. A board of up to 4 × 4 cells is one word, see
rlgames/kernels/nibbles.py. There the largest tile is 32768: two of them merge into one that stays
32768, and score 65536. A larger board has a word for each row, with 8 bits for each cell. A line is
a row or a column as one number, the first cell the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.games import board_text
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Capability, Chance, ExactKey, Symmetric
from rlgames.games.game import Game, Spec
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries, direction_symmetries
from rlgames.kernels import rules as contract
from rlgames.kernels.nibbles import Bits, count_cells, empty_cells, nth_cell, slide
from rlgames.kernels.rules import Played, Position, implement, replaced
from rlgames.kernels.words import Array, compiled, next_random
from rlgames.rng import CHANCE, Rng

U = np.uint64
MAX_PACKED_LENGTH, MAX_LENGTH = 4, 8
"""The most rows and columns of a board in one word, and of any board."""

ACTIONS = ("up", "right", "down", "left")

MARKS = [".", *(str(2**exponent) for exponent in range(1, 64))]
"""How a cell is written, by its exponent."""

MAX_PLANES = 16
"""The most planes of a one-hot observation; larger tiles share the last."""


class Rules2048(NamedTuple):
    """rows: of boards of one word, as in kernels/nibbles.py; cells: the lowest bit of each cell.
    fours: the probability of a 4 in units of 2^-32; four: the same as a number. words: int64 [N],
    the word of each cell, and shifts: uint64 [N], its lowest bit there. largest: the largest
    exponent, whose bits are all set. planes: of a one-hot observation; 1: the exponents ÷ 10."""

    start: tuple[int, ...]
    actions: int
    columns: int
    rows: Array
    cells: np.uint64
    fours: np.uint64
    four: np.float32
    words: Array
    shifts: Array
    largest: np.uint64
    planes: int


class LargeRules2048(Rules2048):
    """The same for boards of a word for each row, which are not looked up."""


@compiled
def slide_line(line: Bits, length: int, bits: Bits) -> tuple[Bits, int]:
    """A line slid to its first cell, and the points. bits: of a cell."""
    largest = (U(1) << bits) - U(1)
    slid, end, last = U(0), U(0), U(0)
    points: Any = 0
    for _ in range(length):
        exponent = line & largest
        line >>= bits
        if exponent == U(0):
            continue
        if exponent == last:
            points += 1 << np.int64(exponent + U(1))
            if exponent < largest:
                slid += U(1) << (end - bits)
            last = U(0)
        else:
            slid |= exponent << end
            end += bits
            last = exponent
    return slid, points


@compiled
def slide_lines(lines: Array, length: int, points: Array) -> None:
    """Slide lines of four bits a cell, uint64 [L], in place, and write the points, uint64 [L]."""
    for number in range(len(lines)):
        lines[number], points[number] = slide_line(lines[number], length, U(4))


@compiled
def add_tile(board: Bits, cells: Bits, fours: Bits, rng: Array) -> Bits:
    """The board, which has 1 to 15 empty cells, with a new tile. fours: in units of 2^-32."""
    bits = next_random(rng)
    empty = empty_cells(board, cells)
    chosen = ((bits >> U(32)) * count_cells(empty)) >> U(32)
    cell = nth_cell(empty, chosen)
    if (bits & U(0xFFFFFFFF)) < fours:
        return board | (cell << U(1))
    return board | cell


@compiled
def play(rules: Rules2048, position: Position, action: int) -> Played:
    after, points = slide(U(position[0]), rules.rows, U(action))
    return (np.int64(after),), False, points


@compiled
def is_legal(rules: Rules2048, position: Position, action: int) -> bool:
    board = U(position[0])
    return bool(slide(board, rules.rows, U(action))[0] != board)


@compiled
def add_chance(rules: Rules2048, position: Position, rng: Array) -> tuple[Position, bool]:
    board = add_tile(U(position[0]), rules.cells, rules.fours, rng)
    return (np.int64(board),), is_stuck(board, rules)


@compiled
def is_stuck(board: Bits, rules: Rules2048) -> bool:
    """Whether no action changes the board."""
    return not empty_cells(board, rules.cells) and not has_move(rules, (np.int64(board),))


@compiled
def random_move(rules: Rules2048, position: Position, rng: Array) -> Played:
    """By rejection: listing the legal actions slides four times."""
    board, bits = U(position[0]), next_random(rng)
    while True:
        after, points = slide(board, rules.rows, bits & U(3))
        if after != board:
            after = add_tile(after, rules.cells, rules.fours, rng)
            return (np.int64(after),), is_stuck(after, rules), points
        bits >>= U(2)
        if bits < U(4):
            bits = next_random(rng)


@compiled
def play_large(rules: LargeRules2048, position: Position, action: int) -> Played:
    rows, columns = len(position), rules.columns
    lines, length, step, stride = rows, columns, 1, columns
    if action % 2 == 0:
        lines, length, step, stride = columns, rows, columns, 1
    first = 0
    if action == 1 or action == 2:
        first, step = (length - 1) * step, -step
    after, total = rules.start, 0
    for number in range(lines):
        cell, line = first + number * stride, U(0)
        for place in range(length):
            line |= U(tile(rules, position, cell + place * step)) << U(8 * place)
        line, points = slide_line(line, length, U(8))
        total += points
        for place in range(length):
            exponent: Any = np.int64((line >> U(8 * place)) & U(255))
            after = with_tile(rules, after, cell + place * step, exponent)
    return after, False, np.float32(total)


@compiled
def is_legal_large(rules: LargeRules2048, position: Position, action: int) -> bool:
    return bool(play_large(rules, position, action)[0] != position)


@compiled
def add_chance_large(
    rules: LargeRules2048, position: Position, rng: Array
) -> tuple[Position, bool]:
    bits, count = next_random(rng), count_empty(rules, position)
    nth: Any = np.int64(((bits >> U(32)) * U(count)) >> U(32))
    return put_tile(rules, position, count, nth, (bits & U(0xFFFFFFFF)) < rules.fours)


@compiled
def tile(rules: Any, position: Position, cell: int) -> Any:
    """The exponent of a cell."""
    word = U(position[rules.words[cell]])
    return np.int64((word >> rules.shifts[cell]) & rules.largest)


@compiled
def with_tile(rules: Any, position: Position, cell: int, exponent: int) -> Position:
    """The board with a tile on an empty cell; too large a tile becomes the largest."""
    number = rules.words[cell]
    bits = min(U(exponent), rules.largest) << rules.shifts[cell]
    word: Any = np.int64(U(position[number]) | bits)
    return replaced(position, number, word)


@compiled
def has_move(rules: Any, position: Position) -> bool:
    """Whether an action changes the board."""
    can_move = False
    for action in range(4):
        can_move |= contract.is_legal(rules, position, action)
    return can_move


@compiled
def count_empty(rules: Any, position: Position) -> int:
    """The number of empty cells."""
    count = 0
    for cell in range(len(rules.shifts)):
        count += tile(rules, position, cell) == 0
    return count


@compiled
def put_tile(
    rules: Any, position: Position, count: int, nth: int, is_four: bool
) -> tuple[Position, bool]:
    """The board with a new tile on one of its `count` empty cells, and whether no move is left."""
    for cell in range(len(rules.shifts)):
        if tile(rules, position, cell) == 0:
            if nth == 0:
                position = with_tile(rules, position, cell, 2 if is_four else 1)
                break
            nth -= 1
    return position, count <= 1 and not has_move(rules, position)


@compiled
def apply_chance(rules: Any, position: Position, u: Array) -> tuple[Position, bool]:
    count = count_empty(rules, position)
    # The product may be rounded up to the count.
    nth = min(int(u[0] * np.float32(count)), count - 1)
    return put_tile(rules, position, count, nth, u[1] < rules.four)


@compiled
def observe(rules: Any, position: Position, planes: Array) -> None:
    cells = len(rules.shifts)
    if rules.planes > 1:
        planes[:] = np.float32(0)
    for cell in range(cells):
        exponent = tile(rules, position, cell)
        if rules.planes == 1:
            planes[cell] = np.float32(exponent) / np.float32(10)
        else:
            planes[min(exponent, rules.planes - 1) * cells + cell] = np.float32(1)


@compiled
def write_cells(rules: Any, position: Position, open_value: int, values: Array) -> None:
    for cell in range(len(values)):
        values[cell] = np.float32(tile(rules, position, cell))


@compiled
def set_up(rules: Any, cells: Array) -> Played:
    position = rules.start
    for cell in range(len(cells)):
        position = with_tile(rules, position, cell, cells[cell])
    return position, not has_move(rules, position), np.float32(0)


EITHER = (apply_chance, observe, write_cells, set_up)
implement(Rules2048, play, is_legal, add_chance, random_move, *EITHER)
implement(
    LargeRules2048, *EITHER, play=play_large, is_legal=is_legal_large, add_chance=add_chance_large
)


@cache
def row_table(length: int) -> Array:
    """Uint64 [65536]: the rows of Rules2048 for lines of so many cells."""
    lines = np.arange(1 << (4 * length), dtype=U)
    places = 4 * np.arange(length, dtype=U)[:, None]

    def turned(lines: Array) -> Array:
        return (((lines >> places) & U(15)) << places[::-1]).sum(0, dtype=U)

    left, right, points = lines.copy(), turned(lines), lines.copy()
    slide_lines(right, length, points)
    slide_lines(left, length, points)
    table = np.zeros(1 << 16, U)
    table[: len(lines)] = left | turned(right) << U(16) | points << U(32)
    return table


def make_rules(rows: int, columns: int, fours: float, planes: int) -> Rules2048:
    """The rules on a board of this size."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    is_large = max(rows, columns) > MAX_PACKED_LENGTH
    shifts = (8 * column if is_large else 16 * row + 4 * column).astype(U)
    lengths = () if is_large else (columns,) if rows == columns else (columns, rows)
    return (LargeRules2048 if is_large else Rules2048)(
        start=(0,) * (rows if is_large else 1),
        actions=len(ACTIONS),
        columns=columns,
        rows=np.concatenate([np.zeros(0, U), *map(row_table, lengths)]),
        cells=np.bitwise_or.reduce(U(1) << shifts),
        fours=U(round(fours * 2**32)),
        four=np.float32(fours),
        words=row if is_large else 0 * row,
        shifts=shifts,
        largest=U(255 if is_large else 15),
        planes=planes,
    )


class Game2048(BoardGame, Chance, Symmetric):
    """board rows × columns cells. encoding="exponents" shows one plane of exponents ÷ 10."""

    how_to_play = "all tiles slide in a direction; equal tiles that meet merge and score their sum"
    seat_marks = ""
    shows_mover = False

    def __init__(
        self,
        board: int,
        columns: int,
        fours: float,
        target: int,
        encoding: str,
        name: str = "2048",
    ) -> None:
        rows, cells = board, board * columns
        if cells < 3:
            why = "may be over before the first move; use 3 cells or more"
            raise ValueError(f"a game on a board of {rows}x{columns} {why}")
        if max(rows, columns) > MAX_LENGTH:
            raise ValueError(f"a board of {rows}x{columns} is larger than 8x8")
        if target < 4 or target & (target - 1):
            raise ValueError(f"target={target} is not a tile; tiles are 4, 8, 16, ... 2048")
        self.rows, self.columns, self.num_cells = rows, columns, cells
        self.fours, self.target = fours, target
        self.num_cell_values = cells + 2
        planes = min(MAX_PLANES, cells + 2) if encoding == "onehot" else 1
        self.rules = make_rules(rows, columns, fours, planes)
        self._tile_values = torch.tensor([0.0] + [2.0**e for e in range(1, 64)])
        self.spec = Spec(
            name=name,
            seats=1,
            actions=4,
            observation=(planes, rows, columns),
            has_cell_actions=False,
            # Each move adds at least 2 to the sum of the tiles, which is at most 2^(cells + 2).
            max_plies=2 ** min(cells + 1, 40),
            max_positions=count_boards(cells + 2, cells),
            goal="score",
            num_chance_inputs=2,
            observation_range=(0.0, 1.0 if encoding == "onehot" else (cells + 1) / 10),
        )

    def lacks(self, capability: type[Capability]) -> str:
        is_too_large = issubclass(capability, ExactKey) and self.num_cells > 16
        return "boards of more than 16 cells need more than 64 bits" if is_too_large else ""

    def initial(self, batch: int, rng: Rng) -> BoardState:
        state = super().initial(batch, rng)
        one_tile = self.apply_chance(state, rng.uniform(batch, 2))
        return self.apply_chance(one_tile, rng.fold_in(CHANCE).uniform(batch, 2))

    def openings(self, limit: int) -> tuple[BoardState, Tensor] | None:
        if (2 * self.num_cells) ** 2 > 4 * limit:
            return None
        first, one_tile = self.chance_outcomes(super().initial(1, Rng()))
        second, two_tiles = self.chance_outcomes(one_tile)
        probability = (first.reshape(-1, 1) * second).reshape(-1)
        tiles = self.tiles(two_tiles)[probability > 0]
        tiles, group = tiles.unique(dim=0, return_inverse=True)
        total = torch.zeros(len(tiles), dtype=torch.float64)
        total.index_add_(0, group, probability[probability > 0])
        state = self.from_exponents(tiles)
        return (state, total) if len(tiles) <= limit else None

    def chance_outcomes(self, state: BoardState) -> tuple[Tensor, BoardState]:
        """Probability float64 [B, 2N] and the B * 2N positions: a 2 on each cell, then a 4."""
        tiles = self.tiles(state)
        empty = (tiles == 0) & ~state.done[:, None]
        cell_probability = to_float64(empty) / empty.sum(1, keepdim=True).clamp(min=1)
        probability = torch.cat(
            [cell_probability * (1 - self.fours), cell_probability * self.fours], 1
        )
        probability[state.done, 0] = 1.0  # a finished row does not change
        twos = torch.eye(self.num_cells, dtype=torch.int64)
        row, index = torch.cat([empty, empty], 1).nonzero().unbind(1)
        after = self.from_exponents(tiles[row] + torch.cat([twos, 2 * twos])[index])
        before = state[torch.arange(len(state)).repeat_interleave(2 * self.num_cells)]
        place = row * 2 * self.num_cells + index
        words = before.words.index_copy(0, place, after.words)
        return probability, replace(
            before, words=words, done=before.done.index_copy(0, place, after.done)
        )

    def outcome(self, before: BoardState, action: Tensor, after: BoardState) -> Tensor:
        tiles = self.tiles(after)
        new = tiles != self.tiles(self.apply_action(before, action))
        cell = new.to(torch.uint8).argmax(1)
        value = tiles.gather(1, cell[:, None])[:, 0]
        return torch.where(new.any(1), 2 * cell + value, 0)

    def key(self, state: BoardState) -> Tensor:
        """Four bits per cell."""
        return ((self.tiles(state) & 15) << 4 * torch.arange(self.num_cells)).sum(1)

    def state_from_key(self, key: Tensor) -> BoardState:
        return self.from_exponents((key[:, None] >> 4 * torch.arange(self.num_cells)) & 15)

    def depth(self, state: BoardState) -> Tensor:
        """Half the sum of the tiles: every move adds 1 or 2."""
        return (self._tile_values[self.tiles(state)].sum(1) / 2).long()

    def turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        return torch.zeros_like(seat)

    def from_exponents(self, exponents: Tensor) -> BoardState:
        """Positions from exponents, int64 [B, rows, columns], with a score of 0."""
        seats = torch.zeros(len(exponents), dtype=torch.int64)
        return self.state_from_cells(exponents.flatten(1), seats)

    def tiles(self, state: BoardState) -> Tensor:
        """Int64 [B, N]: the exponents."""
        return self.cells(state).flatten(1)

    def measures(self, state: BoardState) -> dict[str, Tensor]:
        tiles = self.tiles(state)
        max_tile = self._tile_values[tiles.amax(1)]
        return {
            "grid_sum": self._tile_values[tiles].sum(1),
            "max_tile": max_tile,
            "win": (max_tile >= self.target).float(),
        }

    def is_valid(self, state: BoardState) -> Tensor:
        # The k-th largest tile was made while k - 1 cells held larger ones; a turn adds at most 4.
        largest = self.num_cells + 1 - torch.arange(self.num_cells)
        cells = self.cells(state)
        tiles = cells.flatten(1).sort(1, descending=True)[0]
        total = to_float64(self._tile_values)[tiles.clamp(max=63)].sum(1)
        again = self.from_exponents(cells)
        return (
            Game.is_valid(self, state)
            & (again.words == state.words).all(1)
            & (again.done == state.done)
            & (tiles <= largest.clamp(max=63)).all(1)
            & (total <= 4.0 * (state.turn + 2))
        )

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns)

    def action_symmetries(self) -> Tensor:
        return direction_symmetries(self.rows, self.columns)

    def boards(self, state: BoardState, row: int, reveal: bool = False) -> list[board_text.Board]:
        cells = self.cells(state[row : row + 1])[0].tolist()
        return [[[MARKS[exponent] for exponent in line] for line in cells]]

    @cached_property
    def board_format(self) -> board_text.BoardFormat:
        return board_text.BoardFormat(self.rows, self.columns, width=4)

    def parse_all(self, texts: Sequence[str]) -> BoardState:
        possible = MARKS[: min(self.num_cells + 2, int(self.rules.largest) + 1)]
        boards = [board_text.read(text, self.board_format, possible)[0] for text in texts]
        exponents = torch.tensor([[*map(MARKS.index, marks)] for marks in boards])
        return self.from_exponents(exponents)

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        return ACTIONS[action]
