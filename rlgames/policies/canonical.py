"""A network on canonical boards: all boards that symmetries map to each other count as one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.games.symmetry import Symmetries
from rlgames.policies.policy import Network


class Canonical(Network):
    """Maps each board to its canonical form, applies a network and maps the scores back.

    The canonical form is the symmetric board with the greatest fixed random projection. Whatever
    the network learns about a board holds for all symmetric boards.
    """

    canonical = True

    def __init__(self, game: Game[Any], network: Network) -> None:
        super().__init__()
        self.network, self.has_value = network, network.has_value
        self.reads_observation = network.reads_observation
        self.symmetries = Symmetries(game, "cpu")
        shape = network.inputs(game, game.example_state()).shape[1:]
        weights = torch.rand(shape, generator=torch.Generator().manual_seed(0)).flatten(1)
        # The projection of planes [C, H, W] after each symmetry, [C * H * W, G]. Instead of
        # transforming the board, it applies the inverse symmetry to the weights.
        inverse_cells = self.symmetries.cells.argsort(1)[:, None]
        inverse_planes = self.symmetries.plane_order(len(weights)).argsort(1)[:, :, None]
        self._weights = weights[inverse_planes, inverse_cells].flatten(1).T.contiguous()

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, C + 1, H, W]: the inputs of the canonical boards, with the index of the
        symmetry in one more plane."""
        planes = self.network.inputs(game, state).float()
        if self._weights.device != planes.device:
            self.symmetries = Symmetries(game, planes.device)
            self._weights = self._weights.to(planes.device)
        symmetry = (planes.flatten(1) @ self._weights).argmax(1)
        canonical = self.symmetries.transform_planes(planes, symmetry)
        symmetry_plane = symmetry[:, None, None, None].expand(-1, 1, *planes.shape[2:])
        return torch.cat([canonical, symmetry_plane.to(canonical.dtype)], 1)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        symmetry = inputs[:, -1, 0, 0].long()
        scores, value = self.network(inputs[:, :-1])
        # A copy of the network, such as DQN's target, gets inputs that the original has made.
        inverse_actions = self.symmetries.inverse_actions.to(scores.device)
        return scores.gather(1, inverse_actions[symmetry]), value
