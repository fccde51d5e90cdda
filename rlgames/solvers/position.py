"""The exact values of positions and of their actions, by the solver that fits the game."""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlgames.games.battleship import Battleship, BattleshipState
from rlgames.games.capabilities import chance_outcomes
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARowState
from rlgames.solvers.belief import BeliefSolution
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.connect4 import MAX_TABLE_ENTRIES, AlphaBeta
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.optimum import (
    AlphaBetaSolver,
    BeliefSolver,
    ListingSolver,
    ProofSolver,
    Solver,
    solver_of,
)
from rlgames.solvers.proof import MAX_SLOTS, ProofSearch

X = TypeVar("X", bound=Solver[Any])
S = TypeVar("S", bound=State)

MAX_SALVOS = 20_000
"""The most ways to complete a turn that are compared where its cells are chosen one by one."""


@dataclass(frozen=True)
class PositionValue:
    """What a position is worth to the seat to move when every seat plays optimally from here on.

    value: the turns of battleship, including this one; the score still to be gained; or +1, 0 and
    -1 for a game that is won, drawn and lost. None where it is unknown. actions: the same for each
    action, None where it is illegal or unknown. plies: for each action, how many plies the game
    then takes, this one included, if the winner hurries and the loser delays; None if unknown.
    """

    value: float | None
    actions: list[float | None]
    plies: list[int | None] | None = None


def solve_position(game: Game[Any], state: State, seconds: float) -> PositionValue | None:
    """The value of one live public position; None where no solver fits or the budget runs out.

    Raises ValueError for a position that no play leads to.
    """
    solver = position_solver(game) if seconds else None
    return None if solver is None else solver.solve(state, seconds)[0]


def position_solver(
    game: Game[Any], max_positions: float = math.inf
) -> PositionSolver[Any, Any] | None:
    """What values positions of a game; None where no solver fits, and for fleets with too many
    layouts. max_positions: see PositionSolver; it takes at most 4 GiB of memory."""
    solver = solver_of(game)
    if solver is None or (isinstance(solver, BeliefSolver) and not solver.is_in_reach):
        return None
    return SOLVERS[type(solver)](solver, 4 * 2**30, max_positions)


class PositionSolver(ABC, Generic[X, S]):
    """Values many positions: what is found out about one serves the others.

    max_positions: where positions are searched or listed, the most for each one that is valued; the
    same on every machine, as opposed to seconds.
    """

    def __init__(self, solver: X, memory: int, max_positions: float) -> None:
        self.solver, self.memory, self.max_positions = solver, memory, max_positions

    def solve(self, state: S, seconds: float) -> list[PositionValue | None]:
        """The values of live public positions [B], the latest first; None beyond the budget.

        seconds: a limit on all of them together. Raises ValueError for a position that no play
        leads to.
        """
        values: list[PositionValue | None] = [None] * len(state)
        end = time.perf_counter() + seconds
        for row in self.solver.game.depth(state).argsort(descending=True, stable=True).tolist():
            left = end - time.perf_counter()
            if left <= 0:
                break
            with suppress(OutOfBudget):
                values[row] = self.value(state[torch.tensor([row])], left)
        return values

    @abstractmethod
    def value(self, state: S, seconds: float) -> PositionValue:
        """The value of one position. Raises as solve, and OutOfBudget."""

    def best_actions(self, state: S) -> tuple[float | None, list[int]]:
        """The value of one position and its best actions; beyond max_positions None and those that
        are not known to be worse than others. Both depend on this position alone."""
        try:
            found = self.value(state, math.inf)
        except OutOfBudget:
            legal = self.solver.game.legal_action_mask(state)[0]
            return None, legal.nonzero()[:, 0].tolist()
        assert found.value is not None
        values = [-math.inf if value is None else value for value in found.actions]
        best = [action for action, value in enumerate(values) if value > found.value - 1e-9]
        return found.value, best


