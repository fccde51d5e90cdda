"""A network that sees boards which are the same but for turning and mirroring as one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.games.symmetry import Symmetries
from rlgames.policies.policy import Network


class Canonical(Network):
    """Turns each board to the one of its sides from which a fixed random weighing of what the
    network would read is greatest, and turns the scores back: what is learnt of a board is
    learnt of all its sides.
    """

    canonical = True

    def __init__(self, game: Game[Any], network: Network) -> None:
        super().__init__()
        self.network, self.has_value = network, network.has_value
        self.symmetries = Symmetries(game, "cpu")
        planes = network.inputs(game, game.initial(1, torch.Generator()))[0]
        self._weights = self._weighing(planes.shape)

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, C + 1, H, W]: what the network reads of the turned boards, and by how much
        they were turned as one more plane."""
        planes = self.network.inputs(game, state).float()
        if self._weights.device != planes.device:
            self.symmetries = Symmetries(game, planes.device)
            self._weights = self._weights.to(planes.device)
        turn = (planes.flatten(1) @ self._weights).argmax(1)
        turned = self.symmetries.transform_planes(planes, turn)
        plane = turn[:, None, None, None].expand(-1, 1, *planes.shape[2:])
        return torch.cat([turned, plane.to(turned.dtype)], 1)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        turn = inputs[:, -1, 0, 0].long()
        scores, value = self.network(inputs[:, :-1])
        return scores.gather(1, self.symmetries.inverse_actions[turn]), value

    def _weighing(self, shape: torch.Size) -> Tensor:
        """Float32 [C * H * W, G]: the weights of planes [C, H, W], seen from each side."""
        weights = torch.rand(shape, generator=torch.Generator().manual_seed(0)).flatten(1)
        # To weigh a turned board is to weigh the board by weights that are turned back.
        back = self.symmetries.cells.argsort(1)
        return weights[:, back].transpose(0, 1).flatten(1).T.contiguous()
