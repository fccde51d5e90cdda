"""The layouts of a fleet, checked and packed as kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlgames.core.bits import pack_bits

if TYPE_CHECKING:
    from rlgames.solvers.belief.states import Problem

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

MAX_CELLS = 39
"""Beliefs are numbered in base 3, and 3^39 is the last power of 3 below 2^63."""

MAX_TURN_CELLS = 22
"""Cells of a turn whose results are compared; with more a solution is out of reach anyway."""


def build_problem(layouts: Bools, shots: int, symmetries: ArrayLike) -> Problem:
    """The problem that solve_belief describes. Raises ValueError where it says."""
    from rlgames.solvers.belief.states import Problem

    layouts = np.asarray(layouts, bool)
    permutations = np.asarray(symmetries, np.int64)
    _check(layouts, shots)
    cells = layouts.shape[1]
    masks, first, counts = np.unique(
        pack_bits(layouts)[:, 0], return_index=True, return_counts=True
    )
    _check_symmetries(layouts[first], masks, counts, permutations)
    num_results = 1 << min(shots, cells, MAX_TURN_CELLS)
    return Problem(
        layouts=masks,
        weights=counts.astype(np.float64),
        numbers=_numbers(permutations),
        shots=shots,
        cells=np.uint64((1 << cells) - 1),
        sums=np.zeros(num_results),
        sets=np.zeros((num_results, 2), np.uint64),
    )


def _check(layouts: Bools, shots: int) -> None:
    if layouts.ndim != 2 or not layouts.size:
        raise ValueError(f"layouts must be [L, N], neither of them 0: {layouts.shape}")
    cells = layouts.shape[1]
    if cells > MAX_CELLS:
        raise ValueError(f"boards of more than {MAX_CELLS} cells are not solved: {cells}")
    if shots < 1:
        raise ValueError(f"a turn needs at least one shot: {shots}")
    num_ship_cells = layouts.sum(1)
    if (num_ship_cells != num_ship_cells[0]).any():
        raise ValueError("all layouts must have the same number of ship cells")


def _check_symmetries(layouts: Bools, masks: Words, counts: Ints, permutations: Ints) -> None:
    cells = layouts.shape[1]
    if permutations.ndim != 2 or permutations.shape[1] != cells or not len(permutations):
        raise ValueError(f"symmetries must be [G, {cells}]: {permutations.shape}")
    if (np.sort(permutations, 1) != np.arange(cells)).any():
        raise ValueError("symmetries must be permutations of the cells")
    for permutation in permutations:
        moved = pack_bits(layouts[:, np.argsort(permutation)])[:, 0]
        order = np.argsort(moved)
        if not (np.array_equal(moved[order], masks) and np.array_equal(counts[order], counts)):
            raise ValueError("a symmetry does not map the layouts onto themselves")


def _numbers(permutations: Ints) -> Words:
    """Uint64 [3, 2^width, G]: the numbers in base 3 of sets of each third of the cells under each
    symmetry."""
    symmetries, cells = permutations.shape
    width = -(-cells // 3)
    numbers = np.zeros((3, 1 << width, symmetries), np.uint64)
    powers = np.uint64(3) ** permutations.T.astype(np.uint64)
    for cell in range(cells):
        third, bit = divmod(cell, width)
        has_cell = np.arange(1 << width) >> bit & 1 == 1
        numbers[third, has_cell] += powers[cell]
    return numbers
