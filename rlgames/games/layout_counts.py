"""Exact counts of a fleet's layouts where they are too many to list."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict

import numpy as np
from numpy.typing import NDArray

from rlgames.games.layouts import placements

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
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
        self._fleet = [fleet[length] for length in self._lengths]
        self._tables = [
            placements(rows, columns, length).numpy().astype(bool) for length in self._lengths
        ]
        self._memo: OrderedDict[bytes, Floats | None] = OrderedDict()

    def occupancy(self, shot: Bools, hit: Bools, max_steps: int) -> Floats | None:
        """Float64 [N]: the probability that each cell has a ship, for bool [N] twice.

        max_steps: the most ways to look at to place all ships but two. None where there are more,
        and where no layout agrees.
        """
        key = shot.tobytes() + hit.tobytes() + max_steps.to_bytes(8, "little")
        if key not in self._memo:
            if len(self._memo) >= MAX_MEMO:
                self._memo.popitem(last=False)
            self._memo[key] = self._count(shot, hit, max_steps)
        return self._memo[key]

    def _count(self, shot: Bools, hit: Bools, max_steps: int) -> Floats | None:
        from rlgames.kernels.fleet_counts import Position, Stack, count_layouts

        tables = [table[~(table & shot & ~hit).any(1)] for table in self._tables]
        hits = np.flatnonzero(hit)
        if len(hits) > MAX_HITS or self._steps(tables, hits) > max_steps:
            return None
        # The placements of each length fill whole words.
        words = [-(-len(table) // WORD) for table in tables]
        starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        cells = np.zeros((WORD * int(starts[-1]), len(shot)), bool)
        is_placement = np.zeros(len(cells), bool)
        for table, start in zip(tables, starts[:-1] * WORD, strict=True):
            cells[start : start + len(table)] = table
            is_placement[start : start + len(table)] = True
        meets = cells.astype(np.float32) @ cells.T.astype(np.float32) > 0
        num_ships = sum(self._fleet)
        position = Position(
            disjoint=_packed(~meets & is_placement),
            covers=_packed(cells.T[hits]),
            hit_sets=cells[:, hits] @ (np.uint64(1) << np.arange(len(hits), dtype=np.uint64)),
            types=np.repeat(np.arange(len(words)), WORD * np.array(words)),
            starts=starts,
            order=np.argsort([len(table) for table in tables], kind="stable"),
        )
        available = np.zeros((num_ships, int(starts[-1])), np.uint64)
        available[0] = _packed(is_placement)
        stack = Stack(
            available,
            np.zeros_like(available),
            np.zeros(num_ships, np.uint64),
            np.zeros((num_ships, len(words)), np.int64),
            np.zeros(num_ships, np.int64),
            np.zeros(num_ships, np.int64),
        )
        stack.open_hits[0] = (1 << len(hits)) - 1
        stack.ships[0] = self._fleet
        counts = np.zeros(len(cells), np.int64)
        total = count_layouts(position, stack, counts, max_steps)
        if total <= 0:
            return None
        occupied: Floats = counts.astype(np.float64) @ cells / total
        return occupied

    def _steps(self, tables: list[Bools], hits: NDArray[np.int64]) -> float:
        """About in how many ways all ships but two can be placed, if they could meet."""
        sizes = np.array([len(table) for table in tables], float)
        # Placements on a hit: the mean over the hits.
        on_hit = np.array([table[:, hits].sum() / max(1, len(hits)) for table in tables])

        def steps(left: tuple[int, ...], num_open: int) -> float:
            kinds = [kind for kind, count in enumerate(left) for _ in range(count)]
            if len(kinds) < 3:
                return 1.0
            if num_open:
                return sum(
                    float(on_hit[kind]) * steps(_less(left, kind), num_open - 1)
                    for kind in set(kinds)
                )
            equal = [kind for kind in kinds if left[kind] > 1]
            reserved = max(equal, key=lambda kind: sizes[kind], default=-1)
            kind = min(
                (k for k in kinds if k != reserved), key=lambda k: sizes[k], default=reserved
            )
            return float(sizes[kind] * steps(_less(left, kind), 0))

        return steps(tuple(self._fleet), len(hits)) if math.prod(sizes) else 0.0


def _less(left: tuple[int, ...], kind: int) -> tuple[int, ...]:
    """The ships without one of this kind."""
    return tuple(count - (each == kind) for each, count in enumerate(left))


def _packed(bits: Bools) -> Words:
    """Rows of bits as words, uint64 [..., bits / 64]."""
    packed = np.packbits(np.ascontiguousarray(bits), axis=-1, bitorder="little")
    return packed.view(np.uint64)
