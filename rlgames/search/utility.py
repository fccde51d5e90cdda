"""What a search maximizes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State


class Utility:
    """The value of a line of play for seat 0.

    value: "outcome" is +1, 0 or -1 for a win, draw or loss. One-player games have "turns",
    negative so that fewer is better, "score", the points since the root, and the measures of the
    final position by name. None is the goal of the game.

    A line that is cut short counts with its score so far.
    discount: γ per turn, of the value that estimates the rest of a line. What the line earns before
    is discounted in the same way, from the root on; an outcome, which a line earns once, is not.
    value_scale: units of the value per unit of a value head.
    bounds: the lower and upper bound of the value; (inf, -inf) where unknown.
    Raises ValueError if the game does not have this value.
    """

    def __init__(
        self,
        game: Game[Any],
        value: str | None,
        discount: float = 1.0,
        value_scale: float = 1.0,
    ) -> None:
        value = value or game.spec.goal
        valid_measures = game.measures(game.example_state())
        valid = ["outcome"] if game.spec.seats == 2 else ["turns", "score", *valid_measures]
        if value not in valid:
            raise ValueError(
                f"search.value={value} is not defined for {game.spec.name}; "
                f"valid values: {', '.join(valid)}"
            )
        self.game, self.value = game, value
        self.discount, self.value_scale = discount, value_scale
        self.bounds = (-1.0, 1.0) if value == "outcome" else (math.inf, -math.inf)

    def realized(self, root: State, state: State) -> Tensor:
        """Float32 [B] for seat 0: the value of the play from root to state."""
        if self.value == "outcome":
            return (state.score[:, 0] - state.score[:, 1]).sign()
        if self.value == "turns":
            return (root.turn - state.turn).float()
        if self.value == "score":
            return (state.score - root.score)[:, 0]
        return self.game.measures(state)[self.value].float()

    def discounted_gain(self, root_turn: Tensor, before: State, after: State) -> Tensor:
        """Float32 [B] for seat 0: what a move adds to the score. root_turn: int64 [B]."""
        gain = (after.score - before.score)[:, 0]
        return gain * self.discount ** (before.turn - root_turn)

    def bootstrapped(self, root: State, state: State, future: Tensor, gains: Tensor) -> Tensor:
        """Float32 [B] for seat 0: what the play from root to state earned, plus an estimate of the
        rest.

        future: float32 [B], the estimate for the seat to move at state. gains: float32 [B], the sum
        of discounted_gain from root to state.
        """
        if self.value == "outcome":
            estimate = (future * (1 - 2 * state.current_seat)).clamp(-1, 1)
            return torch.where(state.done, self.realized(root, state), estimate)
        num_turns = state.turn - root.turn
        weight = torch.tensor(self.discount, device=future.device) ** num_turns
        if self.value == "score":
            return gains + weight * future.masked_fill(state.done, 0)
        if self.value == "turns":
            paid = -num_turns if self.discount == 1 else (weight - 1) / (1 - self.discount)
            return paid + weight * future.masked_fill(state.done, 0)
        return weight * torch.where(state.done, self.realized(root, state), future)
