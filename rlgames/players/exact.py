"""Players that play optimally, within the budget of their solver."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from rlgames.games.battleship import Battleship
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Player
from rlgames.players.scripted import UniformOver
from rlgames.sampling import sample_uniform
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.solvers.belief import BeliefSolution
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.optimum import on_cpu, solve_battleship


class GraphPlayer(UniformOver):
    """Any of the best actions, by the values of all positions: minimax, or expectimax with dice."""

    def __init__(self, game: Game[Any], graph: Graph) -> None:
        self.game, self._graph = game, graph
        self._solution = graph.solve([None] * game.spec.seats)

    def options(self, state: State) -> Tensor:
        best = self._graph.best_actions(self._solution, state.to("cpu"))
        return best.to(state.done.device)


class AlphaBetaPlayer(Player):
    """The best columns by alpha-beta search; where nothing is proven, the one with most threats.

    seconds: the limit for each move. num_moves, num_proven: how many moves it has made, and how
    many of them are proven to be best.
    """

    is_stateful = True

    def __init__(self, game: KInARow, seconds: float) -> None:
        self.game, self._seconds = game, seconds
        self._alpha_beta = AlphaBeta(game.rows, game.columns, game.line)
        self.num_moves = self.num_proven = 0

    def choose(self, state: Any, rng: torch.Generator) -> Tensor:
        options = torch.ones(len(state), self.game.spec.actions, dtype=torch.bool)
        for row in (~state.done).nonzero()[:, 0].tolist():
            own, occupied = int(state.own[row]), int(state.occupied[row])
            result = self._alpha_beta.search(own, occupied, self._seconds)
            columns = result.columns
            if not result.is_proven:
                columns = [self._alpha_beta.preferred(own, occupied, columns)]
            options[row] = False
            options[row, columns] = True
            self.num_moves += 1
            self.num_proven += result.is_proven
        return sample_uniform(options.to(state.done.device), rng)

    def statistics(self) -> dict[str, float]:
        return {"proven_moves": self.num_proven / self.num_moves} if self.num_moves else {}


class BeliefPlayer(Player):
    """The best shots of battleship, given the hits and misses so far."""

    deterministic = True

    def __init__(self, game: Battleship, solution: BeliefSolution) -> None:
        self.game, self._solution = game, solution

    def choose(self, state: Any, rng: torch.Generator) -> Tensor:
        action = torch.zeros(len(state), dtype=torch.int64)
        live = (~state.done).nonzero()[:, 0].cpu()
        shot, hit = (np.asarray(field.cpu()[live]) for field in (state.shot, state.hit))
        cells = torch.from_numpy(self._solution.choose(shot, hit))
        # Within a turn the same cells are chosen; those already aimed at are left out.
        cells &= ~state.aimed.cpu()[live]
        action[live] = self.game.action_at(state.to("cpu")[live], cells)
        return action.to(state.done.device)


def exact_player(
    game: Game[Any], seconds: float, memory_gb: float, move_seconds: float = 0.1
) -> Player:
    """The optimal player of a game. Raises ValueError beyond the budget.

    seconds, memory_gb: limits for solving the game before the first move. move_seconds: the limit
    for each move of Connect 4 on boards with too many positions.
    """
    memory = int(memory_gb * 2**30)
    game = on_cpu(game)
    try:
        if game.exact_solver == "belief":
            battleship = cast(Battleship, game)
            return BeliefPlayer(battleship, solve_battleship(battleship, seconds, memory))
        if game.exact_solver == "alpha_beta" and game.spec.max_positions > MAX_POSITIONS:
            return AlphaBetaPlayer(cast(KInARow, game), move_seconds)
        return GraphPlayer(game, Graph(game, seconds, memory))
    except (OutOfBudget, ValueError) as error:
        raise ValueError(f"player=exact is out of reach here ({error})") from None
