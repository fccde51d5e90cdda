"""The rules of k in a row, see rules.py.

Words: the stones of the seat to move and all stones, as rlgames.games.bit_layout draws their bits.
On large boards both are several words, where bit c of the whole set is cell c in row-major order
from the top.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rlgames.kernels.lines import has_line
from rlgames.kernels.rules import Played, Position, implement, replaced
from rlgames.kernels.words import Array, compiled

Bits: TypeAlias = Any
"""np.int64, a set of stones or a seat; numba infers more of it than mypy can."""

U = np.uint64


class LineRules(NamedTuple):
    """cell_bits: int64 [cells], in row-major order from the top. board: their sum. line_table: bool
    [2^cells], or empty where lines are computed. line: as in lines.py. stride: bits per column with
    gravity, per row without. columns: 0 without gravity. bottom: the lowest cells, and piles: int64
    [columns], the cells of each column, the central ones first; 0 and empty without gravity."""

    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    board: int
    line_table: Array
    line: int | None
    stride: int
    columns: int
    bottom: int
    piles: Array


@compiled
def stone_of(occupied: Bits, action: int, rules: LineRules) -> Bits:
    """The bit of the stone that an action sets, 0 for an illegal action."""
    if rules.columns == 0:
        bit = rules.cell_bits[action]
        return np.int64(0) if bit & occupied else np.int64(bit)
    # Adding the bottom bit carries over the stones, into the spare bit of a full column.
    pile = ((1 << (rules.stride - 1)) - 1) << (action * rules.stride)
    return np.int64((occupied + (1 << (action * rules.stride))) & pile & ~occupied)


@compiled
def is_won(stones: Bits, rules: LineRules) -> bool:
    """Whether stones contain a whole line."""
    if len(rules.line_table) > 0:
        return bool(rules.line_table[stones])
    return has_line(stones, rules.line, rules.stride)


@compiled
def play(rules: LineRules, position: Position, action: int) -> Played:
    return add_stone(rules, position, stone_of(position[1], action, rules))


@compiled
def add_stone(rules: LineRules, position: Position, stone: Bits) -> Played:
    """As play, from the stone that an action sets."""
    own, occupied = position
    won = is_won(own | stone, rules)
    after = (own ^ occupied, occupied | stone)
    return after, won or after[1] == rules.board, np.float32(won)


@compiled
def is_legal(rules: LineRules, position: Position, action: int) -> bool:
    return not position[1] & rules.cell_bits[action]  # with gravity, the bit of the top row


@compiled
def observe(rules: LineRules, position: Position, planes: Array) -> None:
    own, other, cells = position[0], position[0] ^ position[1], len(rules.cell_bits)
    # Two loops with one array each: the compiler turns them into vector instructions.
    for cell in range(cells):
        planes[cell] = np.float32(1) if own & rules.cell_bits[cell] else np.float32(0)
    planes = planes[cells:]
    for cell in range(cells):
        planes[cell] = np.float32(1) if other & rules.cell_bits[cell] else np.float32(0)


@compiled
def write_cells(rules: LineRules, position: Position, open_value: int, values: Array) -> None:
    own, occupied = position
    open_cells = 0
    if open_value > 0:
        # Adding the bottom bits carries over the stones, into the spare bit of a full column.
        reached = occupied + rules.bottom if rules.columns > 0 else -1
        open_cells = reached & rules.board & ~occupied
    for cell in range(len(rules.cell_bits)):
        bit, value = rules.cell_bits[cell], 0
        if occupied & bit:
            value = 1 if own & bit else 2
        elif open_cells & bit:
            value = open_value
        values[cell] = value


implement(
    LineRules,
    play=play,
    is_legal=is_legal,
    observe=observe,
    write_cells=write_cells,
)


class LargeLineRules(NamedTuple):
    """rows, columns: of a board without gravity. line: the number of stones that win. board: all
    cells, as a set."""

    start: tuple[int, ...]
    actions: int
    rows: int
    columns: int
    line: int
    board: tuple[int, ...]


@compiled
def has_stone(position: Position, first: int, cell: int) -> bool:
    """Whether the set that begins at a word contains a cell."""
    return bool((position[first + (cell >> 6)] >> (cell & 63)) & 1)


@compiled
def run_length(rules: LargeLineRules, stones: Position, cell: int, down: int, right: int) -> int:
    """How many stones follow a cell in one direction."""
    row, column, length = cell // rules.columns + down, cell % rules.columns + right, 0
    while 0 <= row < rules.rows and 0 <= column < rules.columns:
        if not has_stone(stones, 0, row * rules.columns + column):
            break
        row, column, length = row + down, column + right, length + 1
    return length


@compiled
def play_large(rules: LargeLineRules, position: Position, action: int) -> Played:
    words = len(rules.board)
    after, is_full = position, True
    for word in range(words):
        occupied = position[words + word]
        after = replaced(after, word, position[word] ^ occupied)
        if word == action >> 6:
            occupied |= np.int64(1) << np.int64(action & 63)
        after = replaced(after, words + word, occupied)
        is_full &= occupied == rules.board[word]
    longest = 0
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = run_length(rules, position, action, down, right)
        length += run_length(rules, position, action, -down, -right)
        longest = max(longest, length)
    won = longest + 1 >= rules.line
    return after, won or is_full, np.float32(won)


@compiled
def is_legal_large(rules: LargeLineRules, position: Position, action: int) -> bool:
    return not has_stone(position, len(rules.board), action)


@compiled
def observe_large(rules: LargeLineRules, position: Position, planes: Array) -> None:
    words = len(rules.board)
    for cell in range(rules.actions):
        own, taken = has_stone(position, 0, cell), has_stone(position, words, cell)
        planes[cell] = np.float32(own)
        planes[rules.actions + cell] = np.float32(taken and not own)


@compiled
def write_cells_large(
    rules: LargeLineRules, position: Position, open_value: int, values: Array
) -> None:
    words = len(rules.board)
    for cell in range(rules.actions):
        values[cell] = open_value
        if has_stone(position, words, cell):
            values[cell] = 1 if has_stone(position, 0, cell) else 2


implement(
    LargeLineRules,
    play=play_large,
    is_legal=is_legal_large,
    observe=observe_large,
    write_cells=write_cells_large,
)
