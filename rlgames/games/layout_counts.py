"""Exact counts of a fleet's layouts where they are too many to list."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.games.layouts import placements

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD = 64
MAX_HITS = 64
"""Sets of hits are words."""

MAX_MEMO = 4096
"""Positions whose counts are kept."""


class LayoutCounter:
    """How many layouts that agree with hits and misses have a ship on each cell.

    Every layout counts once: ships of equal length are interchangeable.
    """

    def __init__(self, rows: int, columns: int, ships: list[int]) -> None:
        fleet = Counter(ships)
        self._lengths = sorted(fleet)
        self._fleet = np.array([fleet[length] for length in self._lengths])
        self._tables = [
            placements(rows, columns, length).numpy().astype(bool) for length in self._lengths
        ]
        self._memo: OrderedDict[bytes, Floats] = OrderedDict()

    def occupancy(self, shot: Bools, hit: Bools, max_steps: int) -> Floats:
        """Float64 [B, N]: the probability that each cell has a ship, for bool [B, N] twice.

        max_steps: the most ways to look at to place all ships but two. NaN in rows where there are
        more, and where no layout agrees.
        """
        limit = max_steps.to_bytes(8, "little")
        keys = [s.tobytes() + h.tobytes() + limit for s, h in zip(shot, hit, strict=True)]
        rows = {key: row for row, key in enumerate(keys) if key not in self._memo}
        missing = list(rows.values())
        memo = dict(zip(rows, self.count(shot[missing], hit[missing], max_steps), strict=True))
        result = np.empty(shot.shape)
        for row, key in enumerate(keys):
            result[row] = memo[key] if key in memo else self._memo[key]
        self._memo.update(memo)
        while len(self._memo) > MAX_MEMO:
            self._memo.popitem(last=False)
        return result

    def count(self, shot: Bools, hit: Bools, max_steps: int) -> Floats:
        """As occupancy, without a memory of earlier positions."""
        from rlgames.kernels.fleet_occupancy import write_occupancy

        occupancy = np.empty(shot.shape)
        tables, position, stack, estimate, counts = self._kernel_arrays
        shot, hit = np.ascontiguousarray(shot), np.ascontiguousarray(hit)
        write_occupancy(shot, hit, tables, position, stack, estimate, counts, max_steps, occupancy)
        return occupancy

    @cached_property
    def _kernel_arrays(self) -> tuple[Any, Any, Any, Any, Ints]:
        """The tables of the kernel, and room to count in."""
        from rlgames.kernels.fleet_counts import Position, Stack
        from rlgames.kernels.fleet_occupancy import Estimate, FleetTables

        num_types, num_cells = len(self._tables), self._tables[0].shape[1]
        # The placements of each length fill whole words.
        words = [-(-len(table) // WORD) for table in self._tables]
        starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        num_words = int(starts[-1])
        covered = np.zeros((WORD * num_words, num_cells), bool)
        is_placement = np.zeros(len(covered), bool)
        cells = np.full((len(covered), max(self._lengths)), -1)
        for table, length, start in zip(
            self._tables, self._lengths, starts[:-1] * WORD, strict=True
        ):
            rows = slice(start, start + len(table))
            covered[rows], is_placement[rows] = table, True
            cells[rows, :length] = table.nonzero()[1].reshape(-1, length)
        meets = covered.astype(np.float32) @ covered.T.astype(np.float32) > 0
        radix = np.concatenate([[1], np.cumprod(self._fleet + 1)])
        num_ships = int(self._fleet.sum())
        return (
            FleetTables(
                _packed(is_placement), _packed(covered.T), cells, self._fleet, radix[:-1].copy()
            ),
            Position(
                disjoint=_packed(~meets & is_placement),
                covers=np.zeros((MAX_HITS, num_words), np.uint64),
                hit_sets=np.zeros(len(covered), np.uint64),
                types=np.repeat(np.arange(num_types), WORD * np.array(words)),
                starts=starts,
                order=np.arange(num_types),
            ),
            Stack(
                available=np.zeros((num_ships, num_words), np.uint64),
                candidates=np.zeros((num_ships, num_words), np.uint64),
                open_hits=np.zeros(num_ships, np.uint64),
                ships=np.zeros((num_ships, num_types), np.int64),
                placed=np.zeros(num_ships, np.int64),
                totals=np.zeros(num_ships, np.int64),
            ),
            Estimate(
                np.zeros(num_types), np.zeros(num_types), np.zeros(math.prod(self._fleet + 1))
            ),
            np.zeros(len(covered), np.int64),
        )


def _packed(bits: Bools) -> Words:
    """Rows of bits as words, uint64 [..., bits / 64]."""
    packed = np.packbits(np.ascontiguousarray(bits), axis=-1, bitorder="little")
    return packed.view(np.uint64)
