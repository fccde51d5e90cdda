"""The least expected number of turns of battleship, by dynamic programming over beliefs.

A belief is a set S of cells shot at and the part H of them that hit; w(S, H) counts the layouts
that agree with it. With W = w times the expected number of turns still needed,

    W(S, H) = w(S, H) + min over cells A to shoot at of Σ over results h ⊆ A of W(S ∪ A, H ∪ h)

and W = 0 once all ship cells are hit. Beliefs are closed before they are valued: cells that no
layout in agreement has are counted as shot (shooting more cells that can matter never hurts), and
with one shot a turn cells that all of them have are shot at once. Symmetric beliefs are one.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_CELLS = 39
"""A belief is numbered in base 3, and 3^39 is the last power below 2^63."""

CHUNK = 1 << 22
"""Beliefs × layouts, or × shots × results, worked on at once: it bounds the memory of a step."""


class OutOfBudget(Exception):
    """The optimum is out of reach of the time or the memory given."""


@dataclass(frozen=True)
class BeliefSolution:
    """optimal: expected turns. states: beliefs valued, counting symmetric ones once."""

    optimal: float
    states: int
    seconds: float


BITS = 13
MASK = (1 << BITS) - 1
"""Masks of cells are looked up in runs of 13 bits."""


@dataclass(frozen=True)
class _Children:
    """Distinct results of shooting: W = fixed, plus the W of the belief numbered key if any."""

    fixed: NDArray[np.float64]
    key: Ints


def solve_belief(
    layouts: NDArray[np.bool_],
    shots: int,
    symmetries: Ints,
    seconds: float = 60,
    memory_bytes: int = 4 << 30,
) -> BeliefSolution:
    """Solve for equally likely layouts, bool [L, N]; shots cells are shot at in each turn.

    symmetries: [G, N], permutations of cells that turn the set of layouts into itself, the
        identity among them.
    Raises OutOfBudget beyond seconds or memory_bytes, or on a board of more than 39 cells.
    """
    return _Solver(layouts, shots, symmetries, seconds, memory_bytes).solve()


class _Solver:
    def __init__(
        self,
        layouts: NDArray[np.bool_],
        shots: int,
        symmetries: Ints,
        seconds: float,
        memory_bytes: int,
    ) -> None:
        self.cells = layouts.shape[1]
        if self.cells > MOST_CELLS:
            raise OutOfBudget(f"boards of more than {MOST_CELLS} cells are not solved")
        powers = np.int64(1) << np.arange(self.cells, dtype=np.int64)
        masks = layouts.astype(np.int64) @ powers
        self.layouts, counts = np.unique(masks, return_counts=True)
        self.weights = counts.astype(np.float64)
        self.ship_cells = int(layouts[0].sum())
        self.full = np.int64((1 << self.cells) - 1)
        self.shots = shots
        self.start, self.seconds = time.perf_counter(), seconds
        self.memory_bytes, self.used = memory_bytes, 0
        self.tables = _ternary_tables(symmetries)

    def solve(self) -> BeliefSolution:
        """Number the beliefs by growing S, then value them in the opposite order."""
        pending: list[list[tuple[Ints, ...]]] = [[] for _ in range(self.cells + 1)]
        nothing = np.zeros(1, np.int64)
        root = self._close(nothing, nothing, pending)
        levels = []
        for waiting in pending:
            if not waiting:
                continue
            key, shot, hit, weight = (
                np.concatenate(column) for column in zip(*waiting, strict=True)
            )
            waiting.clear()
            key, first = np.unique(key, return_index=True)
            shot, hit, weight = shot[first], hit[first], weight[first]
            steps = []
            for rows in self._batches(shot):
                child_shot, child_hit = self._shoot(shot[rows], hit[rows])
                number = self._number(child_shot, child_hit, self.tables[0])
                _, first, where = np.unique(number, return_index=True, return_inverse=True)
                children = self._close(
                    child_shot.reshape(-1)[first], child_hit.reshape(-1)[first], pending
                )
                where = where.reshape(number.shape).astype(np.int32)
                steps.append((rows, where, children))
                self._spend(where.nbytes + 2 * children.key.nbytes)
            levels.append((key, weight, steps))
            self._spend(4 * key.nbytes)
        keys = np.sort(np.concatenate([level[0] for level in levels])) if levels else nothing
        values = np.zeros(len(keys))
        for key, weight, steps in reversed(levels):
            own = weight.astype(np.float64)
            for rows, where, children in steps:
                own[rows] += _total(children, keys, values)[where].sum(2).min(1)
                self._spend(0)
            values[np.searchsorted(keys, key)] = own
        optimal = float(_total(root, keys, values)[0] / self.weights.sum())
        states = sum(len(level[0]) for level in levels)
        return BeliefSolution(optimal, states, time.perf_counter() - self.start)

    def _spend(self, size: int) -> None:
        self.used += size
        if self.used > self.memory_bytes:
            raise OutOfBudget(f"more than {self.memory_bytes / 2**30:g} GiB would be needed")
        if time.perf_counter() - self.start > self.seconds:
            raise OutOfBudget(f"not done after {self.seconds:g} s")

    def _batches(self, shot: Ints) -> Iterator[Ints]:
        """Rows that have the same number of cells left, few enough to be worked on at once."""
        left = self.cells - np.bitwise_count(shot.astype(np.uint64)).astype(np.int64)
        for count in np.unique(left):
            rows = np.flatnonzero(left == count)
            size = math.comb(int(count), self.shots) * 2**self.shots
            step = max(1, CHUNK // max(1, size))
            yield from (rows[at : at + step] for at in range(0, len(rows), step))

    def _shoot(self, shot: Ints, hit: Ints) -> tuple[Ints, Ints]:
        """S and H after every choice of cells and every result, [n, choices, results]."""
        bits = np.arange(self.cells)
        left = (shot[:, None] >> bits) & 1 == 0
        cells = np.nonzero(left)[1].reshape(len(shot), -1)
        chosen = np.array(list(itertools.combinations(range(cells.shape[1]), self.shots)))
        single = np.int64(1) << cells[:, chosen]  # [n, choices, shots]
        results = (np.arange(2**self.shots)[:, None] >> np.arange(self.shots)) & 1
        new_hit = single @ results.T.astype(np.int64)
        child_shot = shot[:, None, None] | single.sum(2, keepdims=True)
        return np.broadcast_to(child_shot, new_hit.shape), hit[:, None, None] | new_hit

    def _close(self, shot: Ints, hit: Ints, pending: list[list[tuple[Ints, ...]]]) -> _Children:
        """Close beliefs, queue those that need a choice by their number of cells shot at."""
        fixed = np.zeros(len(shot))
        key = np.full(len(shot), -1, np.int64)
        step = max(1, CHUNK // len(self.layouts))
        for at in range(0, len(shot), step):
            part = slice(at, at + step)
            s, h = shot[part], hit[part]
            agrees = (self.layouts & s[:, None]) == h[:, None]
            weight = agrees @ self.weights
            union = np.bitwise_or.reduce(np.where(agrees, self.layouts, 0), 1)
            common = np.bitwise_and.reduce(np.where(agrees, self.layouts, self.full), 1)
            done = np.bitwise_count(h.astype(np.uint64)) >= self.ship_cells
            todo = (weight > 0) & ~done
            sure = common & ~s
            if self.shots == 1:
                fixed[part] = todo * weight * np.bitwise_count(sure.astype(np.uint64))
                s, h = s | sure, h | sure
            s = s | (self.full & ~union)
            left = np.bitwise_count((self.full & ~s).astype(np.uint64))
            # A salvo that covers all that is left, or one layout left, needs no choice.
            last = todo & ((left <= self.shots) | (union == common))
            turns = np.ceil(left / self.shots)
            fixed[part] += np.where(last, weight * turns, 0)
            open_rows = np.flatnonzero(todo & ~last)
            s, h, weight = s[open_rows], h[open_rows], weight[open_rows]
            number = self._number(s, h, self.tables[0])
            for table in self.tables[1:]:
                np.minimum(number, self._number(s, h, table), out=number)
            key[at + open_rows] = number
            sizes = self.cells - left[open_rows].astype(np.int64)
            for size in np.unique(sizes):
                rows = sizes == size
                pending[size].append((number[rows], s[rows], h[rows], weight[rows]))
            self._spend(0)
        return _Children(fixed, key)

    def _number(self, shot: Ints, hit: Ints, table: list[Ints]) -> Ints:
        """The belief as a number in base 3: 0 unknown, 1 miss, 2 hit, cells permuted."""
        number = np.zeros(shot.shape, np.int64)
        for index, part in enumerate(table):
            low = index * BITS
            number += part[(shot >> low) & MASK] + part[(hit >> low) & MASK]
        return number


def _total(children: _Children, keys: Ints, values: NDArray[np.float64]) -> NDArray[np.float64]:
    later = np.where(children.key >= 0, values[np.searchsorted(keys, children.key) % len(keys)], 0)
    total: NDArray[np.float64] = children.fixed + later
    return total


def _ternary_tables(symmetries: Ints) -> list[list[Ints]]:
    """For each symmetry, identity first, and each run of BITS cells: Σ 3^cell by bit pattern."""
    cells = symmetries.shape[1]
    identity = np.arange(cells)
    others = [row for row in symmetries if not np.array_equal(row, identity)]
    tables = []
    for permutation in [identity, *others]:
        powers = np.int64(3) ** permutation.astype(np.int64)
        runs = [powers[low : low + BITS] for low in range(0, cells, BITS)]
        patterns = [(np.arange(2 ** len(run))[:, None] >> np.arange(len(run))) & 1 for run in runs]
        tables.append([pattern @ run for pattern, run in zip(patterns, runs, strict=True)])
    return tables
