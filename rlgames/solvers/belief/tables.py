"""Beliefs and their values by the thousand: sorted numbers, and what is kept beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rlgames.solvers.belief.rules import Floats, Ints, Rules
from rlgames.solvers.budget import Budget

MERGE = 1 << 22
"""Numbers that may wait, with repetitions, before they are merged."""


class Table:
    """W of states, by the number of known cells."""

    def __init__(self, levels: dict[int, Level]) -> None:
        self.levels = levels
        self.states = sum(len(level.values) for level in levels.values())

    def has(self, known: int, numbers: Ints, debts: int) -> bool:
        """Whether it has all of these beliefs with so many debts."""
        level = self.levels.get(known)
        if level is None:
            return False
        at = np.minimum(np.searchsorted(level.numbers, numbers), len(level.numbers) - 1)
        return bool(((level.numbers[at] == numbers) & (level.debts[at] >= debts)).all())

    def value(self, known: int, numbers: Ints, debts: Ints) -> Floats:
        """W of states, [B]. All of them must be there."""
        level = self.levels[known]
        at = places_of(level.numbers, numbers)
        if level.starts is not None:
            at = level.starts[at] + debts
        return level.values[at]


@dataclass
class Level:
    """Closed beliefs with the same number of known cells.

    numbers: int64 [B], rising. debts: int8 [B], the most debts that may be due; a belief has a
    state for each number of debts from 0 on. values: float64, W of the states, belief by belief;
    starts: int64 [B], where the states of each belief are, None if each belief has one.
    """

    numbers: Ints
    debts: NDArray[np.int8]
    values: Floats
    starts: Ints | None

    @classmethod
    def of(cls, numbers: Ints, debts: NDArray[np.int8]) -> Level:
        if not debts.any():
            return cls(numbers, debts, np.full(len(numbers), np.nan), None)
        ends = np.cumsum(debts.astype(np.int64) + 1)
        return cls(numbers, debts, np.full(ends[-1], np.nan), ends - debts - 1)

    @property
    def size(self) -> int:
        starts = 0 if self.starts is None else self.starts.nbytes
        return self.numbers.nbytes + self.debts.nbytes + self.values.nbytes + starts


@dataclass
class Children:
    """Distinct results of shooting, before they are closed.

    numbers: int64 [R], rising. weight: [R]. closed: int64 [R], the numbers of the closed beliefs.
    known: int8 [R], their numbers of known cells. new: int8 [R], the debts that closing makes.
    kept: int8 [R], the most debts that may be due before.
    """

    numbers: Ints
    weight: Floats
    closed: Ints
    known: NDArray[np.int8]
    new: NDArray[np.int8]
    kept: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        rules: Rules,
        numbers: Ints,
        kept: int | NDArray[np.int8],
        check: Callable[[], None] = lambda: None,
    ) -> Children:
        """Close the beliefs with these numbers, leaving out what cannot be."""
        weight = np.empty(len(numbers))
        closed = np.empty(len(numbers), np.int64)
        known, new = np.empty(len(numbers), np.int8), np.empty(len(numbers), np.int8)
        step = rules.close_step()
        for at in range(0, len(numbers), step):
            part = slice(at, at + step)
            weight[part], digits, new[part] = rules.close(rules.decode(numbers[part]))
            closed[part] = rules.canonical(digits)
            known[part] = np.count_nonzero(digits, axis=1)
            check()
        all_kept = np.broadcast_to(np.asarray(kept, np.int8), len(numbers))
        columns = (numbers, weight, closed, known, new, all_kept)
        possible = weight > 0
        if not possible.all():
            columns = tuple(column[possible] for column in columns)  # type: ignore[assignment]
        return cls(*columns)

    @property
    def size(self) -> int:
        return 27 * len(self.numbers)

    def value(self, rules: Rules, table: Table) -> Floats:
        """W by debts due before, [D, R + 1]; the last is 0, for what cannot be."""
        most = int(self.kept.max(initial=0))
        value = np.zeros((most + 1, len(self.numbers) + 1))
        for known in np.unique(self.known):
            rows = np.flatnonzero(self.known == known)
            for before in range(most + 1):
                rows = rows[self.kept[rows] >= before]
                debts = before + self.new[rows].astype(np.int64)
                if known == rules.cells:
                    value[before, rows] = self.weight[rows] * -(-debts // rules.shots)
                elif rules.shots == 1:
                    later = table.value(int(known), self.closed[rows], debts)
                    value[before, rows] = later + self.weight[rows] * debts
                else:
                    value[before, rows] = table.value(int(known), self.closed[rows], debts)
        return value

    def find(self, numbers: Ints) -> Ints:
        """Where the numbers are, or R for those left out."""
        at = places_of(self.numbers, numbers)
        if len(self.numbers):
            missing = self.numbers[np.minimum(at, len(self.numbers) - 1)] != numbers
            at[missing] = len(self.numbers)
        return at


class Waiting:
    """Numbers that wait to be merged, by debts due."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.parts: dict[int, list[Ints]] = {}
        self.loose: dict[int, int] = {}

    def add(self, debts: int, numbers: Ints) -> None:
        self.parts.setdefault(debts, []).append(numbers)
        self.budget.hold(numbers.nbytes)
        self.loose[debts] = self.loose.get(debts, 0) + len(numbers)
        # The first part is what was merged last; merging once the rest has grown as large keeps
        # the work in proportion to what is added.
        if self.loose[debts] > max(MERGE, len(self.parts[debts][0])):
            self._merge(debts)

    def _merge(self, debts: int) -> Ints:
        parts = self.parts[debts]
        size = sum(part.nbytes for part in parts)
        if len(parts) > 1:
            self.budget.check(2 * size)
            parts[:] = [distinct(np.concatenate(parts), "stable")]
            self.budget.hold(parts[0].nbytes - size)
        self.loose[debts] = 0
        return parts[0]

    def take(self) -> tuple[Ints, NDArray[np.int8]]:
        """All numbers, rising, each once, and the most debts due with each; none is left."""
        merged: list[tuple[Ints, NDArray[np.int8]]] = []
        for debts in sorted(self.parts, reverse=True):
            numbers = self._merge(debts)
            for others, _ in merged:
                at = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
                numbers = numbers[others[at] != numbers]
            if len(numbers):
                merged.append((numbers, np.full(len(numbers), debts, np.int8)))
        self.budget.hold(-sum(part.nbytes for parts in self.parts.values() for part in parts))
        self.parts.clear()
        if len(merged) == 1:
            return merged[0]
        numbers = np.concatenate([part[0] for part in merged])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.concatenate([part[1] for part in merged])[order]


def distinct(numbers: Ints, kind: Literal["quicksort", "stable"] = "quicksort") -> Ints:
    """Each number once, rising. kind: stable is many times faster on runs that rise already."""
    numbers = np.sort(numbers, kind=kind)
    keep = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=keep[1:])
    return numbers[keep]


def places_of(rising: Ints, numbers: Ints) -> Ints:
    """np.searchsorted, in rising order of the numbers: many times faster on large arrays."""
    flat = numbers.reshape(-1)
    order = np.argsort(flat)
    at = np.empty(len(flat), np.int64)
    at[order] = np.searchsorted(rising, flat[order])
    return at.reshape(numbers.shape)
