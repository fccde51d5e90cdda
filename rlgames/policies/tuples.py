"""The cells that n-tuple networks look at: blocks, straight lines and random walks."""

from __future__ import annotations

import random
from collections.abc import Iterable

import torch
from torch import Tensor

MAX_TABLE_SIZE = 200_000_000

DEFAULT_SHAPES = ((3, 3), (4, 2))
"""Default tuples of 2048: the numbers of cells in a row and in the row below, aligned on the
left."""

DEFAULT_NUM_WALKS, WALK_LENGTH = 70, 8
"""The number and the length of default tuples with two seats (Thill, Koch and Konen 2012)."""

MAX_SINGLE = WALK_LENGTH + 1
"""A board of at most this many cells is a single tuple by default, with two seats."""


def distinct(tuples: Iterable[list[int]], symmetries: Tensor) -> list[list[int]]:
    """The tuples without those that symmetries put on the cells of an earlier one."""
    known: dict[tuple[int, ...], list[int]] = {}
    for cells in tuples:
        canonical = min(tuple(sorted(image)) for image in symmetries[:, cells].tolist())
        known.setdefault(canonical, cells)
    return list(known.values())


def blocks(rows: int, columns: int, symmetries: Tensor) -> list[list[int]]:
    """DEFAULT_SHAPES in all positions on a board, or the whole board if it has few cells."""
    if rows * columns <= 6:
        return [list(range(rows * columns))]
    horizontal, tuples = torch.arange(rows * columns).view(rows, columns), []
    for grid in (horizontal, horizontal.T):
        for upper, lower in DEFAULT_SHAPES:
            for top in range(grid.shape[0] - 1):
                for left in range(grid.shape[1] - upper + 1):
                    upper_cells = grid[top, left : left + upper]
                    cells = torch.cat([upper_cells, grid[top + 1, left : left + lower]])
                    tuples.append(cells.tolist())
    return distinct(tuples, symmetries) or [list(range(rows * columns))]


def lines(rows: int, columns: int, symmetries: Tensor, length: int) -> list[list[int]]:
    """All straight lines of this many cells, across, down and diagonal, or of as many as the longer
    side has; 0: none."""
    if length == 0:
        return []
    length = min(length, max(rows, columns))
    grid, steps = torch.arange(rows * columns).view(rows, columns), range(length)
    found = []
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                last_row, last = row + down * (length - 1), column + right * (length - 1)
                if last_row < rows and 0 <= last < columns:
                    cells = [int(grid[row + down * n, column + right * n]) for n in steps]
                    found.append(cells)
    return distinct(found, symmetries)


def walks(rows: int, columns: int, symmetries: Tensor) -> list[list[int]]:
    """DEFAULT_NUM_WALKS random walks, or the whole board if it has few cells."""
    if rows * columns <= MAX_SINGLE:
        return [list(range(rows * columns))]
    return random_walks(rows, columns, symmetries, DEFAULT_NUM_WALKS)


def random_walks(rows: int, columns: int, symmetries: Tensor, count: int) -> list[list[int]]:
    """Random walks over neighboring cells, the same at each call; small boards may have fewer."""
    generator = random.Random(0)
    tuples: dict[frozenset[int], list[int]] = {}
    length = min(WALK_LENGTH, rows * columns)
    for _ in range(100 * count):
        cells = _walk(rows, columns, length, generator)
        canonical = min(sorted(view) for view in symmetries[:, cells].tolist())
        tuples.setdefault(frozenset(canonical), canonical)
        if len(tuples) == count:
            break
    return list(tuples.values())


def _walk(rows: int, columns: int, length: int, generator: random.Random) -> list[int]:
    """Distinct cells that a walk over neighbors meets."""

    def below(limit: int) -> int:
        return int(generator.random() * limit)

    row, column = below(rows), below(columns)
    cells = {row * columns + column}
    while len(cells) < length:
        row = min(max(row + below(3) - 1, 0), rows - 1)
        column = min(max(column + below(3) - 1, 0), columns - 1)
        cells.add(row * columns + column)
    return sorted(cells)


def check_tuples(
    tuples: list[list[int]], num_cell_values: int, num_cells: int, num_parts: int
) -> None:
    """Raises ValueError for cells off the board and for tables that are too large."""
    for cells in tuples:
        if not cells or len({*cells}) < len(cells) or not {*cells} <= {*range(num_cells)}:
            raise ValueError(
                f"policy.tuples: {cells} needs distinct cells from 0 to {num_cells - 1}"
            )
    needed = num_parts * sum(float(num_cell_values) ** len(cells) for cells in tuples)
    if not tuples or needed > MAX_TABLE_SIZE:
        raise ValueError(
            f"{len(tuples)} tuples with policy.num_cell_values={num_cell_values} need "
            f"{needed:.3g} values, and 1 to {MAX_TABLE_SIZE:,} are possible"
        )
