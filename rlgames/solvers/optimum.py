"""The table of exact solvers, and what commands, players and searches ask of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rlgames.games.game import Game, State
from rlgames.solvers.budget import MAX_MEMORY, OutOfBudget

if TYPE_CHECKING:
    from rlgames.solvers.position import Solver

SOLVERS = {
    "rlgames.games.battleship": "belief_solver:BeliefSolver",
    "rlgames.games.k_in_a_row": "alphabeta_solver:AlphaBetaSolver",
}
"""By the module of a game: the solver that knows its rules."""

TWO_SEATS, ANY_SEATS = "proof_solver:ProofSolver", "position:ListingSolver"
"""Those of other games. Of several for one game, the first solves it."""


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
    own = SOLVERS.get(type(game).__module__)
    for name in filter(None, (own, TWO_SEATS if game.spec.seats == 2 else None, ANY_SEATS)):
        solver: type[Solver[Any, Any]] = resolve_name(f"rlgames.solvers.{name}")
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
