"""The solver of battleship."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.games.battleship import Battleship, BattleshipState
from rlgames.games.game import Game, State
from rlgames.games.symmetry import preserving
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.position import PositionValue, Solver

MAX_SALVOS = 20_000
"""The most ways to complete a turn that are compared where its cells are chosen one by one."""


class BeliefSolver(Solver[Battleship, BattleshipState]):
    """Values each possible turn: the mean over all layouts that agree with the hits and misses."""

    about = "dynamic programming over beliefs, for battleship with hits and misses only"
    max_played = math.inf
    values_late_positions = False
    usual_positions, usual_seconds = math.inf, 60.0
    _solution: BeliefSolution | None = None

    @staticmethod
    def fits(game: Game[Any]) -> bool:
        return type(game) is Battleship and not game.announces_sunk_ships

    @property
    def is_in_reach(self) -> bool:
        return self.game.fleet.layouts is not None

    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        solution = self.solution(seconds, layouts)
        return solution.optimal, solution.states

    def solution(self, seconds: float, layouts: State | None = None) -> BeliefSolution:
        """Also raises OutOfBudget for fleets whose layouts are too many to list, and ValueError for
        boards that are too large."""
        game = self.game
        ships = game.fleet.layouts if layouts is None else cast(BattleshipState, layouts).ships
        if ships is None:
            raise OutOfBudget("the fleet has too many layouts")
        cells = ships.cpu() > 0
        symmetries = preserving(game.symmetries(), cells).numpy()
        return solve_belief(cells.numpy(), game.shots, symmetries, seconds, self.memory)

    def value(self, state: BattleshipState, seconds: float) -> PositionValue:
        game = self.game
        try:
            self._solution = self._solution or self.solution(seconds)
        except ValueError as error:  # more cells than beliefs have numbers for
            raise OutOfBudget(str(error)) from None
        shot, hit, aimed = (np.asarray(field[0]) for field in (state.shot, state.hit, state.aimed))
        agreeing = self._layouts[(self._layouts[:, shot] == hit[shot]).all(1)]
        if not len(agreeing):
            raise ValueError("no layout of the fleet agrees with these hits and misses")
        salvos = _salvos(game, shot, aimed)
        seen, weights = [], []
        for cells in salvos:
            patterns, counts = np.unique(agreeing[:, cells], axis=0, return_counts=True)
            after = np.tile([shot, hit], (len(patterns), 1, 1))
            after[:, 0, cells], after[:, 1, cells] = True, patterns
            seen.append(after)
            weights.append(counts)
        shots, hits = np.concatenate(seen).swapaxes(0, 1)
        ends = np.cumsum([len(counts) for counts in weights])
        turns_left = np.split(self._solution.value(shots, hits), ends[:-1])
        totals = [float((t * counts).sum()) for t, counts in zip(turns_left, weights, strict=True)]
        values = 1.0 + np.array(totals) / len(agreeing)
        return PositionValue(float(values.min()), _action_values(game, state, salvos, values))

    @cached_property
    def _layouts(self) -> NDArray[np.bool_]:
        return np.asarray(self.game.layouts())


def _salvos(
    game: Battleship, shot: NDArray[np.bool_], aimed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The cells of each turn that can be completed from here, int64 [S, shots].

    Raises OutOfBudget where there are too many.
    """
    chosen, free = np.flatnonzero(aimed), np.flatnonzero(~shot & ~aimed)
    missing = min(game.shots, int((~shot).sum())) - len(chosen)
    if math.comb(len(free), missing) > MAX_SALVOS:
        raise OutOfBudget("too many ways to shoot")
    added = np.array([*itertools.combinations(free.tolist(), missing)], np.int64)
    return np.concatenate([np.tile(chosen, (len(added), 1)), added], 1)


def _action_values(
    game: Battleship,
    state: BattleshipState,
    salvos: NDArray[np.int64],
    values: NDArray[np.float64],
) -> list[float | None]:
    """The value of the best salvo that each action can begin."""
    target = torch.zeros(len(salvos), game.num_cells, dtype=torch.bool)
    target.scatter_(1, torch.from_numpy(salvos), True)
    value = torch.from_numpy(values)[:, None]
    if game.sequential:
        best = value.where(target & ~state.aimed, math.inf).amin(0)
    else:
        actions = torch.cat([game.action_at(state, each) for each in target.split(1)])
        best = torch.full((game.spec.actions,), math.inf, dtype=torch.float64)
        best.scatter_reduce_(0, actions, value[:, 0], "amin")
    return [None if each == math.inf else each for each in best.tolist()]
