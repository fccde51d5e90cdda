"""What a line of play is worth to those who search."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State


class Utility:
    """value: "outcome", +1, 0 or -1 as seat 0 is ahead or not; for one seat "turns", fewer being
    better, "score", what was scored since the search began, or a measure of the last position by
    the name that the game gives it; None: what the game is about.

    A line that is cut short counts by what it has come to so far.
    bounds: the least and the most it can be; infinite, the other way round, where not known.
    Raises ValueError for a game that has nothing of the kind.
    """

    def __init__(self, game: Game[Any], value: str | None = None) -> None:
        value = value or game.spec.goal
        measures = game.measures(game.initial(1, torch.Generator()))
        fitting = ["outcome"] if game.spec.seats == 2 else ["turns", "score", *measures]
        if value not in fitting:
            raise ValueError(
                f"search.value={value} says nothing about {game.spec.name}; "
                f"there is: {', '.join(fitting)}"
            )
        self.game, self.value = game, value
        self.bounds = (-1.0, 1.0) if value == "outcome" else (math.inf, -math.inf)

    def so_far(self, start: State, state: State) -> Tensor:
        """Float32 [B] for seat 0: what has come of the positions start."""
        if self.value == "outcome":
            return (state.score[:, 0] - state.score[:, 1]).sign()
        if self.value == "turns":
            return (start.turn - state.turn).float()
        if self.value == "score":
            return (state.score - start.score)[:, 0]
        return self.game.measures(state)[self.value].float()

    def expected(self, start: State, state: State, future: Tensor) -> Tensor:
        """Float32 [B] for seat 0, where future, float32 [B], is what the mover still expects."""
        so_far = self.so_far(start, state)
        if self.value == "outcome":
            future = (future * (1 - 2 * state.current_seat)).clamp(-1, 1)
        if self.value in ("turns", "score"):
            future = so_far + future
        return torch.where(state.done, so_far, future)
