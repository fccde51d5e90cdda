"""A network whose layers read whole rows and columns of the board."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from rlgames.games.game import Game
from rlgames.policies.policy import (
    ACTIVATION_GAINS,
    ACTIVATIONS,
    Network,
    in_float32,
    make_linear,
)


class AxialLayer(nn.Module):
    """Float32 [2, B, N, N, inputs] to [2, B, N, N, outputs]: the features of every cell in its row
    (index 0) and in its column (index 1).

    One linear layer maps all cells of a line, with their features along and across the line, to
    the new features of these cells. It is shared by all lines and both reading directions. A
    second linear layer adds a function of the mean over the board.
    """

    def __init__(
        self, size: int, inputs: int, outputs: int, init: str, gain: float, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.shape = (size, outputs, size, 2 * inputs)
        # Averaging both reading directions halves the variance of the weights.
        self.line = make_linear(
            size * 2 * inputs, size * outputs, init, math.sqrt(2) * gain, rng, bias=False
        )
        self.board = make_linear(inputs, outputs, init, gain, rng)

    def forward(self, cells: Tensor) -> Tensor:
        along_and_across = torch.cat([cells, cells.flip(0).transpose(2, 3)], 4)
        weight = self.line.weight.view(self.shape)
        weight = ((weight + weight.flip(0, 2)) / 2).view_as(self.line.weight)
        lines = linear(along_and_across.flatten(3), weight).view(*cells.shape[:4], self.shape[1])
        mean: Tensor = self.board(cells.mean((0, 2, 3)))[:, None, None]
        return lines + mean


class Axial(Network):
    """A stack of axial layers, with residual connections between layers of equal width.

    For square boards with one action per cell. Rows and columns share their weights, so that the
    network is equivariant: a rotated or mirrored board gets the rotated or mirrored scores.

    channels: the width of each layer. Raises ValueError for other boards and actions.
    """

    def __init__(
        self,
        game: Game[Any],
        channels: list[int],
        activation: str,
        init: str,
        value: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        width, rows, columns = game.spec.observation
        if not game.spec.has_cell_actions or rows != columns or game.spec.actions > rows * columns:
            raise ValueError("policy=axial needs a square board with one action per cell")
        self.activation = ACTIVATIONS[activation]()
        self.layers = nn.ModuleList()
        for units in channels:
            self.layers.append(
                AxialLayer(rows, width, units, init, ACTIVATION_GAINS[activation], rng)
            )
            width = units
        self.logits = AxialLayer(rows, width, 1, init, 0.01, rng)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, rng)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        by_rows = inputs.permute(0, 2, 3, 1)
        cells = torch.stack([by_rows, by_rows.transpose(1, 2)])
        for layer in self.layers:
            output = self.activation(layer(cells))
            cells = output + cells if output.shape == cells.shape else output
        mean = cells.mean((0, 2, 3))
        value = in_float32(self.value, mean)[:, 0] if self.has_value else None
        rows, columns = in_float32(self.logits, cells)
        return (rows + columns.transpose(1, 2)).flatten(1), value
