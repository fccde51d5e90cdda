"""Players that play the exact optimum, as far as their budget reaches."""

from __future__ import annotations

from typing import Any

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
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import MOST_POSITIONS, Graph
from rlgames.solvers.optimum import on_cpu


class GraphPlayer(UniformOver):
    """Any of the best moves, by the values of all positions: minimax, or expectimax with dice."""

    def __init__(self, game: Game[Any], graph: Graph) -> None:
        self.game, self._graph = game, graph
        self._values = graph.value([None] * game.spec.seats)

    def options(self, state: State) -> Tensor:
        return self._graph.best(self._values, state.to("cpu")).to(state.done.device)


class AlphaBetaPlayer(Player):
    """The best columns by alpha-beta search; where it cannot tell, the one with most threats.

    seconds: the most time for a move. asked, proven: how many moves it made, and how many of them
    are proven to be best.
    """

    is_stateful = True

    def __init__(self, game: KInARow, seconds: float) -> None:
        self.game, self._seconds = game, seconds
        self._search = AlphaBeta(game.rows, game.columns, game.line)
        self.asked = self.proven = 0

    def choose(self, state: Any, rng: torch.Generator) -> Tensor:
        options = torch.ones(len(state), self.game.spec.actions, dtype=torch.bool)
        for row in (~state.done).nonzero()[:, 0].tolist():
            own, occupied = int(state.own[row]), int(state.occupied[row])
            found = self._search.best(own, occupied, self._seconds)
            columns = found.columns
            if not found.exact:
                columns = [self._search.favourite(own, occupied, columns)]
            options[row] = False
            options[row, columns] = True
            self.asked += 1
            self.proven += found.exact
        return sample_uniform(options.to(state.done.device), rng)

    def statistics(self) -> dict[str, float]:
        return {"proven_moves": self.proven / self.asked} if self.asked else {}


class BeliefPlayer(Player):
    """The best shots of battleship, given what has been seen."""

    deterministic = True

    def __init__(self, game: Battleship, solution: BeliefSolution) -> None:
        self.game, self._solution = game, solution

    def choose(self, state: Any, rng: torch.Generator) -> Tensor:
        action = torch.zeros(len(state), dtype=torch.int64)
        live = (~state.done).nonzero()[:, 0].cpu()
        shot, hit = (np.asarray(field.cpu()[live]) for field in (state.shot, state.hit))
        cells = torch.from_numpy(self._solution.choose(shot, hit))
        # The turn's choice stands while its cells are aimed at one after another.
        cells &= ~state.aimed.cpu()[live]
        action[live] = self.game.action_at(state.to("cpu")[live], cells)
        return action.to(state.done.device)


def exact_player(
    game: Game[Any], seconds: float, memory_gb: float, move_seconds: float = 0.1
) -> Player:
    """The player that fits the game; raises ValueError where the budget does not reach.

    seconds, memory_gb: for working out all positions before the first move. move_seconds: for
    each move of Connect 4 where they are too many.
    """
    memory = int(memory_gb * 2**30)
    game = on_cpu(game)
    try:
        if isinstance(game, Battleship):
            layouts = game.layouts()
            if layouts is None or "sunk" in game.show:
                raise OutOfBudget("too many layouts, or sunk ships are told")
            ones = np.ones(len(layouts))
            found = solve_belief(
                np.asarray(layouts.cpu()),
                ones,
                game.shots,
                game.symmetries().numpy(),
                seconds,
                memory,
            )
            return BeliefPlayer(game, found)
        if isinstance(game, KInARow) and game.gravity and game.spec.max_positions > MOST_POSITIONS:
            return AlphaBetaPlayer(game, move_seconds)
        return GraphPlayer(game, Graph(game, seconds, memory))
    except (OutOfBudget, ValueError) as error:
        raise ValueError(f"player=exact is out of reach here ({error})") from None
