"""The exact solver of a game, by the type of the game, and the optimum that it finds."""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import numpy as np

from rlgames.games.battleship import Battleship, BattleshipState
from rlgames.games.capabilities import InvertibleKey, find
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.symmetry import preserving
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.connect4 import AlphaBeta
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.proof import ProofSearch, can_prove

G = TypeVar("G", bound=Game[Any])

MAX_SOLVER_ENTRIES = 1 << 27
"""The most entries of the table that is used to solve Connect 4: 1 GiB."""

MAX_BYTES_PER_SLOT = 200
"""Memory set aside for each position in a table, more than twice its size."""

ENTRIES_PER_SECOND = 1 << 20
"""Entries for each second of the time limit: short searches do not need more."""

MIN_PROVEN_POSITIONS, MAX_PROVEN_POSITIONS = 1e6, 1e13
"""Games whose rules allow fewer positions are listed, which takes less time than loading a kernel.
Games that allow more are not solved from the start."""


@dataclass(frozen=True)
class Optimum:
    """The value of a game when every seat plays optimally.

    value: expected turns of battleship, otherwise the expected final score of seat 0. states:
    positions valued or searched, where symmetric ones may count once. seconds: wall-clock time.
    """

    value: float
    states: int
    seconds: float


@dataclass(frozen=True)
class Solver(ABC, Generic[G]):
    """What solves a game. Position values and optimal players are found by its type; see
    solvers/position.py and players/exact.py. game: with its tables on the CPU."""

    game: G

    @property
    def is_in_reach(self) -> bool:
        """Whether a board of this size can be solved, given time and memory."""
        return self.game.spec.max_positions <= MAX_POSITIONS

    @property
    def has_player(self) -> bool:
        """Whether it can also play such a board."""
        return self.is_in_reach

    @abstractmethod
    def optimum(self, seconds: float, memory_bytes: int, layouts: State | None) -> Optimum | None:
        """As find_optimum. Raises OutOfBudget and ValueError."""


class ListingSolver(Solver[Game[Any]]):
    """lists all positions"""

    def optimum(self, seconds: float, memory_bytes: int, layouts: State | None) -> Optimum:
        start = time.perf_counter()
        graph = Graph(self.game, seconds, memory_bytes)
        value = graph.solve([None] * self.game.spec.seats).mean
        return Optimum(value, graph.positions, time.perf_counter() - start)


class AlphaBetaSolver(Solver[KInARow]):
    """alpha-beta search, for k in a row with gravity"""

    is_in_reach = True

    def optimum(self, seconds: float, memory_bytes: int, layouts: State | None) -> Optimum | None:
        """By a search whose table takes at most half of the memory."""
        game, start = self.game, time.perf_counter()
        entries = int(min(memory_bytes // 16, MAX_SOLVER_ENTRIES, seconds * ENTRIES_PER_SECOND))
        search = AlphaBeta(game.rows, game.columns, game.line, entries)
        value = search.search(0, 0, seconds).value
        if value is None:
            return None
        return Optimum(float(value), search.positions, time.perf_counter() - start)


class ProofSolver(Solver[Game[Any]]):
    """proof-number search, for two-player games with compiled rules"""

    @property
    def is_in_reach(self) -> bool:
        return self.game.spec.max_positions <= MAX_PROVEN_POSITIONS

    @property
    def has_player(self) -> bool:
        return super().is_in_reach

    def optimum(self, seconds: float, memory_bytes: int, layouts: State | None) -> Optimum | None:
        """By a search whose table takes at most half of the memory."""
        openings = self.game.openings(1) if self.is_in_reach else None
        if openings is None:
            return None
        start = time.perf_counter()
        slots = min(
            memory_bytes // MAX_BYTES_PER_SLOT, seconds * ENTRIES_PER_SECOND, MAX_SOLVER_ENTRIES
        )
        search = ProofSearch(self.game, slots)
        value, _ = search.search(openings[0], seconds)
        if value is None:
            return None
        sign = int(1 - 2 * openings[0].current_seat)
        return Optimum(float(sign * value), search.positions, time.perf_counter() - start)


class BeliefSolver(Solver[Battleship]):
    """dynamic programming over beliefs, for battleship with hits and misses only"""

    @property
    def is_in_reach(self) -> bool:
        return self.game.fleet.layouts is not None

    def optimum(self, seconds: float, memory_bytes: int, layouts: State | None) -> Optimum:
        solution = self.solve(seconds, memory_bytes, layouts)
        return Optimum(solution.optimal, solution.states, solution.seconds)

    def solve(
        self, seconds: float, memory_bytes: int, layouts: State | None = None
    ) -> BeliefSolution:
        """The optimal play. Raises OutOfBudget beyond the limits and for fleets whose layouts are
        too many to list, ValueError for boards that are too large."""
        game = self.game
        ships = game.fleet.layouts if layouts is None else cast(BattleshipState, layouts).ships
        if ships is None:
            raise OutOfBudget("the fleet has too many layouts")
        symmetries = preserving(game.symmetries(), ships.cpu() > 0).numpy()
        cells = np.asarray(ships.cpu() > 0)
        return solve_belief(cells, game.shots, symmetries, seconds, memory_bytes)


def solver_of(game: Game[Any]) -> Solver[Any] | None:
    """The exact solver that fits the rules of a game, on boards that are small enough."""
    # These solvers know the rules of their games, not of games derived from them.
    if type(game) is Battleship:
        return None if game.announces_sinkings else BeliefSolver(on_cpu(game))
    if type(game) is KInARow and game.gravity:
        return AlphaBetaSolver(on_cpu(game))
    can_list = find(game, InvertibleKey) is not None and not game.spec.hidden
    if can_prove(game) and not (can_list and game.spec.max_positions < MIN_PROVEN_POSITIONS):
        return ProofSolver(on_cpu(game))
    return ListingSolver(on_cpu(game)) if can_list else None


def find_optimum(
    game: Game[Any], seconds: float, memory_gb: float = 4.0, layouts: State | None = None
) -> Optimum | None:
    """The optimum, or None where no solver fits or the budget does not suffice.

    layouts: of battleship, the initial positions that are played, all equally likely and known to
    the player; None: the game's.
    """
    solver = solver_of(game) if seconds else None
    if solver is None:
        return None
    try:
        return solver.optimum(seconds, int(memory_gb * 2**30), layouts)
    except (OutOfBudget, ValueError):
        return None


def solver_reach(game: Game[Any]) -> str:
    """What find_optimum reaches, given time and memory: "yes" for these rules, "smaller boards" of
    this game only, or "no" where no solver fits the game."""
    solver = solver_of(game)
    if solver is None:
        return "no"
    return "yes" if solver.is_in_reach else "smaller boards"


def on_cpu(game: G) -> G:
    """A copy of the game with its tables on the CPU, where solvers work."""
    return copy.deepcopy(game).to("cpu")


def find_graph(game: Game[Any], seconds: float, max_positions: float = math.inf) -> Graph | None:
    """All positions of a game without hidden information, or None beyond the time or 4 GiB."""
    if not seconds:
        return None
    try:
        return Graph(on_cpu(game), seconds, 4 * 2**30, max_positions)
    except (OutOfBudget, ValueError):
        return None
