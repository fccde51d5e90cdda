"""A network whose layers read whole rows and columns of the board."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from rlgames.games.game import Spec
from rlgames.policies.policy import ACTIVATIONS, GAINS, Network, head


class AxialLayer(nn.Module):
    """[B, N, N, inputs] to [B, N, N, outputs]: to each cell comes what one full layer makes of its
    row and of its column, the same for all lines from both ends, and what another makes of the
    board's mean.
    """

    def __init__(
        self, size: int, inputs: int, outputs: int, init: str, gain: float, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        # Adding a row and a column up makes good what reading from both ends takes away.
        self.line = head(size * inputs, size * outputs, init, gain, rng, bias=False)
        self.board = head(inputs, outputs, init, gain / math.sqrt(2), rng)

    def forward(self, cells: Tensor) -> Tensor:
        batch, size = cells.shape[:2]
        weight = self.line.weight.view(size, self.outputs, size, self.inputs)
        weight = ((weight + weight.flip(0, 2)) / 2).view_as(self.line.weight)
        across = linear(cells.flatten(2), weight).view(batch, size, size, -1)
        down = linear(cells.transpose(1, 2).flatten(2), weight).view(batch, size, size, -1)
        mean: Tensor = self.board(cells.mean((1, 2)))[:, None, None]
        return across + down.transpose(1, 2) + mean


class Axial(Network):
    """channels: the width of each layer; each adds its input to its output where widths agree.

    For square boards with an action a cell. Rows and columns share their weights, so that a board
    that is turned or mirrored gets its scores turned alike.
    Raises ValueError for other boards and actions.
    """

    def __init__(
        self,
        spec: Spec,
        channels: list[int],
        activation: str,
        init: str,
        value: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        width, rows, columns = spec.observation
        if not spec.cells or rows != columns:
            raise ValueError("policy=axial wants a square board with an action for each cell")
        self.activation = ACTIVATIONS[activation]()
        self.layers = nn.ModuleList()
        for units in channels:
            self.layers.append(AxialLayer(rows, width, units, init, GAINS[activation], rng))
            width = units
        self.logits = AxialLayer(rows, width, 1, init, 0.01, rng)
        self.has_value = value
        if value:
            self.value = head(width, 1, init, 0.01, rng)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        cells = inputs.permute(0, 2, 3, 1)
        for layer in self.layers:
            new = self.activation(layer(cells))
            cells = new + cells if new.shape == cells.shape else new
        value = self.value(cells.mean((1, 2)))[:, 0] if self.has_value else None
        return self.logits(cells).flatten(1), value
