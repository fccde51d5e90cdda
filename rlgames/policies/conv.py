"""A convolutional network that keeps the board's size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game
from rlgames.policies.policy import (
    ACTIVATION_GAINS,
    ACTIVATIONS,
    Network,
    init_weights,
    make_linear,
)


class Conv(Network):
    """3×3 convolutions on the observation and two planes of coordinates.

    If actions are cells, a 1×1 convolution computes the scores from each cell's features plus
    a linear function of their mean over the board, and a linear layer the scores of further actions
    from that mean; otherwise a linear layer computes all scores from all features.
    """

    def __init__(
        self,
        game: Game[Any],
        channels: list[int],
        activation: str,
        init: str,
        skip: bool,
        value: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        spec = game.spec
        planes, rows, columns = spec.observation
        self.skip = skip
        self.activation = ACTIVATIONS[activation]()
        ys = torch.linspace(-1, 1, rows) if rows > 1 else torch.zeros(1)
        xs = torch.linspace(-1, 1, columns) if columns > 1 else torch.zeros(1)
        place = torch.stack(torch.meshgrid(ys, xs, indexing="ij"))
        self.place = nn.Buffer(place, persistent=False)
        self.layers = nn.ModuleList()
        width = planes + 2
        for units in channels:
            layer = nn.Conv2d(width, units, 3, padding=1)
            init_weights(layer, init, ACTIVATION_GAINS[activation], generator)
            self.layers.append(layer)
            width = units
        self.cells = spec.has_cell_actions
        if self.cells:
            self.context = make_linear(width, width, init, ACTIVATION_GAINS[activation], generator)
            self.logits: nn.Module = nn.Conv2d(width, 1, 1)
            init_weights(self.logits, init, 0.01, generator)
            num_others = spec.actions - rows * columns
            self.others = (
                make_linear(width, num_others, init, 0.01, generator) if num_others else None
            )
        else:
            self.logits = make_linear(width * rows * columns, spec.actions, init, 0.01, generator)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, generator)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        place = self.place.expand(inputs.shape[0], -1, -1, -1)
        features = torch.cat([inputs, place], 1)
        for layer in self.layers:
            output = self.activation(layer(features))
            has_skip = self.skip and output.shape == features.shape
            features = output + features if has_skip else output
        mean = features.mean((2, 3))
        value = self.value(mean)[:, 0] if self.has_value else None
        if not self.cells:
            return self.logits(features.flatten(1)), value
        features = self.activation(features + self.context(mean)[:, :, None, None])
        scores = self.logits(features).flatten(1)
        if self.others is not None:
            scores = torch.cat([scores, self.others(mean)], 1)
        return scores, value
