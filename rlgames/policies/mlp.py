"""A fully connected network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
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

if TYPE_CHECKING:
    from rlgames.kernels.mlp import MlpWeights


class Mlp(Network):
    """Linear layers on the flattened observation.

    layers: the width of each hidden layer; 0: the number of inputs. bias: whether layers other
    than the value head have biases.
    """

    def __init__(
        self,
        game: Game[Any],
        layers: list[int],
        activation: str,
        init: str,
        bias: bool,
        value: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.activation = activation
        inputs = width = math.prod(game.spec.observation)
        modules: list[nn.Module] = [nn.Flatten()]
        for units in layers:
            layer = nn.Linear(width, units or inputs, bias=bias)
            init_weights(layer, init, ACTIVATION_GAINS[activation], rng)
            modules += [layer, ACTIVATIONS[activation]()]
            width = units or inputs
        self.torso = nn.Sequential(*modules)
        self.logits = make_linear(width, game.spec.actions, init, 0.01, rng, bias)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, rng)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        features = self.torso(inputs)
        value = self.value(features)[:, 0] if self.has_value else None
        return self.logits(features), value

    @torch.no_grad()
    def packed(self) -> MlpWeights:
        """A copy of the weights on the CPU as a kernel takes them, with the value, if any, as the
        last output."""
        from rlgames.kernels.mlp import ACTIVATIONS, MlpWeights

        hidden = [(layer,) for layer in self.torso if isinstance(layer, nn.Linear)]
        heads = (self.logits, self.value) if self.has_value else (self.logits,)
        widths, parts = [], []
        for layers in (*hidden, heads):
            matrix = torch.cat([layer.weight for layer in layers]).T
            zeros = matrix.new_zeros(matrix.shape[1])
            bias = [zeros[: len(x.weight)] if x.bias is None else x.bias for x in layers]
            widths.append(len(matrix))
            parts += [matrix.flatten(), *bias]
        widths.append(matrix.shape[1])
        weights = torch.cat(parts).float().cpu().numpy()
        return MlpWeights(np.array(widths, np.int64), weights, ACTIVATIONS[self.activation])
