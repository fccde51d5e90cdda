"""A network whose layers read whole rows and columns of the board."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from rlgames.games.game import Game
from rlgames.policies.policy import ACTIVATIONS, GAINS, Network, make_linear


class AxialLayer(nn.Module):
    """What each cell is as part of its row, and of its column, from whole lines at once.

    [2, B, N, N, inputs] to [2, B, N, N, outputs]: first the cells of rows, then those of columns,
    each line by line. One full layer, the same for all lines from both ends, reads what the cells
    of a line are along it and across it; another adds what it makes of the board's mean.
    """

    def __init__(
        self, size: int, inputs: int, outputs: int, init: str, gain: float, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.shape = (size, outputs, size, 2 * inputs)
        # Reading from both ends halves the variance of the weights.
        self.line = make_linear(
            size * 2 * inputs, size * outputs, init, math.sqrt(2) * gain, rng, bias=False
        )
        self.board = make_linear(inputs, outputs, init, gain, rng)

    def forward(self, cells: Tensor) -> Tensor:
        both = torch.cat([cells, cells.flip(0).transpose(2, 3)], 4)
        weight = self.line.weight.view(self.shape)
        weight = ((weight + weight.flip(0, 2)) / 2).view_as(self.line.weight)
        lines = linear(both.flatten(3), weight).view(*cells.shape[:4], -1)
        mean: Tensor = self.board(cells.mean((0, 2, 3)))[:, None, None]
        return lines + mean


class Axial(Network):
    """channels: the width of each layer; each adds its input to its output where widths agree.

    For square boards with an action a cell. Rows and columns share their weights, so that a board
    that is turned or mirrored gets its scores turned alike.
    Raises ValueError for other boards and actions.
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
        if not game.spec.has_cell_actions or rows != columns:
            raise ValueError("policy=axial wants a square board with an action for each cell")
        self.activation = ACTIVATIONS[activation]()
        self.layers = nn.ModuleList()
        for units in channels:
            self.layers.append(AxialLayer(rows, width, units, init, GAINS[activation], rng))
            width = units
        self.logits = AxialLayer(rows, width, 1, init, 0.01, rng)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, rng)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        by_rows = inputs.permute(0, 2, 3, 1)
        cells = torch.stack([by_rows, by_rows.transpose(1, 2)])
        for layer in self.layers:
            new = self.activation(layer(cells))
            cells = new + cells if new.shape == cells.shape else new
        value = self.value(cells.mean((0, 2, 3)))[:, 0] if self.has_value else None
        rows, columns = self.logits(cells)
        return (rows + columns.transpose(1, 2)).flatten(1), value
