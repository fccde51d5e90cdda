"""Lists all beliefs by increasing, and values them by decreasing, number of known cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlgames.solvers.belief.rules import Ints, Rules
from rlgames.solvers.belief.tables import BeliefQueue, Level, ShotResults, Table, sorted_unique
from rlgames.solvers.budget import Budget, OutOfBudget

MAX_RESULTS = 1 << 22
"""The most results of a turn from a single state; with more a solution is out of reach anyway."""


def value_all(rules: Rules, roots: dict[int, dict[int, list[Ints]]], budget: Budget) -> Table:
    """Value all states reachable from the roots: numbers by known cells, then by certain hits."""
    queues = {known: BeliefQueue(budget) for known in range(rules.cells)}
    for known, by_hits in roots.items():
        for certain_hits, parts in by_hits.items():
            for part in parts:
                queues[known].add(certain_hits, part)
    levels: dict[int, Level] = {}
    cached: dict[int, ShotResults] = {}
    for known in range(rules.cells):
        if not queues[known].parts:
            continue
        level = levels[known] = Level.from_numbers(*queues[known].take())
        budget.allocate(level.size)
        budget.states_found += len(level.values)
        budget.check()
        results = _expand(rules, level, rules.cells - known, budget)
        _enqueue(rules, results, queues)
        if budget.can_cache(results.size):
            cached[known] = results
            budget.allocate(results.size)
    table = Table(levels)
    for known in reversed(levels):
        level = levels[known]
        from_cache = cached.pop(known, None)
        results = from_cache or _expand(rules, level, rules.cells - known, budget)
        _value(rules, level, results, rules.cells - known, table, budget)
        budget.allocate(-from_cache.size if from_cache else 0)
    return table


def _steps(
    rules: Rules, level: Level, unknown: int, budget: Budget
) -> Iterator[tuple[int, Ints, range]]:
    """Chunks of a level: the most certain hits, the rows, and how many unknown cells a turn shoots.

    The range is empty for rows whose game one turn ends.
    """
    for certain_hits in np.unique(level.certain_hits):
        rows = np.flatnonzero(level.certain_hits == certain_hits)
        turns = rules.turns(unknown, int(certain_hits))
        if unknown + certain_hits <= rules.shots:
            yield int(certain_hits), rows, range(0)
            continue
        results = max(rules.count(unknown, j) for j in turns)
        step = rules.step(unknown, turns)
        budget.check(8 * 6 * results * step)
        if results > MAX_RESULTS:
            raise OutOfBudget(f"{results:,} results of a turn are too many for the memory")
        for at in range(0, len(rows), step):
            yield int(certain_hits), rows[at : at + step], turns
            budget.check()


def _expand(rules: Rules, level: Level, unknown: int, budget: Budget) -> ShotResults:
    """All results of shots from the states of a level."""
    raw = BeliefQueue(budget)
    for certain_hits, rows, turns in _steps(rules, level, unknown, budget):
        digits = rules.decode(level.numbers[rows])
        for j in turns:
            raw.add(
                certain_hits - rules.shots + j, sorted_unique(rules.results(digits, j).reshape(-1))
            )
    if not raw.parts:
        return ShotResults.from_numbers(rules, np.zeros(0, np.int64), 0)
    numbers, max_before = raw.take()
    budget.check(27 * len(numbers))
    budget.allocate(numbers.nbytes)
    results = ShotResults.from_numbers(rules, numbers, max_before, budget.check)
    budget.allocate(-numbers.nbytes)
    return results


def _enqueue(rules: Rules, results: ShotResults, queues: dict[int, BeliefQueue]) -> None:
    """Queue the closed beliefs with unknown cells."""
    for known in np.unique(results.known):
        if known == rules.cells:
            continue
        rows = np.flatnonzero(results.known == known)
        # With one shot per turn new certain hits are charged at once.
        total = results.max_before[rows] + (0 if rules.shots == 1 else results.new_hits[rows])
        for certain_hits in np.unique(total):
            closed = sorted_unique(results.closed[rows[total == certain_hits]])
            queues[int(known)].add(int(certain_hits), closed)


def _value(
    rules: Rules,
    level: Level,
    results: ShotResults,
    unknown: int,
    table: Table,
    budget: Budget,
) -> None:
    """Compute the values of a level from those of levels with more known cells."""
    budget.check(8 * (len(results.numbers) + 1) * (int(results.max_before.max(initial=0)) + 1))
    after = results.value(rules, table)
    weights = np.append(results.weight, 0)
    for certain_hits, rows, turns in _steps(rules, level, unknown, budget):
        starts = rows if level.starts is None else level.starts[rows]
        digits = rules.decode(level.numbers[rows])
        if not turns:
            weight = rules.close(digits)[0]
            for hits in range(certain_hits + 1):
                level.values[starts + hits] = weight
            budget.states_valued += len(rows) * (certain_hits + 1)
            continue
        best = np.full((certain_hits + 1, len(rows)), np.inf)
        for j in turns:
            places = results.find(rules.results(digits, j))
            if j == turns[0]:
                weight = weights[places[:, 0]].sum(0)
            for hits in range(rules.shots - j, certain_hits + 1):
                total = after[hits - rules.shots + j][places].sum(0).min(0)
                np.minimum(best[hits], total, out=best[hits])
        for hits in range(certain_hits + 1):
            # One turn suffices if it has a shot for each unknown cell and each certain hit.
            suffices = unknown + hits <= rules.shots
            level.values[starts + hits] = weight if suffices else weight + best[hits]
        budget.states_valued += len(rows) * (certain_hits + 1)
