"""A network that values afterstates."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.policies.policy import Network, ValueFunction


class AfterstateNetwork(ValueFunction):
    """The value head of a network, applied to afterstates: states after a move, before chance.

    Raises ValueError for a game with hidden information, whose afterstates the seat cannot know.
    """

    def __init__(self, game: Game[Any], network: Network, score_scale: float) -> None:
        super().__init__(score_scale)
        if game.spec.hidden:
            raise ValueError(f"afterstates of {game.spec.name} have hidden information")
        self.network = network

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        _, value = self.network.scores(game, afterstate)
        assert value is not None
        return value
