"""Fully connected networks, one for each stage of the game."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.policies.mlp import Mlp
from rlgames.policies.policy import Network


class Staged(Network):
    """The stage of a state is the number of thresholds that it has reached. Dedieu and Amar
    (section 6.2) train two networks for 2048, before and after a tile of 512.

    network: the arguments of each network, an Mlp.
    """

    def __init__(self, game: Game[Any], by: str, at: list[float], **network: Any) -> None:
        super().__init__()
        if not at or at != sorted(set(at)):
            raise ValueError(f"policy.at={at} needs rising numbers, as in [512]")
        self.by = by
        self.at = nn.Buffer(torch.tensor(at), persistent=False)
        self.stages = nn.ModuleList(Mlp(game, **network) for _ in range(len(at) + 1))
        self.has_value = bool(network["value"])

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, C + 1, H, W]: the observation, with the stage in one more plane."""
        observation = game.observe(state)
        values = {"turn": state.turn, "score": state.score[:, 0]} | game.measures(state)
        if self.by not in values:
            raise ValueError(
                f"policy.by={self.by} is not a measure of {game.spec.name}; available: "
                + ", ".join(sorted(values))
            )
        at = self.at.to(state.done.device)
        stage = torch.searchsorted(at, values[self.by].float(), right=True).float()
        plane = stage[:, None, None, None].expand(-1, 1, *observation.shape[2:])
        return torch.cat([observation, plane], 1)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        observation, stage = inputs[:, :-1], inputs[:, -1, 0, 0]
        scores: Tensor | None = None
        value = torch.zeros(inputs.shape[0], device=inputs.device) if self.has_value else None
        for number, network in enumerate(self.stages):
            rows = (stage == number).nonzero()[:, 0]
            stage_scores, stage_value = network(observation[rows])
            if scores is None:
                scores = stage_scores.new_zeros(inputs.shape[0], stage_scores.shape[1])
            scores = scores.index_copy(0, rows, stage_scores)
            if value is not None:
                value = value.index_copy(0, rows, stage_value)
        assert scores is not None
        return scores, value
