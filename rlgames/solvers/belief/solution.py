"""The optimum of battleship and optimal play."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rlgames.solvers.belief.problem import Bools, Floats, Ints, Words, build_problem
from rlgames.solvers.belief.search import Search, compile_kernels, pack, unpack
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
    _search: Search = field(repr=False)
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
        beliefs = _Beliefs.from_shots(self._search, shot, hit)
        shots, budget = self._search.shots, Budget(*self._limits)
        must = np.zeros_like(beliefs.shot)
        for row in range(len(must)):
            unknown, due = int(beliefs.unknown[row]), int(beliefs.due[row])
            if unknown.bit_count() + due.bit_count() > shots and unknown:
                owed = 0 if shots == 1 else due.bit_count()
                must[row] = self._search.best_turn(*beliefs.seen(row), owed, due, budget)
            else:
                must[row] = unknown
        # Other shots go to certain hits, then to cells without information, the lowest first.
        cells = self._search.cells
        rank = np.where(unpack(beliefs.due, cells), 1, 2)
        rank[unpack(must, cells)] = 0
        was_shot = unpack(beliefs.shot, cells)
        rank[was_shot] = 3
        order = np.argsort(rank, axis=1, kind="stable")[:, :shots]
        chosen = np.zeros_like(was_shot)
        np.put_along_axis(chosen, order, True, axis=1)
        return (chosen & ~was_shot)[beliefs.row]

    def value(self, shot: Bools, hit: Bools) -> Floats:
        """Float64 [B]: the expected number of turns still needed, for cells shot at and hit, bool
        [B, N], at the beginning of a turn. Raises ValueError and OutOfBudget as choose does."""
        beliefs = _Beliefs.from_shots(self._search, shot, hit)
        budget = Budget(*self._limits)
        turns = [beliefs.turns(self._search, row, budget) for row in range(len(beliefs.shot))]
        return np.array(turns, np.float64)[beliefs.row]


@dataclass(frozen=True)
class _Beliefs:
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

    @classmethod
    def from_shots(cls, search: Search, shot: Bools, hit: Bools) -> _Beliefs:
        """From bool [B, N] twice. Raises ValueError for what cannot have been seen."""
        shot, hit = np.asarray(shot, bool), np.asarray(hit, bool)
        if shot.shape != hit.shape or shot.ndim != 2 or shot.shape[1] != search.cells:
            raise ValueError(f"shot and hit must be [B, {search.cells}]: {shot.shape}, {hit.shape}")
        if (hit & ~shot).any():
            raise ValueError("a cell is hit that was not shot at")
        pairs = np.stack([pack(shot), pack(hit)], 1)
        rows, row = np.unique(pairs, axis=0, return_inverse=True)
        weight, sets = search.close(rows)
        shots, ever, always = rows[:, 0], *sets.T
        if (weight == 0).any():
            raise ValueError("no layout agrees with the cells shot at and hit")
        unknown, due = ever & ~always, always & ~shots
        return cls(shots, rows[:, 1], weight, unknown, due, row.reshape(-1))

    def seen(self, row: int) -> tuple[int, int]:
        """The cells shot at and those hit."""
        return int(self.shot[row]), int(self.hit[row])

    def turns(self, search: Search, row: int, budget: Budget) -> float:
        """The expected number of turns still needed."""
        due = int(self.due[row]).bit_count()
        if not self.unknown[row]:
            return float(math.ceil(due / search.shots))
        if int(self.unknown[row]).bit_count() + due <= search.shots:
            return 1.0
        # With one shot per turn certain hits are charged at once; the tables have none.
        extra, owed = (due, 0) if search.shots == 1 else (0, due)
        value = search.value(*self.seen(row), owed, budget)
        return float(extra + value / self.weight[row])


def solve_belief(
    layouts: Bools,
    weights: ArrayLike,
    shots: int,
    symmetries: ArrayLike,
    seconds: float | None = 60,
    memory_bytes: int | None = 4 << 30,
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
        Compiling kernels, once, does not count.

    Raises OutOfBudget at a limit, ValueError for more than 39 cells and for what breaks the above.
    """
    problem = build_problem(layouts, weights, shots, symmetries)
    compile_kernels()
    budget = Budget(seconds, memory_bytes)
    budget.check()
    search = Search(problem, budget)
    nothing = np.zeros((1, search.cells), bool)
    optimal = _Beliefs.from_shots(search, nothing, nothing).turns(search, 0, budget)
    return BeliefSolution(optimal, search.states, budget.elapsed(), search, (seconds, memory_bytes))
