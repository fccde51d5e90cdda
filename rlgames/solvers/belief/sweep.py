"""Finding all beliefs, from the fewest known cells up, and valuing them from the most down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlgames.solvers.belief.rules import Ints, Rules
from rlgames.solvers.belief.tables import Children, Level, Table, Waiting, distinct
from rlgames.solvers.budget import Budget, OutOfBudget

MOST_RESULTS = 1 << 22
"""Results of shooting from a single state beyond which a solution is out of reach anyway."""


def value_all(rules: Rules, roots: dict[int, dict[int, list[Ints]]], budget: Budget) -> Table:
    """Value all states that can follow from the roots: numbers by known cells, then by debts."""
    waiting = {known: Waiting(budget) for known in range(rules.cells)}
    for known, by_debts in roots.items():
        for debts, parts in by_debts.items():
            for part in parts:
                waiting[known].add(debts, part)
    levels: dict[int, Level] = {}
    children: dict[int, Children] = {}
    for known in range(rules.cells):
        if not waiting[known].parts:
            continue
        level = levels[known] = Level.of(*waiting[known].take())
        budget.hold(level.size)
        budget.found += len(level.values)
        budget.check()
        found = _expand(rules, level, rules.cells - known, budget)
        _spread(rules, found, waiting)
        if budget.spare(found.size):
            children[known] = found
            budget.hold(found.size)
    table = Table(levels)
    for known in reversed(levels):
        level = levels[known]
        kept = children.pop(known, None)
        found = kept or _expand(rules, level, rules.cells - known, budget)
        _value(rules, level, found, rules.cells - known, table, budget)
        budget.hold(-kept.size if kept else 0)
    return table


def _steps(
    rules: Rules, level: Level, unknown: int, budget: Budget
) -> Iterator[tuple[int, Ints, range]]:
    """Rows of a level to work on at once: their most debts, the rows, and their turns.

    Rows with an empty range of turns are those that one turn ends, however many debts are due.
    """
    for debts in np.unique(level.debts):
        rows = np.flatnonzero(level.debts == debts)
        turns = rules.turns(unknown, int(debts))
        if unknown + debts <= rules.shots:
            yield int(debts), rows, range(0)
            continue
        results = max(rules.count(unknown, j) for j in turns)
        step = rules.step(unknown, turns)
        budget.check(8 * 6 * results * step)
        if results > MOST_RESULTS:
            raise OutOfBudget(f"{results:,} results of a turn are too many for the memory")
        for at in range(0, len(rows), step):
            yield int(debts), rows[at : at + step], turns
            budget.check()


def _expand(rules: Rules, level: Level, unknown: int, budget: Budget) -> Children:
    """All results of shooting from the states of a level."""
    raw = Waiting(budget)
    for debts, rows, turns in _steps(rules, level, unknown, budget):
        digits = rules.decode(level.numbers[rows])
        for j in turns:
            raw.add(debts - rules.shots + j, distinct(rules.results(digits, j).reshape(-1)))
    if not raw.parts:
        return Children.of(rules, np.zeros(0, np.int64), 0)
    numbers, kept = raw.take()
    budget.check(27 * len(numbers))
    budget.hold(numbers.nbytes)
    children = Children.of(rules, numbers, kept, budget.check)
    budget.hold(-numbers.nbytes)
    return children


def _spread(rules: Rules, children: Children, waiting: dict[int, Waiting]) -> None:
    """Queue the closed beliefs that still need a choice."""
    for known in np.unique(children.known):
        if known == rules.cells:
            continue
        rows = np.flatnonzero(children.known == known)
        # With one shot a turn new debts are charged at once and never due.
        due = children.kept[rows] + (0 if rules.shots == 1 else children.new[rows])
        for debts in np.unique(due):
            waiting[int(known)].add(int(debts), distinct(children.closed[rows[due == debts]]))


def _value(
    rules: Rules,
    level: Level,
    children: Children,
    unknown: int,
    table: Table,
    budget: Budget,
) -> None:
    """Fill in the values of a level from those of the levels with more known cells."""
    budget.check(8 * (len(children.numbers) + 1) * (int(children.kept.max(initial=0)) + 1))
    after = children.value(rules, table)
    weights = np.append(children.weight, 0)
    for debts, rows, turns in _steps(rules, level, unknown, budget):
        starts = rows if level.starts is None else level.starts[rows]
        digits = rules.decode(level.numbers[rows])
        if not turns:
            weight = rules.close(digits)[0]
            for due in range(debts + 1):
                level.values[starts + due] = weight
            budget.valued += len(rows) * (debts + 1)
            continue
        best = np.full((debts + 1, len(rows)), np.inf)
        for j in turns:
            found = children.find(rules.results(digits, j))
            if j == turns[0]:
                weight = weights[found[:, 0]].sum(0)
            for due in range(rules.shots - j, debts + 1):
                total = after[due - rules.shots + j][found].sum(0).min(0)
                np.minimum(best[due], total, out=best[due])
        for due in range(debts + 1):
            # One turn is enough if it has a shot for each unknown cell and each debt.
            enough = unknown + due <= rules.shots
            level.values[starts + due] = weight if enough else weight + best[due]
        budget.valued += len(rows) * (debts + 1)