class ByListing(PositionSolver[Solver[Any], State]):
    """Lists all positions that can follow."""

    def solve(self, state: State, seconds: float) -> list[PositionValue | None]:
        values: list[PositionValue | None] = [None] * len(state)
        end = time.perf_counter() + seconds
        depth = self.solver.game.depth(state)

        def solve(rows: Tensor) -> bool:
            """List what follows from all rows at once or, beyond the budget, from the later half
            and then from the rest. Returns whether all are valued."""
            try:
                part = self._list(state[rows], end - time.perf_counter())
            except OutOfBudget:
                depths = depth[rows].unique()
                late = depth[rows] >= depths[len(depths) // 2]
                return len(depths) > 1 and solve(rows[late]) and solve(rows[~late])
            for row, value in zip(rows.tolist(), part, strict=True):
                values[row] = value
            return True

        solve(torch.arange(len(state)))
        return values

    def value(self, state: State, seconds: float) -> PositionValue:
        return self._list(state, seconds)[0]

    def _list(self, state: State, seconds: float) -> list[PositionValue]:
        game = self.solver.game
        row, action = game.legal_action_mask(state).nonzero().unbind(1)
        before = state[row]
        probability, after = chance_outcomes(game, game.apply_action(before, action))
        outcomes = probability.shape[1]
        value = (after.score - before.score.repeat_interleave(outcomes, 0))[:, 0].double()
        live = (probability.flatten() > 0) & ~after.done
        if bool(live.any()):
            graph = Graph(game, seconds, self.memory, self.max_positions, roots=after[live])
            solution = graph.solve([None] * game.spec.seats)
            value[live] += graph.state_values(solution, after[live])
        # The value of an outcome of probability 0 is meaningless and may not be finite.
        value = torch.where(probability.flatten() > 0, value, 0.0)
        sign = 1 - 2 * before.current_seat
        means = sign * (probability * value.view_as(probability)).sum(1)
        values: list[PositionValue] = []
        for number in range(len(state)):
            mine = row == number
            actions: list[float | None] = [None] * game.spec.actions
            for each, mean in zip(action[mine].tolist(), means[mine].tolist(), strict=True):
                actions[each] = mean
            values.append(PositionValue(float(means[mine].max()), actions))
        return values


class BySearch(PositionSolver[AlphaBetaSolver, KInARowState]):
    """Searches within the limits; what that leaves open on small boards is valued by listing. Plies
    are known only without a limit on positions."""

    @cached_property
    def _search(self) -> AlphaBeta:
        game = self.solver.game
        entries = int(min(4 * self.max_positions, MAX_TABLE_ENTRIES))
        return AlphaBeta(game.rows, game.columns, game.line, entries)

    def value(self, state: KInARowState, seconds: float) -> PositionValue:
        game, limit = self.solver.game, self.max_positions
        result = self._search.analyze(
            int(state.own[0]), int(state.occupied[0]), seconds, limit, limit == math.inf
        )
        actions: list[float | None] = [None] * game.spec.actions
        plies: list[int | None] = [None] * game.spec.actions
        for column in result.bounds:
            outcome = result.outcome(column)
            actions[column] = None if outcome is None else float(outcome)
            plies[column] = result.plies(column)
        if result.value is None and game.spec.max_positions <= MAX_POSITIONS:
            return ByListing(ListingSolver(game), self.memory, limit).value(state, seconds)
        return PositionValue(None if result.value is None else float(result.value), actions, plies)

    def best_actions(self, state: KInARowState) -> tuple[float | None, list[int]]:
        """Those that win as soon, or lose as late, as can be told with the positions that the
        question who wins has left."""
        search, board = self._search, (int(state.own[0]), int(state.occupied[0]))
        search.clear()
        before = search.positions
        result = search.search(*board, max_positions=self.max_positions)
        if result.value is None:
            return None, result.columns
        left = self.max_positions - (search.positions - before)
        scored = search.analyze(*board, max_positions=left)
        return float(result.value), (result if scored.value is None else scored).best_columns


class ByProof(PositionSolver[ProofSolver, State]):
    """Searches for who wins, and then for who wins after each action, within the limits."""

    @cached_property
    def _search(self) -> ProofSearch:
        return ProofSearch(self.solver.game, min(4 * self.max_positions, MAX_SLOTS))

    def value(self, state: State, seconds: float) -> PositionValue:
        game, search = self.solver.game, self._search
        legal = game.legal_action_mask(state)[0].nonzero()[:, 0]
        before = state[torch.zeros_like(legal)]
        after = game.apply_action(before, legal)
        gained = (1 - 2 * before.current_seat) * (after.score - before.score)[:, 0]
        end, last = time.perf_counter() + seconds, search.positions + self.max_positions
        actions: list[float | None] = [None] * game.spec.actions
        best, best_actions = search.search(state, seconds / 2, self.max_positions / 2)
        for action in [] if best is None else best_actions:
            actions[action] = float(best or 0)
        for number, action in enumerate(legal.tolist()):
            if bool(after.done[number]):
                actions[action] = float(gained[number])
            if actions[action] is not None:
                continue
            # What one action does not need is left to the others.
            now, share = time.perf_counter(), len(legal) - number
            row = after[torch.tensor([number])]
            left = max(end - now, 0.0) / share, (last - search.positions) / share
            value, _ = search.search(row, *left)
            actions[action] = None if value is None else float(0 - value)
        known = [value for value in actions if value is not None]
        if best is None and (1.0 in known or len(known) == len(legal)):
            best = int(max(known))
        return PositionValue(None if best is None else float(best), actions)

    def best_actions(self, state: State) -> tuple[float | None, list[int]]:
        """As ProofSearch.search."""
        self._search.clear()
        value, actions = self._search.search(state, max_positions=self.max_positions)
        return None if value is None else float(value), actions


class ByBeliefs(PositionSolver[BeliefSolver, BattleshipState]):
    """Values each possible turn: the mean over all layouts that agree with the hits and misses."""

    _solution: BeliefSolution | None = None

    def value(self, state: BattleshipState, seconds: float) -> PositionValue:
        game = self.solver.game
        try:
            self._solution = self._solution or self.solver.solve(seconds, self.memory)
        except ValueError as error:  # more cells than beliefs have numbers for
            raise OutOfBudget(str(error)) from None
        shot, hit, aimed = (np.asarray(field[0]) for field in (state.shot, state.hit, state.aimed))
        agreeing = self._layouts[(self._layouts[:, shot] == hit[shot]).all(1)]
        if not len(agreeing):
            raise ValueError("no layout of the fleet agrees with these hits and misses")
        salvos = _salvos(game, shot, aimed)
        # One row for each salvo and each of its results.
        results = [np.unique(agreeing[:, cells], axis=0, return_counts=True) for cells in salvos]
        rows = sum(len(patterns) for patterns, _ in results)
        shots, hits = np.tile(shot, (rows, 1)), np.tile(hit, (rows, 1))
        row = 0
        for cells, (patterns, _) in zip(salvos, results, strict=True):
            part = slice(row, row + len(patterns))
            shots[part, cells], hits[part, cells] = True, patterns
            row += len(patterns)
        turns_left = self._solution.value(shots, hits)
        values, row = [], 0
        for patterns, counts in results:
            total = float((turns_left[row : row + len(patterns)] * counts).sum())
            values.append(1.0 + total / len(agreeing))
            row += len(patterns)
        return PositionValue(min(values), _action_values(game, state, salvos, values))

    @cached_property
    def _layouts(self) -> NDArray[np.bool_]:
        return np.asarray(self.solver.game.layouts())


SOLVERS: dict[type[Solver[Any]], type[PositionSolver[Any, Any]]] = {
    ListingSolver: ByListing,
    AlphaBetaSolver: BySearch,
    ProofSolver: ByProof,
    BeliefSolver: ByBeliefs,
}


def _salvos(
    game: Battleship, shot: NDArray[np.bool_], aimed: NDArray[np.bool_]
) -> list[NDArray[np.int64]]:
    """The cells of each turn that can be completed from here, int64 [shots].

    Raises OutOfBudget where there are too many.
    """
    free = np.flatnonzero(~shot & ~aimed)
    missing = min(game.shots, int((~shot).sum())) - int(aimed.sum())
    if math.comb(len(free), missing) > MAX_SALVOS:
        raise OutOfBudget("too many ways to shoot")
    chosen = np.flatnonzero(aimed)
    return [
        np.concatenate([chosen, np.array(cells, np.int64)])
        for cells in itertools.combinations(free.tolist(), missing)
    ]


def _action_values(
    game: Battleship, state: BattleshipState, salvos: list[NDArray[np.int64]], values: list[float]
) -> list[float | None]:
    """The value of the best salvo that each action can begin."""
    actions: list[float | None] = [None] * game.spec.actions
    for cells, value in zip(salvos, values, strict=True):
        if game.sequential:
            beginnings = [cell for cell in cells.tolist() if not bool(state.aimed[0, cell])]
        else:
            target = torch.zeros(1, game.num_cells, dtype=torch.bool)
            target[0, cells] = True
            beginnings = [int(game.action_at(state, target)[0])]
        for action in beginnings:
            best = actions[action]
            actions[action] = value if best is None else min(best, value)
    return actions
