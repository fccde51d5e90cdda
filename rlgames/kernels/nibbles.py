"""Boards of up to 4 × 4 numbers of four bits, 0 for an empty cell, in one word.

Bits 16 r + 4 c to 16 r + 4 c + 3 are column c of row r. Cells outside a smaller board are 0. A row
has 16 bits, column 0 the lowest four. What becomes of a row that slides is looked up.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from rlgames.kernels.words import Array, compiled

Bits: TypeAlias = Any
"""np.uint64; numba infers more of it than mypy can."""

U = np.uint64


@compiled
def flip(board: Bits) -> Bits:
    """The board of four rows with top and bottom exchanged."""
    board = (board << U(32)) | (board >> U(32))
    low, high = U(0x0000FFFF0000FFFF), U(0xFFFF0000FFFF0000)
    return ((board & low) << U(16)) | ((board & high) >> U(16))


@compiled
def mirror(board: Bits) -> Bits:
    """The board of four columns with left and right exchanged."""
    low, high = U(0x0F0F0F0F0F0F0F0F), U(0xF0F0F0F0F0F0F0F0)
    board = ((board & low) << U(4)) | ((board & high) >> U(4))
    low, high = U(0x00FF00FF00FF00FF), U(0xFF00FF00FF00FF00)
    return ((board & low) << U(8)) | ((board & high) >> U(8))


@compiled
def transpose(board: Bits) -> Bits:
    """The board with rows and columns exchanged."""
    swap = (board ^ (board >> U(12))) & U(0x0000F0F00000F0F0)
    board = board ^ (swap | (swap << U(12)))
    swap = (board ^ (board >> U(24))) & U(0x00000000FF00FF00)
    return board ^ (swap | (swap << U(24)))


@compiled
def columns_start(rows: Array) -> Bits:
    """Where the columns begin in the rows of slide_both: after the rows, unless the board is
    square."""
    return U(len(rows)) - U(1 << 16)


@compiled
def slide_both(board: Bits, rows: Array, start: Bits) -> tuple[Bits, Bits, np.float32]:
    """The board with all rows slid left, and slid right, and the points of either slide.

    rows: uint64 [N * 65536], what becomes of each row, by its bits, from start on. Bits 0 to 15:
    the row slid left. Bits 16 to 31: the row slid right. Bits 32 to 63: the points of either.
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


@compiled
def slide(board: Bits, rows: Array, action: Bits) -> tuple[Bits, np.float32]:
    """The board slid up, right, down or left, 0 to 3, and the points."""
    if action & 1:
        left, right, points = slide_both(board, rows, U(0))
        return right if action == 1 else left, points
    up, down, points = slide_both(transpose(board), rows, columns_start(rows))
    return transpose(down if action == 2 else up), points


@compiled
def empty_cells(board: Bits, cells: Bits) -> Bits:
    """The lowest bit of each empty cell."""
    filled = board | (board >> U(1))
    filled |= filled >> U(2)
    return ~filled & cells


@compiled
def count_cells(bits: Bits) -> Bits:
    """How many of at most 15 cells there are, given their lowest bits."""
    return (bits * U(0x1111111111111111)) >> U(60)


@compiled
def nth_cell(cells: Bits, chosen: Bits) -> Bits:
    """The cell with this number, from 0, of at most 15 cells, given their lowest bits."""
    # The cells up to each cell, and how many cells have at most `chosen` of them.
    counts, low = cells * U(0x1111111111111111), U(0x0F0F0F0F0F0F0F0F)
    limits, carry = (chosen + U(16)) * U(0x0101010101010101), U(0x1010101010101010)
    skipped = ((limits - (counts & low)) & carry) + ((limits - ((counts >> U(4)) & low)) & carry)
    return U(1) << (U(4) * (((skipped >> U(4)) * U(0x0101010101010101)) >> U(56)))
