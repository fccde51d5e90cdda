"""The table of exact solvers, and what commands, players and searches ask of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from rlgames.games.game import Game, State
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import Graph
from rlgames.solvers.position import (
    MAX_MEMORY,
    AlphaBetaSolver,
    BeliefSolver,
    ListingSolver,
    ProofSolver,
    Solver,
)

SOLVERS: tuple[type[Solver[Any, Any]], ...] = (
    BeliefSolver,
    AlphaBetaSolver,
    ProofSolver,
    ListingSolver,
)
"""Of several for one game, the first solves it."""


@dataclass(frozen=True)
class Optimum:
    """The value of a game when every seat plays optimally.

    value: expected turns of battleship, otherwise the expected final score of seat 0. states:
    positions valued or searched, where symmetric ones may count once. seconds: wall-clock time.
    """

    value: float
    states: int
    seconds: float


def solver_of(
    game: Game[Any], max_positions: float = math.inf, memory: int = MAX_MEMORY
) -> Solver[Any, Any] | None:
    """The exact solver for the rules of a game, on boards that are small enough."""
    for solver in SOLVERS:
        if solver.fits(game):
            return solver(game.on_cpu(), max_positions, memory)
    return None


def position_solver(game: Game[Any], max_positions: float = math.inf) -> Solver[Any, Any] | None:
    """What values positions of a game; None where no solver fits, and for fleets with too many
    layouts. max_positions: see Solver."""
    solver = solver_of(game, max_positions)
    if solver is None or not (solver.is_in_reach or solver.values_late_positions):
        return None
    return solver


def find_optimum(
    game: Game[Any], seconds: float, memory_gb: float = 4.0, layouts: State | None = None
) -> Optimum | None:
    """The optimum, or None where no solver fits or the budget does not suffice.

    layouts: of battleship, the initial positions that are played, all equally likely and known to
    the player; None: the game's.
    """
    solver = solver_of(game, memory=int(memory_gb * 2**30)) if seconds else None
    if solver is None:
        return None
    start = time.perf_counter()
    try:
        value, states = solver.optimum(seconds, layouts)
    except (OutOfBudget, ValueError):
        return None
    seconds = time.perf_counter() - start
    return None if value is None else Optimum(float(value), states, seconds)


def solver_reach(game: Game[Any]) -> str:
    """What find_optimum reaches, given time and memory: "yes" for these rules, "smaller boards" of
    this game only, or "no" where no solver fits the game."""
    solver = solver_of(game)
    if solver is None:
        return "no"
    return "yes" if solver.is_in_reach else "smaller boards"


def find_graph(game: Game[Any], seconds: float, max_positions: float = math.inf) -> Graph | None:
    """All positions of a game without hidden information, or None beyond the time or 4 GiB."""
    if not seconds:
        return None
    try:
        return Graph(game.on_cpu(), seconds, MAX_MEMORY, max_positions)
    except (OutOfBudget, ValueError):
        return None
