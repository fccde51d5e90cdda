"""The optimum of battleship and optimal play: values of beliefs, searched within a budget."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlgames.core.bits import pack_bits, unpack_bits
from rlgames.solvers.belief import search as kernel
from rlgames.solvers.belief import states
from rlgames.solvers.belief.states import CELLS, Problem, ShotResults, Stack, Table
from rlgames.solvers.budget import Budget, OutOfBudget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

MAX_CELLS = 39
"""Beliefs are numbered in base 3, and 3^39 is the last power of 3 below 2^63."""

MAX_TURN_CELLS = 22
"""Cells of a turn whose results are compared; with more a solution is out of reach anyway."""

MAX_RESULTS = 1 << 22
"""The most results of a turn from a single state; with more a solution is out of reach anyway."""

FIRST_CAPACITY = 1 << 12
"""States that a table has rows for at first."""

MAX_LOAD = 0.7
"""The share of its rows that a table uses before it grows."""

WORK = 1 << 21
"""Layouts and results looked at between looks at the clock: some hundredths of a second."""


def build_problem(layouts: Bools, shots: int, symmetries: ArrayLike) -> Problem:
    """What solve_belief searches, packed as kernels take it."""
    cells = layouts.shape[1]
    if cells > MAX_CELLS:
        raise ValueError(f"boards of more than {MAX_CELLS} cells are not solved: {cells}")
    masks, counts = np.unique(pack_bits(layouts)[:, 0], return_counts=True)
    num_results = 1 << min(shots, cells, MAX_TURN_CELLS)
    return Problem(
        layouts=masks,
        weights=counts.astype(np.float64),
        numbers=_numbers(np.asarray(symmetries, np.int64)),
        shots=shots,
        cells=np.uint64((1 << cells) - 1),
        sums=np.zeros(num_results),
        sets=np.zeros((num_results, 2), np.uint64),
    )


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


class _Beliefs(NamedTuple):
    """Different beliefs: cells shot at and hit, uint64 [B], and the weights of the layouts that
    agree, float64 [B]. unknown: cells with a ship in some of them; due: cells that were not shot
    at, with a ship in all of them. row: int64 [rows], the belief of each row that was asked for.
    """

    shot: Words
    hit: Words
    weight: Floats
    unknown: Words
    due: Words
    row: Ints


class BeliefSolution:
    """The optimum and optimal play: values of states, computed when they are asked for and kept.

    seconds, memory_bytes: see solve_belief. Raises OutOfBudget.
    """

    def __init__(self, problem: Problem, seconds: float | None, memory_bytes: int | None) -> None:
        self._problem, self._limits = problem, (seconds, memory_bytes)
        self.shots, self.cells = problem.shots, int(problem.cells).bit_count()
        self._stack = _new_stack(self.cells, self.shots)
        self._table = _new_table(FIRST_CAPACITY, self.shots)
        self._budget().check()

    @property
    def states(self) -> int:
        """The belief states that are valued: closed ones, counted up to symmetry."""
        return int(self._table.size[0])

    @property
    def optimal(self) -> float:
        """The expected number of turns until all ship cells are hit."""
        nothing = np.zeros((1, self.cells), bool)
        return float(self.value(nothing, nothing)[0])

    def value(self, shot: Bools, hit: Bools) -> Floats:
        """Float64 [B]: the expected number of turns still needed, for cells shot at and hit, bool
        [B, N], at the beginning of a turn. Raises ValueError and OutOfBudget as choose does."""
        beliefs, budget = self._beliefs(shot, hit), self._budget()
        turns = [self._turns(beliefs, row, budget) for row in range(len(beliefs.shot))]
        return np.array(turns, np.float64)[beliefs.row]

    def choose(self, shot: Bools, hit: Bools) -> Bools:
        """The cells of an optimal turn, bool [B, N], for cells shot at and hit, bool [B, N].

        Each row has min(shots, cells not shot at) cells, none of them shot at before. Of optimal
        sets it takes the one with the lowest cells, but never shoots only at cells whose results
        are certain while others are left. States that optimal play never reaches are solved on
        demand, and cached.

        Raises ValueError if hit is not part of shot or no layout agrees with a row, and
        OutOfBudget if solving such states exceeds the limits.
        """
        beliefs, budget, shots = self._beliefs(shot, hit), self._budget(), self.shots
        must = beliefs.unknown.copy()
        for row in range(len(must)):
            unknown, due = int(beliefs.unknown[row]), int(beliefs.due[row])
            if unknown.bit_count() + due.bit_count() > shots and unknown:
                state = (beliefs.shot[row], beliefs.hit[row], 0 if shots == 1 else due.bit_count())
                self._state_value(*state, budget)
                self._push(*state)
                must[row] = kernel.choose_turn(
                    self._problem, self._table, self._stack, 0, np.uint64(due)
                )
        # Other shots go to certain hits, then to cells without information, the lowest first.
        rank = np.where(unpack_bits(beliefs.due[:, None], self.cells), 1, 2)
        rank[unpack_bits(must[:, None], self.cells)] = 0
        was_shot = unpack_bits(beliefs.shot[:, None], self.cells)
        rank[was_shot] = 3
        order = np.argsort(rank, axis=1, kind="stable")[:, :shots]
        chosen = np.zeros_like(was_shot)
        np.put_along_axis(chosen, order, True, axis=1)
        return (chosen & ~was_shot)[beliefs.row]

    def _beliefs(self, shot: Bools, hit: Bools) -> _Beliefs:
        """From bool [B, N] twice. Raises ValueError for what cannot have been seen."""
        shot, hit = np.asarray(shot, bool), np.asarray(hit, bool)
        if shot.shape != hit.shape or shot.ndim != 2 or shot.shape[1] != self.cells:
            raise ValueError(f"shot and hit must be [B, {self.cells}]: {shot.shape}, {hit.shape}")
        if (hit & ~shot).any():
            raise ValueError("a cell is hit that was not shot at")
        pairs = np.concatenate([pack_bits(shot), pack_bits(hit)], 1)
        rows, row = np.unique(pairs, axis=0, return_inverse=True)
        weight, sets = np.empty(len(rows)), np.empty(rows.shape, np.uint64)
        kernel.close_beliefs(self._problem.layouts, self._problem.weights, rows, weight, sets)
        if (weight == 0).any():
            raise ValueError("no layout agrees with the cells shot at and hit")
        shots, ever, always = rows[:, 0], *sets.T
        unknown, due = ever & ~always, always & ~shots
        return _Beliefs(shots, rows[:, 1], weight, unknown, due, row.reshape(-1))

    def _turns(self, beliefs: _Beliefs, row: int, budget: Budget) -> float:
        """The expected number of turns still needed."""
        due = int(beliefs.due[row]).bit_count()
        if not beliefs.unknown[row]:
            return float(math.ceil(due / self.shots))
        if int(beliefs.unknown[row]).bit_count() + due <= self.shots:
            return 1.0
        # With one shot per turn certain hits are charged at once; the tables have none.
        extra, owed = (due, 0) if self.shots == 1 else (0, due)
        value = self._state_value(beliefs.shot[row], beliefs.hit[row], owed, budget)
        return float(extra + value / beliefs.weight[row])

    def _state_value(self, shot: np.uint64, hit: np.uint64, owed: int, budget: Budget) -> float:
        """W of the closed belief after these shots, which leave cells unknown, with these certain
        hits."""
        key = self._push(shot, hit, owed)
        value = float(states.find_value(self._table, key, owed))
        if value != states.MISSING:
            return value
        depth, reason = 0, kernel.PAUSED
        while reason != kernel.DONE:
            max_count = int(MAX_LOAD * len(self._table.keys))
            reason, depth = kernel.search(
                self._problem, self._table, self._stack, depth, WORK, max_count
            )
            budget.states_found = self.states
            budget.check()
            if reason == kernel.FULL:
                self._grow(budget)
        return float(states.find_value(self._table, key, owed))

    def _push(self, shot: np.uint64, hit: np.uint64, owed: int) -> np.uint64:
        """Put a state on the stack, alone; returns its key."""
        problem, stack = self._problem, self._stack
        kernel.push_root(problem, self._table, stack, shot, hit, owed)
        unknown = int(stack.ints[0, states.UNKNOWN])
        first, last = max(1, self.shots - owed), min(unknown, self.shots)
        results = max(math.comb(unknown, size) << size for size in range(first, last + 1))
        if results > MAX_RESULTS or last > MAX_TURN_CELLS:
            raise OutOfBudget(f"{results:,} results of a turn are too many")
        return states.belief_key(problem.numbers, problem.cells, *stack.words[0, : states.TURN])

    def _budget(self) -> Budget:
        """The limits, from now on, and what is in use."""
        budget, table = Budget(*self._limits), self._table
        parts = (*self._problem, *self._stack, *self._stack.results, table.keys, table.owed)
        budget.bytes_in_use = sum(each.nbytes for each in parts if isinstance(each, np.ndarray))
        return budget

    def _grow(self, budget: Budget) -> None:
        """Double the table."""
        size = self._table.keys.nbytes + self._table.owed.nbytes
        budget.check(2 * size)
        table = _new_table(2 * len(self._table.keys), self.shots)
        budget.bytes_in_use += size
        states.copy_table(self._table, table)
        self._table = table


@cache
def compile_kernels() -> None:
    """Compile what a search calls, by a small one. Limits on time hold from then on."""
    two_cells = build_problem(np.eye(2, dtype=bool), 1, np.array([[0, 1]]))
    solution, nothing = BeliefSolution(two_cells, None, None), np.zeros((1, 2), bool)
    solution.choose(nothing, nothing)
    solution._grow(Budget(None, None))


def _new_table(capacity: int, shots: int) -> Table:
    rows = np.zeros((capacity, 2), np.uint64)
    owed = np.zeros(capacity if shots > 1 else 0, np.uint8)
    return Table(rows, rows.view(np.float64), owed, np.zeros(1, np.int64))


def _new_stack(cells: int, shots: int) -> Stack:
    """Every turn makes a cell known, so there are at most as many states as cells."""
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


def solve_belief(
    layouts: Bools,
    shots: int,
    symmetries: ArrayLike,
    seconds: float | None = 60,
    memory_bytes: int | None = 4 << 30,
) -> BeliefSolution:
    """Find the minimum expected number of turns until all ship cells are hit.

    Each turn shoots at `shots` cells not shot at before (all that are left if they are fewer);
    hits and misses are seen at the end of the turn, and nothing else is.

    layouts: bool [L, N], the cells with ships; all rows have as many, and are equally likely. Rows
        may repeat.
    shots: cells shot at in a turn, at least 1.
    symmetries: int [G, N], permutations of the cells (cell c goes to symmetries[g, c]) that map
        the layouts onto themselves.
    seconds, memory_bytes: limits on wall-clock time and on the memory of the arrays in use, looked
        at between steps that take a fraction of a second; None for no limit.
        Compiling kernels, once, does not count.

    Raises OutOfBudget at a limit, and ValueError for more than 39 cells.
    """
    problem = build_problem(layouts, shots, symmetries)
    compile_kernels()
    solution = BeliefSolution(problem, seconds, memory_bytes)
    nothing = np.zeros((1, solution.cells), bool)
    solution.value(nothing, nothing)
    return solution
