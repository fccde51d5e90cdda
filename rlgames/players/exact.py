"""Players that play optimally, within the budget of their solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.battleship import Battleship
from rlgames.games.game import Game, State
from rlgames.players.player import Player, choose_in_live_rows
from rlgames.players.scripted import UniformOver
from rlgames.rng import Rng
from rlgames.sampling import sample_uniform
from rlgames.solvers.alphabeta_solver import AlphaBetaSolver
from rlgames.solvers.belief import BeliefSolution
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.connect4 import MAX_TABLE_ENTRIES, ScoreBounds
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.optimum import solver_of

MOVE_POSITIONS = 200_000
"""Searched for a move by default: a time that a person hardly notices, and the same games on every
machine."""

MAX_RESULTS = 100_000
"""Positions whose search results are kept."""


class GraphPlayer(UniformOver):
    """Any of the best actions, by the values of all positions: minimax, or expectimax with dice."""

    def __init__(self, game: Game[Any], graph: Graph) -> None:
        self.game, self._graph = game, graph
        self._solution = graph.solve([None] * game.spec.seats)

    def options(self, state: State) -> Tensor:
        best = self._graph.best_actions(self._solution, state.to("cpu"))
        return best.to(state.done.device)


class AlphaBetaPlayer(Player):
    """The best columns by alpha-beta search; if nothing is proven, the move of another player.

    Each position is searched once. With max_positions every search starts afresh, so that a move
    depends only on the position; without, what searches find out serves all later ones.

    max_positions, seconds: limits of a search; None: no such limit. A limit of time makes moves
    depend on the machine. stand_in: the player that moves in positions where nothing is proven,
    among columns that are not known to be worse; None: the column with most threats. num_moves,
    num_proven: how many moves it has made, and how many of them are proven to be best.
    """

    def __init__(
        self,
        solver: AlphaBetaSolver,
        max_positions: int | None,
        seconds: float | None,
        stand_in: Player | None,
    ) -> None:
        self.game, self._stand_in = solver.game, stand_in
        self._max_positions = math.inf if max_positions is None else max_positions
        self._seconds = math.inf if seconds is None else seconds
        # A small table is quickly emptied.
        self._alpha_beta = solver.search(min(2 * self._max_positions, MAX_TABLE_ENTRIES))
        self._results: dict[tuple[int, int], ScoreBounds] = {}
        self.num_moves = self.num_proven = 0

    def choose(self, state: Any, rng: Rng) -> Tensor:
        options = torch.ones(len(state), self.game.spec.actions, dtype=torch.bool)
        unproven: dict[int, list[int]] = {}
        for row in (~state.done).nonzero()[:, 0].tolist():
            own, occupied = state.words[row].tolist()
            result = self._search(own, occupied)
            columns = result.columns
            if result.value is None:
                unproven[row] = columns
                columns = [self._alpha_beta.preferred(own, occupied, columns)]
            options[row] = False
            options[row, columns] = True
            self.num_moves += 1
            self.num_proven += result.value is not None
        if unproven and self._stand_in is not None:
            rows = torch.tensor([*unproven], device=state.done.device)
            actions = self._stand_in.choose(state[rows], rng[rows].fold_in(1)).tolist()
            for (row, columns), action in zip(unproven.items(), actions, strict=True):
                if action in columns:
                    options[row] = False
                    options[row, action] = True
        return sample_uniform(options.to(state.done.device), rng)

    def _search(self, own: int, occupied: int) -> ScoreBounds:
        """The result for a position, the same each time it is met."""
        known = self._results.get((own, occupied))
        if known is not None:
            return known
        if self._max_positions < math.inf:
            self._alpha_beta.clear()
        result = self._alpha_beta.search(own, occupied, self._seconds, self._max_positions)
        if len(self._results) >= MAX_RESULTS:
            self._results.clear()
        self._results[own, occupied] = result
        return result

    def statistics(self) -> dict[str, float]:
        return {"proven_moves": self.num_proven / self.num_moves} if self.num_moves else {}

    def reset_statistics(self) -> None:
        self.num_moves = self.num_proven = 0


class BattleshipPlayer(Player):
    """The best shots of battleship."""

    is_deterministic = True

    def __init__(self, game: Battleship, solution: BeliefSolution) -> None:
        self.game, self._solution = game, solution

    def choose(self, state: Any, rng: Rng) -> Tensor:
        def choose(live: Any, _: Rng) -> Tensor:
            live = live.to("cpu")
            # Within a turn the same cells are chosen; those already aimed at are left out.
            turn = self._solution.choose(np.asarray(live.shot), np.asarray(live.hit))
            return self.game.action_at(live, torch.from_numpy(turn) & ~live.aimed)

        return choose_in_live_rows(state, rng, choose)


def exact_player(
    game: Game[Any],
    seconds: float,
    memory_gb: float,
    move_positions: int | None,
    move_seconds: float | None,
    make_stand_in: Callable[[], Player | None] = lambda: None,
) -> Player:
    """The optimal player of a game. Raises ValueError beyond the budget.

    move_positions, move_seconds: of AlphaBetaPlayer, on boards with too many positions; without
    either MOVE_POSITIONS. make_stand_in: makes its stand-in.
    """
    solver = solver_of(game, memory=int(memory_gb * 2**30))
    if solver is None:
        raise ValueError(f"player=exact is out of reach here (no solver supports {game.spec.name})")
    if isinstance(solver, AlphaBetaSolver) and game.spec.max_positions > MAX_POSITIONS:
        if move_positions is None and move_seconds is None:
            move_positions = MOVE_POSITIONS
        return AlphaBetaPlayer(solver, move_positions, move_seconds, make_stand_in())
    try:
        solution = solver.solution(seconds)
        if isinstance(solution, BeliefSolution):
            return BattleshipPlayer(solver.game, solution)
        return GraphPlayer(solver.game, solution)
    except (OutOfBudget, ValueError) as error:
        raise ValueError(f"player=exact is out of reach here ({error})") from None
