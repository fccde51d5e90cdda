"""Values of beliefs, searched by kernels within a budget."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rlgames.solvers.belief.problem import MAX_TURN_CELLS, Bools, Floats, Words, build_problem
from rlgames.solvers.budget import Budget, OutOfBudget

if TYPE_CHECKING:
    from rlgames.kernels.belief_states import Problem, Stack, Table

MAX_RESULTS = 1 << 22
"""The most results of a turn from a single state; with more a solution is out of reach anyway."""

FIRST_CAPACITY = 1 << 12
"""States for which a table has rows at first."""

MAX_LOAD = 0.7
"""The share of its rows that a table uses before it grows."""

WORK = 1 << 21
"""Layouts and results looked at between looks at the clock: some hundredths of a second."""


class Search:
    """The values of states, computed when they are asked for and kept."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem = problem
        self.shots, self.cells = problem.shots, int(problem.cells).bit_count()
        self._stack = _new_stack(self.cells, self.shots)
        self._table = _new_table(FIRST_CAPACITY, self.shots)
        parts = (*problem, *self._stack, *self._stack.results)
        budget.bytes_in_use += sum(each.nbytes for each in parts if isinstance(each, np.ndarray))
        budget.bytes_in_use += _size(self._table)
        budget.check()

    @property
    def states(self) -> int:
        """How many states are valued."""
        return int(self._table.size[0])

    def close(self, seen: Words) -> tuple[Floats, Words]:
        """The weights of beliefs, [B], and the cells with a ship in any and in all agreeing
        layouts, uint64 [B, 2]. seen: uint64 [B, 2], the cells shot at and those hit."""
        from rlgames.kernels.belief import close_beliefs

        weight, sets = np.empty(len(seen)), np.empty(seen.shape, np.uint64)
        close_beliefs(self._problem.layouts, self._problem.weights, seen, weight, sets)
        return weight, sets

    def value(self, shot: int, hit: int, owed: int, budget: Budget) -> float:
        """W of the closed belief after these shots, which leave cells unknown, with these certain
        hits. Raises OutOfBudget."""
        from rlgames.kernels import belief as kernel
        from rlgames.kernels import belief_states as states

        key = self._push(shot, hit, owed)
        value = float(states.find_value(self._table, key, owed))
        if value != states.MISSING:
            return value
        depth = 0
        while True:
            capacity = len(self._table.keys)
            reason, depth = kernel.search(
                self._problem, self._table, self._stack, depth, WORK, int(MAX_LOAD * capacity)
            )
            budget.states_found = budget.states_valued = self.states
            budget.check()
            if reason == kernel.DONE:
                return float(states.find_value(self._table, key, owed))
            if reason == kernel.FULL:
                self._grow(2 * capacity, budget)

    def best_turn(self, shot: int, hit: int, owed: int, due: int, budget: Budget) -> int:
        """The unknown cells that a best turn shoots at. due: the certain hits, as cells."""
        from rlgames.kernels import belief as kernel

        self.value(shot, hit, owed, budget)
        self._push(shot, hit, owed)
        chosen = kernel.choose_turn(self._problem, self._table, self._stack, 0, np.uint64(due))
        return int(chosen)

    def _push(self, shot: int, hit: int, owed: int) -> np.uint64:
        """Put a state on the stack, alone; returns its key."""
        from rlgames.kernels import belief as kernel
        from rlgames.kernels import belief_states as states

        problem, stack = self._problem, self._stack
        kernel.push_root(problem, self._table, stack, np.uint64(shot), np.uint64(hit), owed)
        unknown = int(stack.ints[0, states.UNKNOWN])
        first, last = max(1, self.shots - owed), min(unknown, self.shots)
        results = max(math.comb(unknown, size) << size for size in range(first, last + 1))
        if results > MAX_RESULTS or last > MAX_TURN_CELLS:
            raise OutOfBudget(f"{results:,} results of a turn are too many")
        return states.belief_key(problem.numbers, problem.cells, *stack.words[0, : states.TURN])

    def _grow(self, capacity: int, budget: Budget) -> None:
        from rlgames.kernels.belief_states import copy_table

        budget.check(capacity * (_size(self._table) // len(self._table.keys)))
        table = _new_table(capacity, self.shots)
        budget.bytes_in_use += _size(table) - _size(self._table)
        copy_table(self._table, table)
        self._table = table


@cache
def compile_kernels() -> None:
    """Compile what a search calls, by a small one. Limits on time hold from then on."""
    two_cells = build_problem(np.eye(2, dtype=bool), np.ones(2), 1, np.array([[0, 1]]))
    budget = Budget(None, None)
    search = Search(two_cells, budget)
    search.close(np.zeros((1, 2), np.uint64))
    search.best_turn(0, 0, 0, 0, budget)
    search._grow(2 * FIRST_CAPACITY, budget)


def pack(cells: Bools) -> Words:
    """Uint64 [B]: sets of cells as words, from bool [B, N]."""
    return cells @ (np.uint64(1) << np.arange(cells.shape[1], dtype=np.uint64))


def unpack(words: Words, cells: int) -> Bools:
    """Bool [B, N], the inverse of pack."""
    places = np.arange(cells, dtype=np.uint64)
    return (words[:, None] >> places & np.uint64(1)).astype(bool)


def _new_table(capacity: int, shots: int) -> Table:
    from rlgames.kernels.belief_states import Table

    rows = np.zeros((capacity, 2), np.uint64)
    owed = np.zeros(capacity if shots > 1 else 0, np.uint8)
    return Table(rows, rows.view(np.float64), owed, np.zeros(1, np.int64))


def _size(table: Table) -> int:
    return table.keys.nbytes + table.owed.nbytes


def _new_stack(cells: int, shots: int) -> Stack:
    """Every turn makes a cell known, so there are at most as many states as cells."""
    from rlgames.kernels.belief_states import CELLS, ShotResults, Stack

    rows = cells + 1
    shape = (rows if shots == 1 else 0, cells)
    return Stack(
        np.zeros((rows, CELLS + cells), np.int64),
        np.zeros((rows, 3), np.uint64),
        np.zeros((rows, 3)),
        ShotResults(
            np.zeros((*shape, 2, 2), np.uint64),
            np.zeros((*shape, 2), np.uint64),
            np.zeros((*shape, 2), np.uint64),
            np.zeros((*shape, 2)),
            np.zeros((*shape, 2)),
            np.zeros(shape),
        ),
    )
