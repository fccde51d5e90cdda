"""Sets of stones of k in a row with gravity, as bits.

Cell r from the bottom of column c is bit c * (rows + 1) + r, as in rlgames.games.bit_layout. The
spare bit above each column is always 0 and keeps lines from running over the edge:

     2  5  8  spare
     1  4  7             2 rows, 3 columns
     0  3  6

A board has at most 62 bits, so all numbers are int64 and none is negative. `line` is the number of
stones that win, or None for lines of four: Numba compiles functions by the types of their
arguments, so these get their own code.
"""

from __future__ import annotations

from rlgames.kernels.jit import jit

MAX_SHIFT = 62


def line_argument(rows: int, line: int) -> int | None:
    """The argument `line` of kernels."""
    return None if line == 4 and 3 * (rows + 2) <= MAX_SHIFT else line


@jit()
def completing_cells(stones: int, line: int | None, height: int, board: int) -> int:
    """The cells that would complete a line of these stones; some of them may be taken."""
    if line is not None:
        return _completing_cells_of_any_line(stones, line - 1, height, board)
    cells = stones << 1 & stones << 2 & stones << 3  # of a vertical line only the top can be empty
    for direction in range(3):
        step = height - 1 + direction
        up, down = stones << step, stones >> step
        pair = up & stones << 2 * step
        cells |= pair & (stones << 3 * step | down)
        pair = down & stones >> 2 * step
        cells |= pair & (up | stones >> 3 * step)
    return cells & board


@jit()
def _completing_cells_of_any_line(stones: int, reach: int, height: int, board: int) -> int:
    """completing_cells for reach other stones; its loops end early, so they stay small and fast."""
    cells, distance = board, 1
    while distance <= reach and cells:
        cells &= stones << distance
        distance += 1
    for direction in range(3):
        step = height - 1 + direction
        if reach * step > MAX_SHIFT:
            continue
        for below in range(reach + 1):  # the stones of the line before the empty cell
            completing, distance = board, -below
            while distance <= reach - below and completing:
                if distance < 0:
                    completing &= stones << -distance * step
                elif distance > 0:
                    completing &= stones >> distance * step
                distance += 1
            cells |= completing
    return cells & board


@jit()
def has_line(stones: int, line: int | None, height: int) -> bool:
    """Whether the stones contain a whole line."""
    if line is not None:
        return _has_any_line(stones, line, height)
    pairs = stones & stones >> 1
    fours = pairs & pairs >> 2
    for direction in range(3):
        step = height - 1 + direction
        pairs = stones & stones >> step
        fours |= pairs & pairs >> 2 * step
    return fours != 0


@jit()
def _has_any_line(stones: int, line: int, height: int) -> bool:
    for direction in range(4):
        step = 1 if direction == 3 else height - 1 + direction
        if (line - 1) * step > MAX_SHIFT:
            continue
        run, length = stones, 1  # the bits at which a run of this length begins
        while length < line and run:
            added = min(length, line - length)
            run &= run >> added * step
            length += added
        if run:
            return True
    return False
