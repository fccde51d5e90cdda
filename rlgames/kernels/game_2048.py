"""The rules of 2048 on boards of up to 4×4 cells, each a number of 64 bits; see rules.py.

Bits 16 r + 4 c to 16 r + 4 c + 3 are the exponent of the tile in row r, column c, 0 for an empty
cell. Cells outside a smaller board are always 0. Two tiles of 2^15 merge into one that stays 2^15.
Actions are 0 to 3: up, right, down, left. A row has 16 bits, column 0 the lowest four.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, next_random

Bits: TypeAlias = Any
"""np.uint64; numba infers more of it than mypy can."""

U = np.uint64


@jit()
def columns_start(rows: Array) -> Bits:
    """Where the columns begin in rows of Rules2048."""
    return U(len(rows)) - U(1 << 16)


@jit()
def flip(board: Bits) -> Bits:
    """The board of four rows with top and bottom exchanged."""
    board = (board << U(32)) | (board >> U(32))
    low, high = U(0x0000FFFF0000FFFF), U(0xFFFF0000FFFF0000)
    return ((board & low) << U(16)) | ((board & high) >> U(16))


@jit()
def transpose(board: Bits) -> Bits:
    """The board with rows and columns exchanged."""
    swap = (board ^ (board >> U(12))) & U(0x0000F0F00000F0F0)
    board = board ^ (swap | (swap << U(12)))
    swap = (board ^ (board >> U(24))) & U(0x00000000FF00FF00)
    return board ^ (swap | (swap << U(24)))


@jit()
def mirror(board: Bits) -> Bits:
    """The board of four columns with left and right exchanged."""
    low, high = U(0x0F0F0F0F0F0F0F0F), U(0xF0F0F0F0F0F0F0F0)
    board = ((board & low) << U(4)) | ((board & high) >> U(4))
    low, high = U(0x00FF00FF00FF00FF), U(0xFF00FF00FF00FF00)
    return ((board & low) << U(8)) | ((board & high) >> U(8))


@jit()
def slide_both(board: Bits, rows: Array, start: Bits) -> tuple[Bits, Bits, np.float32]:
    """The board with all rows slid left, and slid right, and the points of either slide.

    rows: as in Rules2048, whose lines begin at start.
    """
    first, second = rows[start + (board & U(0xFFFF))], rows[start + ((board >> U(16)) & U(0xFFFF))]
    third, fourth = rows[start + ((board >> U(32)) & U(0xFFFF))], rows[start + (board >> U(48))]
    low, high = U(0xFFFF), U(0xFFFF0000)
    left = (first & low) | ((second & low) << U(16))
    left |= ((third & low) << U(32)) | ((fourth & low) << U(48))
    right = ((first & high) >> U(16)) | (second & high)
    right |= ((third & high) << U(16)) | ((fourth & high) << U(32))
    points = (first >> U(32)) + (second >> U(32)) + (third >> U(32)) + (fourth >> U(32))
    return left, right, np.float32(points)


@jit()
def slide(board: Bits, rows: Array, action: Bits) -> tuple[Bits, np.float32]:
    """The board after an action, and its points; an illegal action changes nothing."""
    if action & 1:
        left, right, points = slide_both(board, rows, U(0))
        return right if action == 1 else left, points
    up, down, points = slide_both(transpose(board), rows, columns_start(rows))
    return transpose(down if action == 2 else up), points


@jit()
def empty_cells(board: Bits, cells: Bits) -> Bits:
    """The lowest bit of each empty cell."""
    filled = board | (board >> U(1))
    filled |= filled >> U(2)
    return ~filled & cells


@jit()
def count_cells(bits: Bits) -> Bits:
    """How many of at most 15 cells there are, given their lowest bits."""
    return (bits * U(0x1111111111111111)) >> U(60)


@jit()
def add_tile(board: Bits, cells: Bits, fours: Bits, rng: Array) -> Bits:
    """The board, of which one to 15 cells are empty, with a new tile. fours: in units of 2^-32."""
    bits = next_random(rng)
    empty = empty_cells(board, cells)
    chosen = ((bits >> U(32)) * count_cells(empty)) >> U(32)
    # The empty cells up to each cell, and how many cells have at most `chosen` of them.
    counts, low = empty * U(0x1111111111111111), U(0x0F0F0F0F0F0F0F0F)
    limits, carry = (chosen + U(16)) * U(0x0101010101010101), U(0x1010101010101010)
    skipped = ((limits - (counts & low)) & carry) + ((limits - ((counts >> U(4)) & low)) & carry)
    cell = U(1) << (U(4) * (((skipped >> U(4)) * U(0x0101010101010101)) >> U(56)))
    if (bits & U(0xFFFFFFFF)) < fours:
        return board | (cell << U(1))
    return board | cell


class Rules2048(NamedTuple):
    """rows: uint64 [N * 65536], what becomes of each row, by its bits. Bits 0 to 15: the row slid
    left. Bits 16 to 31: the row slid right. Bits 32 to 63: the points of either slide. First the
    rows, then, unless the board is square, the columns.
    shifts: uint64 [N], the lowest bit of each cell. cells: all of them. fours: the probability of a
    4 in units of 2^-32. planes: of a one-hot observation; 1: the exponents ÷ 10."""

    start: tuple[int, ...]
    actions: int
    rows: Array
    shifts: Array
    cells: np.uint64
    fours: np.uint64
    planes: int


@jit()
def play(rules: Rules2048, position: Position, action: int) -> Played:
    after, points = slide(U(position[0]), rules.rows, U(action))
    return (np.int64(after),), False, points


@jit()
def is_legal(rules: Rules2048, position: Position, action: int) -> bool:
    board = U(position[0])
    return bool(slide(board, rules.rows, U(action))[0] != board)


@jit()
def add_chance(rules: Rules2048, position: Position, rng: Array) -> tuple[Position, bool]:
    board = add_tile(U(position[0]), rules.cells, rules.fours, rng)
    return (np.int64(board),), is_stuck(board, rules)


@jit()
def is_stuck(board: Bits, rules: Rules2048) -> bool:
    """Whether no action changes the board."""
    if empty_cells(board, rules.cells):
        return False
    can_slide = False
    for action in range(U(4)):
        can_slide |= slide(board, rules.rows, U(action))[0] != board
    return not can_slide


@jit()
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


@jit()
def observe(rules: Rules2048, position: Position, planes: Array) -> None:
    board, num_cells = U(position[0]), len(rules.shifts)
    if rules.planes > 1:
        planes[:] = np.float32(0)
    for cell in range(num_cells):
        exponent: Any = np.int64((board >> rules.shifts[cell]) & U(15))
        if rules.planes == 1:
            planes[cell] = np.float32(exponent) / np.float32(10)
        else:
            plane: int = min(exponent, rules.planes - 1)
            planes[plane * num_cells + cell] = np.float32(1)


implement(
    Rules2048,
    play=play,
    is_legal=is_legal,
    add_chance=add_chance,
    random_move=random_move,
    observe=observe,
)
