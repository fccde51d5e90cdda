"""The exact worth of one position and of each action there, by whichever solver fits the game."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rlgames.games.battleship import Battleship, BattleshipState
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow, KInARowState
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.belief import solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MOST_POSITIONS, Graph
from rlgames.solvers.optimum import on_cpu

MOST_TURNS = 20_000
"""So many sets of cells are compared at most where the cells of a turn are aimed at one by one."""


@dataclass(frozen=True)
class Exact:
    """What a position is worth to whoever moves when everybody plays as well as can be, from here
    on: battleship's turns, this one counted, the score to be gained, or +1, 0 and -1 for a game
    that is won, drawn and lost. actions: of each, None where it is not legal or not known."""

    value: float | None
    actions: list[float | None]


def exact_worth(
    game: Game[Any], state: State, seconds: float, memory_gb: float = 4.0
) -> Exact | None:
    """Of one live public position; None where budget and methods do not reach.

    Raises ValueError for a position that no play leads to.
    """
    if not seconds:
        return None
    game, memory = on_cpu(game), int(memory_gb * 2**30)
    try:
        if isinstance(game, Battleship):
            return _by_beliefs(game, state, seconds, memory)  # type: ignore[arg-type]
        if isinstance(game, KInARow) and game.gravity:
            found = _by_search(game, state, seconds)  # type: ignore[arg-type]
            if found.value is not None or game.spec.max_positions > MOST_POSITIONS:
                return found
        if game.spec.hidden or not game.spec.has_exact_key:
            return None
        return _by_positions(game, state, seconds, memory)
    except OutOfBudget:
        return None


def _by_positions(game: Game[Any], state: State, seconds: float, memory: int) -> Exact:
    """All positions that can follow are listed."""
    legal = game.legal_action_mask(state)[0].nonzero()[:, 0]
    before = state[torch.zeros_like(legal)]
    probability, after = game.chance_outcomes(game.apply_action(before, legal))
    worth = (after.score[:, 0] - state.score[0, 0]).double()
    live = (probability.flatten() > 0) & ~after.done
    if bool(live.any()):
        graph = Graph(game, seconds, memory, roots=after[live])
        values = graph.value([None] * game.spec.seats)
        worth[live] += graph.worth(values, after[live])
    # What cannot be has a probability of 0, and a worth that means nothing.
    worth = torch.where(probability.flatten() > 0, worth, 0.0)
    side = 1 - 2 * int(state.current_seat[0])
    means = side * (probability * worth.view_as(probability)).sum(1)
    actions: list[float | None] = [None] * game.spec.actions
    for action, mean in zip(legal.tolist(), means.tolist(), strict=True):
        actions[action] = mean
    return Exact(float(means.max()), actions)


def _by_search(game: KInARow, state: KInARowState, seconds: float) -> Exact:
    """Alpha-beta search of what each action leads to, as far as there is time."""
    search = AlphaBeta(game.rows, game.columns, game.line)
    legal = game.legal_action_mask(state)[0].nonzero()[:, 0].tolist()
    end = time.perf_counter() + seconds
    actions: list[float | None] = [None] * game.spec.actions
    for number, action in enumerate(legal):
        after = game.apply_action(state, torch.tensor([action]))
        if bool(after.done[0]):
            actions[action] = float(after.score[0, int(state.current_seat[0])])
            continue
        share = max(0.0, end - time.perf_counter()) / (len(legal) - number)
        value, proven = search.value(int(after.own[0]), int(after.occupied[0]), share)
        actions[action] = -float(value) if proven else None
    known = [worth for worth in actions if worth is not None]
    sure = len(known) == len(legal) or 1.0 in known
    return Exact(max(known) if sure else None, actions)


def _by_beliefs(game: Battleship, state: BattleshipState, seconds: float, memory: int) -> Exact:
    """Each turn that can be made: the mean over all layouts that agree with what was seen."""
    layouts = game.layouts()
    if layouts is None or "sunk" in game.show:
        raise OutOfBudget("too many layouts, or sunk ships are told")
    every = np.asarray(layouts)
    try:
        solution = solve_belief(
            every, np.ones(len(every)), game.shots, game.symmetries().numpy(), seconds, memory
        )
    except ValueError as error:  # more cells than beliefs have numbers for
        raise OutOfBudget(str(error)) from None
    shot, hit, aimed = (np.asarray(field[0]) for field in (state.shot, state.hit, state.aimed))
    agree = every[(every[:, shot] == hit[shot]).all(1)]
    if not len(agree):
        raise ValueError("no layout of the fleet agrees with these hits and misses")
    turns = _turns(game, shot, aimed)
    # A turn and one of its results in each row.
    results = [np.unique(agree[:, cells], axis=0, return_counts=True) for cells in turns]
    rows = sum(len(found) for found, _ in results)
    shots, hits = np.tile(shot, (rows, 1)), np.tile(hit, (rows, 1))
    row = 0
    for cells, (found, _) in zip(turns, results, strict=True):
        part = slice(row, row + len(found))
        shots[part, cells], hits[part, cells] = True, found
        row += len(found)
    left = np.where(hits.sum(1) == game.ship_cells, 0.0, solution.value(shots, hits))
    worth, row = [], 0
    for found, count in results:
        worth.append(1.0 + float((left[row : row + len(found)] * count).sum()) / len(agree))
        row += len(found)
    return Exact(min(worth), _of_actions(game, state, turns, worth))


def _turns(game: Battleship, shot: np.ndarray[Any, Any], aimed: np.ndarray[Any, Any]) -> list[Any]:
    """The cells of each turn that can be completed from here, int64 [shots].

    Raises OutOfBudget where they are too many.
    """
    free = np.flatnonzero(~shot & ~aimed)
    more = min(game.shots, int((~shot).sum())) - int(aimed.sum())
    if math.comb(len(free), more) > MOST_TURNS:
        raise OutOfBudget("too many ways to shoot")
    begun = np.flatnonzero(aimed)
    return [
        np.concatenate([begun, np.array(cells, np.int64)])
        for cells in itertools.combinations(free.tolist(), more)
    ]


def _of_actions(
    game: Battleship, state: BattleshipState, turns: list[Any], worth: list[float]
) -> list[float | None]:
    """The best turn that each action can begin."""
    actions: list[float | None] = [None] * game.spec.actions
    for cells, value in zip(turns, worth, strict=True):
        if game.sequential:
            own = [cell for cell in cells.tolist() if not bool(state.aimed[0, cell])]
        else:
            wanted = torch.zeros(1, game.num_cells, dtype=torch.bool)
            wanted[0, cells] = True
            own = [int(game.action_at(state, wanted)[0])]
        for action in own:
            before = actions[action]
            actions[action] = value if before is None else min(before, value)
    return actions
