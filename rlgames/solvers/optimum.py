"""The exact optimum of a game, by whichever solver fits it."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from typing import Any

from rlgames.games.battleship import Battleship
from rlgames.games.game import Game
from rlgames.solvers.belief import solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MOST_POSITIONS, Graph


@dataclass(frozen=True)
class Optimum:
    """value: expected turns of battleship, otherwise seat 0's expected final score, when everybody
    plays as well as can be. states: positions valued, symmetric ones counted once where the
    solver makes use of that. seconds: wall-clock time."""

    value: float
    states: int
    seconds: float


def find_optimum(game: Game[Any], seconds: float, memory_gb: float = 4.0) -> Optimum | None:
    """None where the budget or the method does not reach it."""
    if not seconds:
        return None
    start = time.perf_counter()
    memory = int(memory_gb * 2**30)
    game = on_cpu(game)
    try:
        if isinstance(game, Battleship):
            layouts = game.layouts()
            # The solver knows of hits and misses only.
            if layouts is None or "sunk" in game.show:
                return None
            weights = [1] * len(layouts)
            found = solve_belief(
                layouts.cpu().numpy(),
                weights,
                game.shots,
                game.symmetries().numpy(),
                seconds,
                memory,
            )
            return Optimum(found.optimal, found.states, found.seconds)
        graph = Graph(game, seconds, memory)
        value = graph.value([None] * game.spec.seats).mean
    except (OutOfBudget, ValueError):
        return None
    return Optimum(value, graph.positions, time.perf_counter() - start)


def solver_reach(game: Game[Any]) -> str:
    """What find_optimum works out, given time and memory: "yes" for these rules, "smaller boards"
    of this game only, or "no" where no solver fits the game."""
    if isinstance(game, Battleship):
        fits, listed = "sunk" not in game.show, game.layouts() is not None
    else:
        fits = game.spec.has_exact_key and not game.spec.hidden
        listed = fits and game.spec.max_positions <= MOST_POSITIONS
    return "no" if not fits else "yes" if listed else "smaller boards"


def on_cpu(game: Game[Any]) -> Game[Any]:
    """A copy of the game with its tables on the CPU, where solvers work."""
    return copy.deepcopy(game).to("cpu")


def find_graph(
    game: Game[Any], seconds: float, memory_gb: float = 4.0, most_positions: float = math.inf
) -> Graph | None:
    """All positions of a game without hidden information, or None where the budget ends first."""
    if not seconds:
        return None
    try:
        return Graph(on_cpu(game), seconds, int(memory_gb * 2**30), most_positions)
    except (OutOfBudget, ValueError):
        return None
