"""Fully connected networks, each for its own stage of the game."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.policies.mlp import Mlp
from rlgames.policies.policy import Network


class Staged(Network):
    """A position's stage is how many of the numbers `at` it has reached (section 6.2 of Dedieu
    and Amar's paper has two networks for 2048, before and after a tile of 512).

    by: what is counted: "turn", "score", or a measure of the game by its name. at: rising numbers.
    network: the arguments of each of the networks.
    """

    def __init__(self, game: Game[Any], by: str, at: list[float], **network: Any) -> None:
        super().__init__()
        if not at or at != sorted(set(at)):
            raise ValueError(f"policy.at={at} should be rising numbers, as in [512]")
        self.by = by
        self.at: Tensor
        self.register_buffer("at", torch.tensor(at), persistent=False)
        self.stages = nn.ModuleList(Mlp(game, **network) for _ in range(len(at) + 1))
        self.has_value = bool(network["value"])

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, C + 1, H, W]: the observations, and the stage as one more plane."""
        observation = game.observe(state)
        figures = {"turn": state.turn, "score": state.score[:, 0]} | game.measures(state)
        if self.by not in figures:
            raise ValueError(
                f"policy.by={self.by} is nothing that {game.spec.name} tells; there is: "
                + ", ".join(sorted(figures))
            )
        stage = torch.searchsorted(self.at, figures[self.by].float(), right=True).float()
        plane = stage[:, None, None, None].expand(-1, 1, *observation.shape[2:])
        return torch.cat([observation, plane], 1)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        observation, stage = inputs[:, :-1], inputs[:, -1, 0, 0]
        scores: Tensor | None = None
        value = torch.zeros(inputs.shape[0], device=inputs.device) if self.has_value else None
        for number, network in enumerate(self.stages):
            rows = (stage == number).nonzero()[:, 0]
            own, worth = network(observation[rows])
            if scores is None:
                scores = own.new_zeros(inputs.shape[0], own.shape[1])
            scores = scores.index_copy(0, rows, own)
            if value is not None:
                value = value.index_copy(0, rows, worth)
        assert scores is not None
        return scores, value
