"""The optimum of battleship and optimal play."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rlgames.solvers.belief.backward_induction import value_all
from rlgames.solvers.belief.rules import Bools, Digits, Floats, Ints, Rules
from rlgames.solvers.belief.tables import ShotResults, Table, sorted_unique
from rlgames.solvers.budget import Budget


@dataclass(frozen=True)
class BeliefSolution:
    """The optimum and optimal play.

    optimal: expected number of turns until all ship cells are hit.
    states: belief states valued (closed, symmetric ones counted once).
    seconds: wall-clock time that it took.
    """

    optimal: float
    states: int
    seconds: float
    _rules: Rules = field(repr=False)
    _tables: list[Table] = field(repr=False)
    _limits: tuple[float | None, int | None] = field(repr=False)

    def choose(self, shot: Bools, hit: Bools) -> Bools:
        """The cells of an optimal turn, bool [B, N], for cells shot at and hit, bool [B, N].

        Each row has min(shots, cells not shot at) cells, none of them shot at before. Of optimal
        sets it takes the one with the lowest cells, but never shoots only at cells whose results
        are certain while others are left. States that optimal play never reaches are solved on
        demand, and cached.

        Raises ValueError if hit is not part of shot or no layout agrees with a row, and
        OutOfBudget if solving such states exceeds the limits of solve_belief.
        """
        shot, hit = np.asarray(shot, bool), np.asarray(hit, bool)
        cells = self._rules.cells
        if shot.shape != hit.shape or shot.ndim != 2 or shot.shape[1] != cells:
            raise ValueError(f"shot and hit must be [B, {cells}]: {shot.shape}, {hit.shape}")
        if (hit & ~shot).any():
            raise ValueError("a cell is hit that was not shot at")
        if not len(shot):
            return np.zeros_like(shot)
        rows, where = np.unique(shot.astype(np.uint8) + hit, axis=0, return_inverse=True)
        weight, closed, certain_hits = self._rules.close(rows)
        if (weight == 0).any():
            raise ValueError("no layout agrees with the cells shot at and hit")
        unknown = (closed == 0).sum(1)
        must = np.zeros(rows.shape, bool)
        for count in np.unique(unknown[unknown > 0]):
            same = np.flatnonzero(unknown == count)
            numbers = self._rules.canonical(closed[same])
            for due in np.unique(certain_hits[same]):
                part = certain_hits[same] == due
                must[same[part]] = self._best(
                    rows[same[part]], closed[same[part]], numbers[part], int(due)
                )
        # Other shots go to certain hits, then to cells without information, the lowest first.
        rank = np.where(must, 0, np.where((rows == 0) & (closed == 2), 1, 2))
        rank = np.where(rows > 0, 3, rank)
        order = np.argsort(rank, axis=1, kind="stable")[:, : self._rules.shots]
        chosen = np.zeros(rows.shape, bool)
        np.put_along_axis(chosen, order, True, axis=1)
        result: Bools = (chosen & (rows == 0))[where.reshape(-1)]
        return result

    def value(self, shot: Bools, hit: Bools) -> Floats:
        """Float64 [B]: the expected number of turns still needed, for cells shot at and hit, bool
        [B, N], at the beginning of a turn. Raises ValueError as choose does."""
        rules = self._rules
        rows = np.asarray(shot, np.uint8) + np.asarray(hit, bool)
        weight, closed, certain_hits = rules.close(rows)
        if (weight == 0).any():
            raise ValueError("no layout agrees with the cells shot at and hit")
        unknown = (closed == 0).sum(1)
        turns: Floats = np.ceil(certain_hits / rules.shots)
        for count in np.unique(unknown[unknown > 0]).tolist():
            for due in np.unique(certain_hits[unknown == count]).tolist():
                part = np.flatnonzero((unknown == count) & (certain_hits == due))
                # With one shot per turn certain hits are charged at once; the tables have none.
                extra, table_hits = (due, 0) if rules.shots == 1 else (0, due)
                numbers = rules.canonical(closed[part])
                table = self._table(count, numbers, table_hits)
                hits = np.full(len(part), table_hits)
                value = table.value(rules.cells - count, numbers, hits)
                turns[part] = extra + value / weight[part]
        return turns

    def _best(self, rows: Digits, closed: Digits, numbers: Ints, certain_hits: int) -> Bools:
        """The unknown cells to shoot at, [B, N]; rows are alike in both counts."""
        rules = self._rules
        size = int((closed[0] == 0).sum())
        unknown = np.nonzero(closed == 0)[1].reshape(-1, size)
        best = np.zeros(rows.shape, bool)
        if size + certain_hits <= rules.shots:
            best |= closed == 0
            return best
        due = 0 if rules.shots == 1 else certain_hits
        table = self._table(size, numbers, due)
        turns = rules.turns(size, due)
        step = rules.step(size, turns)
        # Cell 0 weighs most, so that of sets of one size the first in order weighs most.
        places = np.int64(1) << np.arange(rules.cells - 1, -1, -1)
        for at in range(0, len(rows), step):
            part = slice(at, at + step)
            owed = (rows[part] == 0) & (closed[part] == 2)
            totals, ranks = [], []
            for j in turns:
                results, before = rules.results(closed[part], j), due - rules.shots + j
                numbers_after = sorted_unique(results.reshape(-1))
                after = ShotResults.from_numbers(rules, numbers_after, before)
                value = after.value(rules, table)[before]
                totals.append(value[after.find(results)].sum(0))  # [C, B]
                paid = owed & (np.cumsum(owed, 1) <= rules.shots - j)
                cells = unknown[part][:, rules.choices(size, j)]  # [B, C, j]
                ranks.append(places[cells].sum(2).T + paid @ places)
            total, rank = np.concatenate(totals), np.concatenate(ranks)
            # Sums are exact for whole weights; the margin is for fractions.
            tied = total <= total.min(0) * (1 + 1e-9)
            winner = np.where(tied, rank, -1).argmax(0)
            first = 0
            for j in turns:
                choices = rules.choices(size, j)
                taken = np.flatnonzero((winner >= first) & (winner < first + len(choices)))
                cells = unknown[at + taken[:, None], choices[winner[taken] - first]]
                best[at + taken[:, None], cells] = True
                first += len(choices)
        return best

    def _table(self, size: int, numbers: Ints, certain_hits: int) -> Table:
        """A table that has all of these states, computed if necessary."""
        known = self._rules.cells - size
        for table in self._tables:
            if table.has(known, numbers, certain_hits):
                return table
        budget = Budget(*self._limits, None)
        self._tables.append(
            value_all(self._rules, {known: {certain_hits: [np.unique(numbers)]}}, budget)
        )
        return self._tables[-1]


def solve_belief(
    layouts: Bools,
    weights: ArrayLike,
    shots: int,
    symmetries: ArrayLike,
    seconds: float | None = 60,
    memory_bytes: int | None = 4 << 30,
    progress: Callable[[int], None] | None = None,
) -> BeliefSolution:
    """Find the minimum expected number of turns until all ship cells are hit.

    Each turn shoots at `shots` cells not shot at before (all that are left if they are fewer);
    hits and misses are seen at the end of the turn, and nothing else is.

    layouts: bool [L, N], the cells with ships; all rows have as many. Rows may repeat.
    weights: [L], the probabilities of the layouts up to a factor, none of them negative.
    shots: cells shot at in a turn, at least 1.
    symmetries: int [G, N], permutations of the cells (cell c goes to symmetries[g, c]) that map
        the layouts with their weights onto themselves.
    seconds, memory_bytes: limits on wall-clock time and on the memory of the arrays in use, looked
        at between steps that take a fraction of a second; None for no limit.
    progress: called up to ten times a second with the number of belief states found so far, which
        stays the same while they are valued.

    Raises OutOfBudget at a limit, ValueError for more than 39 cells and for what breaks the above.
    """
    budget = Budget(seconds, memory_bytes, progress)
    rules = Rules(layouts, weights, shots, symmetries)
    budget.allocate(rules.size)
    budget.check()
    weight, closed, certain_hits = rules.close(np.zeros((1, rules.cells), np.uint8))
    due = int(certain_hits[0])
    known = int((closed[0] > 0).sum())
    extra, table_hits = (due, 0) if shots == 1 else (0, due)
    if known == rules.cells:
        table = Table({})
        optimal = float(math.ceil(due / shots))
    else:
        number = rules.canonical(closed)
        table = value_all(rules, {known: {table_hits: [number]}}, budget)
        optimal = extra + float(table.value(known, number, np.array([table_hits]))[0] / weight[0])
    return BeliefSolution(
        optimal, table.states, budget.elapsed(), rules, [table], (seconds, memory_bytes)
    )
