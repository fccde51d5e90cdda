"""The exact value of one position and of each of its actions, by the solver that fits the game."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.games.battleship import Battleship
from rlgames.games.battleship_notation import BattleshipState
from rlgames.games.capabilities import chance_outcomes
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARowState
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.announced import AnnouncedSolution
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.optimum import (
    AlphaBetaSolver,
    AnnouncedSolver,
    BeliefSolver,
    ListingSolver,
    Solver,
    solver_of,
)

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


def solve_position(
    game: Game[Any], state: State, seconds: float, memory_gb: float = 4.0
) -> PositionValue | None:
    """The value of one live public position; None where no solver fits or the budget runs out.

    Raises ValueError for a position that no play leads to.
    """
    solver = solver_of(game) if seconds else None
    if solver is None:
        return None
    try:
        return _value(solver, state, seconds, int(memory_gb * 2**30))
    except OutOfBudget:
        return None


@singledispatch
def _value(solver: Solver[Any], state: Any, seconds: float, memory: int) -> PositionValue:
    """Solve by listing all positions that can follow."""
    game = solver.game
    legal = game.legal_action_mask(state)[0].nonzero()[:, 0]
    before = state[torch.zeros_like(legal)]
    probability, after = chance_outcomes(game, game.apply_action(before, legal))
    value = (after.score[:, 0] - state.score[0, 0]).double()
    live = (probability.flatten() > 0) & ~after.done
    if bool(live.any()):
        graph = Graph(game, seconds, memory, roots=after[live])
        solution = graph.solve([None] * game.spec.seats)
        value[live] += graph.state_values(solution, after[live])
    # The value of an outcome of probability 0 is meaningless and may not be finite.
    value = torch.where(probability.flatten() > 0, value, 0.0)
    sign = 1 - 2 * int(state.current_seat[0])
    means = sign * (probability * value.view_as(probability)).sum(1)
    actions: list[float | None] = [None] * game.spec.actions
    for action, mean in zip(legal.tolist(), means.tolist(), strict=True):
        actions[action] = mean
    return PositionValue(float(means.max()), actions)


@_value.register
def _by_search(
    solver: AlphaBetaSolver, state: KInARowState, seconds: float, memory: int
) -> PositionValue:
    """Solve by alpha-beta search, within the time; what that leaves open, by listing positions."""
    game = solver.game
    search = AlphaBeta(game.rows, game.columns, game.line)
    result = search.analyze(int(state.own[0]), int(state.occupied[0]), seconds)
    actions: list[float | None] = [None] * game.spec.actions
    plies: list[int | None] = [None] * game.spec.actions
    for column in result.bounds:
        outcome = result.outcome(column)
        actions[column] = None if outcome is None else float(outcome)
        plies[column] = result.plies(column)
    if result.value is None and game.spec.max_positions <= MAX_POSITIONS:
        return _value(ListingSolver(game), state, seconds, memory)
    return PositionValue(None if result.value is None else float(result.value), actions, plies)


@_value.register
def _by_beliefs(
    solver: BeliefSolver, state: BattleshipState, seconds: float, memory: int
) -> PositionValue:
    """Solve each possible turn: the mean over all layouts that agree with the hits and misses."""
    game = solver.game
    try:
        solution = solver.solve(seconds, memory)
    except ValueError as error:  # more cells than beliefs have numbers for
        raise OutOfBudget(str(error)) from None
    layouts = np.asarray(game.layouts())
    shot, hit, aimed = (np.asarray(field[0]) for field in (state.shot, state.hit, state.aimed))
    agreeing = layouts[(layouts[:, shot] == hit[shot]).all(1)]
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
    turns_left = np.where(hits.sum(1) == game.ship_cells, 0.0, solution.value(shots, hits))
    values, row = [], 0
    for patterns, counts in results:
        total = float((turns_left[row : row + len(patterns)] * counts).sum())
        values.append(1.0 + total / len(agreeing))
        row += len(patterns)
    return PositionValue(min(values), _action_values(game, state, salvos, values))


@_value.register
def _by_layouts(
    solver: AnnouncedSolver, state: BattleshipState, seconds: float, memory: int
) -> PositionValue:
    """Solve each possible turn where sinkings are announced."""
    game = solver.game
    solution = AnnouncedSolution(game, seconds, memory)
    agrees = np.asarray(game.agreeing_layouts(state)[0])
    if not agrees.any():
        raise ValueError("no layout of the fleet agrees with these hits, misses and sinkings")
    shot, aimed = np.asarray(state.shot[0]), np.asarray(state.aimed[0])
    salvos = _salvos(game, shot, aimed)
    values = [solution.turn_value(agrees, shot, cells) for cells in salvos]
    return PositionValue(min(values), _action_values(game, state, salvos, values))


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
