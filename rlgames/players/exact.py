"""Players that play the exact optimum, as far as their budget reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.battleship import Battleship
from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.players.scripted import OneOf
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import Graph


class BestOfAll(OneOf):
    """Any of the best moves, by the values of all positions: minimax, or expectimax with dice."""

    def __init__(self, game: Game[Any], graph: Graph) -> None:
        self.game, self._graph = game, graph
        self._values = graph.value([None] * game.spec.seats)

    def options(self, state: State) -> Tensor:
        return self._graph.best(self._values, state.to("cpu")).to(state.done.device)


class BestOfBeliefs(Player):
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


def exact(game: Game[Any], seconds: float, memory_gb: float) -> Player:
    """The player that fits the game; raises ValueError where the budget does not reach."""
    memory = int(memory_gb * 2**30)
    try:
        if isinstance(game, Battleship):
            layouts = game.layouts()
            if layouts is None or "sunk" in game.show:
                raise OutOfBudget("too many layouts, or sunk ships are told")
            ones = np.ones(len(layouts))
            found = solve_belief(
                np.asarray(layouts.cpu()), ones, game.shots, game.symmetries(), seconds, memory
            )
            return BestOfBeliefs(game, found)
        return BestOfAll(game, Graph(game, seconds, memory))
    except (OutOfBudget, ValueError) as error:
        raise ValueError(f"player=exact is out of reach here ({error})") from None
