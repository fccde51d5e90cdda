"""The exact optimum of a game, by the solver that the game names."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from rlgames.games.battleship import Battleship
from rlgames.games.battleship_notation import BattleshipState
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.symmetry import preserving
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.announced import AnnouncedSolution
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MAX_POSITIONS, Graph

MAX_SOLVER_ENTRIES = 1 << 27
"""The most entries of the table that is used to solve Connect 4: 1 GiB."""

ENTRIES_PER_SECOND = 1 << 20
"""Entries for each second of the time limit: short searches do not need more."""


@dataclass(frozen=True)
class Optimum:
    """The value of a game when every seat plays optimally.

    value: expected turns of battleship, otherwise the expected final score of seat 0. states:
    positions valued or searched, where symmetric ones may count once. seconds: wall-clock time.
    """

    value: float
    states: int
    seconds: float


def find_optimum(
    game: Game[Any], seconds: float, memory_gb: float = 4.0, layouts: State | None = None
) -> Optimum | None:
    """The optimum, or None where no solver fits or the budget does not suffice.

    layouts: of battleship, the initial positions that are played, all equally likely and known to
    the player; None: those of the game.
    """
    if not seconds or game.exact_solver is None:
        return None
    start = time.perf_counter()
    memory = int(memory_gb * 2**30)
    game = on_cpu(game)
    try:
        if game.exact_solver == "belief":
            solution = solve_battleship(cast(Battleship, game), seconds, memory, layouts)
            return Optimum(solution.optimal, solution.states, solution.seconds)
        if game.exact_solver == "announced":
            ships = None if layouts is None else cast(BattleshipState, layouts).ships
            announced = AnnouncedSolution(cast(Battleship, game), seconds, memory, ships)
            return Optimum(announced.optimal, announced.states, announced.seconds)
        if game.exact_solver == "alpha_beta":
            return _by_search(cast(KInARow, game), seconds, memory)
        graph = Graph(game, seconds, memory)
        value = graph.solve([None] * game.spec.seats).mean
    except (OutOfBudget, ValueError):
        return None
    return Optimum(value, graph.positions, time.perf_counter() - start)


def _by_search(game: KInARow, seconds: float, memory_bytes: int) -> Optimum | None:
    """The value of the empty board, by a search whose table takes at most half of the memory."""
    start = time.perf_counter()
    entries = int(min(memory_bytes // 16, MAX_SOLVER_ENTRIES, seconds * ENTRIES_PER_SECOND))
    search = AlphaBeta(game.rows, game.columns, game.line, entries)
    value = search.search(0, 0, seconds).value
    if value is None:
        return None
    return Optimum(float(value), search.positions, time.perf_counter() - start)


def solve_battleship(
    game: Battleship, seconds: float, memory_bytes: int, layouts: State | None = None
) -> BeliefSolution:
    """The optimal play of battleship; layouts: as for find_optimum.

    Raises OutOfBudget beyond the limits and for fleets whose layouts are too many to list,
    ValueError for boards that are too large.
    """
    ships = game.layouts() if layouts is None else cast(BattleshipState, layouts).ships.cpu() > 0
    if ships is None:
        raise OutOfBudget("the fleet has too many layouts")
    symmetries = preserving(game.symmetries(), ships.cpu()).numpy()
    cells = np.asarray(ships.cpu())
    return solve_belief(cells, np.ones(len(cells)), game.shots, symmetries, seconds, memory_bytes)


def solver_reach(game: Game[Any]) -> str:
    """What find_optimum reaches, given time and memory: "yes" for these rules, "smaller boards" of
    this game only, or "no" where no solver fits the game."""
    if game.exact_solver is None:
        return "no"
    if game.exact_solver == "alpha_beta":
        return "yes"
    if game.exact_solver in ("belief", "announced"):
        is_small = cast(Battleship, game).layouts() is not None
    else:
        is_small = game.spec.max_positions <= MAX_POSITIONS
    return "yes" if is_small else "smaller boards"


def on_cpu(game: Game[Any]) -> Game[Any]:
    """A copy of the game with its tables on the CPU, where solvers work."""
    return copy.deepcopy(game).to("cpu")


def find_graph(
    game: Game[Any], seconds: float, memory_gb: float = 4.0, max_positions: float = math.inf
) -> Graph | None:
    """All positions of a game without hidden information, or None beyond the budget."""
    if not seconds:
        return None
    try:
        return Graph(on_cpu(game), seconds, int(memory_gb * 2**30), max_positions)
    except (OutOfBudget, ValueError):
        return None
