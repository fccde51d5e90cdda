"""Large sets of beliefs: sorted numbers, with values and other columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlgames.solvers.belief.rules import Floats, Ints, Rules
from rlgames.solvers.budget import Budget

MAX_UNMERGED = 1 << 22
"""Numbers that are queued, with repetitions, before they are merged."""


class Table:
    """W of states, by the number of known cells."""

    def __init__(self, levels: dict[int, Level]) -> None:
        self.levels = levels
        self.states = sum(len(level.values) for level in levels.values())

    def has(self, known: int, numbers: Ints, certain_hits: int) -> bool:
        """Whether it has all of these beliefs with this many certain hits."""
        level = self.levels.get(known)
        if level is None:
            return False
        at = np.minimum(np.searchsorted(level.numbers, numbers), len(level.numbers) - 1)
        return bool(
            ((level.numbers[at] == numbers) & (level.certain_hits[at] >= certain_hits)).all()
        )

    def value(self, known: int, numbers: Ints, certain_hits: Ints) -> Floats:
        """W of states, [B]. All of them must be there."""
        level = self.levels[known]
        at = fast_searchsorted(level.numbers, numbers)
        if level.starts is not None:
            at = level.starts[at] + certain_hits
        return level.values[at]


@dataclass
class Level:
    """Closed beliefs with the same number of known cells.

    numbers: int64 [B], ascending. certain_hits: int8 [B], the most certain hits that a belief can
    have; it has a state for each number of them from 0 on. values: float64, W of the states, belief
    by belief; starts: int64 [B], where the states of each belief start, None if each has one.
    """

    numbers: Ints
    certain_hits: NDArray[np.int8]
    values: Floats
    starts: Ints | None

    @classmethod
    def from_numbers(cls, numbers: Ints, certain_hits: NDArray[np.int8]) -> Level:
        if not certain_hits.any():
            return cls(numbers, certain_hits, np.full(len(numbers), np.nan), None)
        ends = np.cumsum(certain_hits.astype(np.int64) + 1)
        return cls(numbers, certain_hits, np.full(ends[-1], np.nan), ends - certain_hits - 1)

    @property
    def size(self) -> int:
        starts = 0 if self.starts is None else self.starts.nbytes
        return self.numbers.nbytes + self.certain_hits.nbytes + self.values.nbytes + starts


@dataclass
class ShotResults:
    """Distinct results of shots, before they are closed.

    numbers: int64 [R], ascending. weight: [R]. closed: int64 [R], the numbers of the closed
    beliefs. known: int8 [R], their numbers of known cells. new_hits: int8 [R], the certain hits
    that closing adds. max_before: int8 [R], the most certain hits there can be before.
    """

    numbers: Ints
    weight: Floats
    closed: Ints
    known: NDArray[np.int8]
    new_hits: NDArray[np.int8]
    max_before: NDArray[np.int8]

    @classmethod
    def from_numbers(
        cls,
        rules: Rules,
        numbers: Ints,
        max_before: int | NDArray[np.int8],
        check: Callable[[], None] = lambda: None,
    ) -> ShotResults:
        """Close the beliefs with these numbers, leaving out impossible ones."""
        weight = np.empty(len(numbers))
        closed = np.empty(len(numbers), np.int64)
        known, new_hits = np.empty(len(numbers), np.int8), np.empty(len(numbers), np.int8)
        step = rules.close_step()
        for at in range(0, len(numbers), step):
            part = slice(at, at + step)
            weight[part], digits, new_hits[part] = rules.close(rules.decode(numbers[part]))
            closed[part] = rules.canonical(digits)
            known[part] = np.count_nonzero(digits, axis=1)
            check()
        all_max_before = np.broadcast_to(np.asarray(max_before, np.int8), len(numbers))
        columns = (numbers, weight, closed, known, new_hits, all_max_before)
        possible = weight > 0
        if not possible.all():
            columns = tuple(column[possible] for column in columns)  # type: ignore[assignment]
        return cls(*columns)

    @property
    def size(self) -> int:
        return 27 * len(self.numbers)

    def value(self, rules: Rules, table: Table) -> Floats:
        """W by certain hits before, [D, R + 1]; the last column, for the impossible, is 0."""
        most = int(self.max_before.max(initial=0))
        value = np.zeros((most + 1, len(self.numbers) + 1))
        for known in np.unique(self.known):
            rows = np.flatnonzero(self.known == known)
            for before in range(most + 1):
                rows = rows[self.max_before[rows] >= before]
                certain_hits = before + self.new_hits[rows].astype(np.int64)
                if known == rules.cells:
                    value[before, rows] = self.weight[rows] * -(-certain_hits // rules.shots)
                elif rules.shots == 1:
                    later = table.value(int(known), self.closed[rows], certain_hits)
                    value[before, rows] = later + self.weight[rows] * certain_hits
                else:
                    value[before, rows] = table.value(int(known), self.closed[rows], certain_hits)
        return value

    def find(self, numbers: Ints) -> Ints:
        """The places of the numbers, or R for those that are impossible."""
        at = fast_searchsorted(self.numbers, numbers)
        if len(self.numbers):
            missing = self.numbers[np.minimum(at, len(self.numbers) - 1)] != numbers
            at[missing] = len(self.numbers)
        return at


class BeliefQueue:
    """Numbers of beliefs to expand, by their certain hits; merged now and then."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.parts: dict[int, list[Ints]] = {}
        self.unmerged: dict[int, int] = {}

    def add(self, certain_hits: int, numbers: Ints) -> None:
        self.parts.setdefault(certain_hits, []).append(numbers)
        self.budget.allocate(numbers.nbytes)
        self.unmerged[certain_hits] = self.unmerged.get(certain_hits, 0) + len(numbers)
        # The first part is the result of the last merge. Merging when the rest is as large keeps
        # the work proportional to the numbers added.
        if self.unmerged[certain_hits] > max(MAX_UNMERGED, len(self.parts[certain_hits][0])):
            self._merge(certain_hits)

    def _merge(self, certain_hits: int) -> Ints:
        parts = self.parts[certain_hits]
        size = sum(part.nbytes for part in parts)
        if len(parts) > 1:
            self.budget.check(2 * size)
            parts[:] = [sorted_unique(np.concatenate(parts), "stable")]
            self.budget.allocate(parts[0].nbytes - size)
        self.unmerged[certain_hits] = 0
        return parts[0]

    def take(self) -> tuple[Ints, NDArray[np.int8]]:
        """Remove all numbers: ascending, each once, with the most certain hits of each."""
        merged: list[tuple[Ints, NDArray[np.int8]]] = []
        for certain_hits in sorted(self.parts, reverse=True):
            numbers = self._merge(certain_hits)
            for others, _ in merged:
                at = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
                numbers = numbers[others[at] != numbers]
            if len(numbers):
                merged.append((numbers, np.full(len(numbers), certain_hits, np.int8)))
        self.budget.allocate(-sum(part.nbytes for parts in self.parts.values() for part in parts))
        self.parts.clear()
        if len(merged) == 1:
            return merged[0]
        numbers = np.concatenate([part[0] for part in merged])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.concatenate([part[1] for part in merged])[order]


def sorted_unique(numbers: Ints, kind: Literal["quicksort", "stable"] = "quicksort") -> Ints:
    """Each number once, ascending. kind: stable is many times faster on sorted runs."""
    numbers = np.sort(numbers, kind=kind)
    keep = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=keep[1:])
    return numbers[keep]


def fast_searchsorted(ascending: Ints, numbers: Ints) -> Ints:
    """np.searchsorted in ascending order of the numbers: many times faster on large arrays."""
    flat = numbers.reshape(-1)
    order = np.argsort(flat)
    at = np.empty(len(flat), np.int64)
    at[order] = np.searchsorted(ascending, flat[order])
    return at.reshape(numbers.shape)
