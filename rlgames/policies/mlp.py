"""A fully connected network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from rlgames.games.game import Game
from rlgames.policies.policy import (
    ACTIVATION_GAINS,
    ACTIVATIONS,
    Network,
    make_linear,
)

if TYPE_CHECKING:
    from rlgames.kernels.mlp import CompiledPolicy, MlpWeights


class Mlp(Network):
    """Linear layers on the flattened observation. bias: of layers other than the value head."""

    def __init__(
        self,
        game: Game[Any],
        layers: list[int],
        activation: str,
        init: str,
        bias: bool,
        value: bool,
        generator: torch.Generator,
        skip: bool,
    ) -> None:
        super().__init__()
        self.activation, self.skip = activation, skip
        inputs = width = math.prod(game.spec.observation)
        modules: list[nn.Module] = [nn.Flatten()]
        for number, units in enumerate(layers):
            gain = ACTIVATION_GAINS[activation]
            layer = make_linear(width, units or inputs, init, gain, generator, bias)
            if skip and number and layer.in_features == layer.out_features:
                modules[-1] = Residual(layer, modules[-1])
            else:
                modules.append(layer)
            modules.append(ACTIVATIONS[activation]())
            width = units or inputs
        self.torso = nn.Sequential(*modules)
        self.logits = make_linear(width, game.spec.actions, init, 0.01, generator, bias)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, generator)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        return apply_heads(self, self.torso(inputs))

    def compiled(self, game: Game[Any]) -> CompiledPolicy | None:
        from rlgames.kernels.mlp import PLANES, CompiledPolicy

        if type(self) is not Mlp:  # a class derived from it may compute something else
            return None
        weights = pack_layers(self.activation, *hidden_layers(self.torso), heads(self))
        weights = weights._replace(skip=self.skip)
        return CompiledPolicy(weights, PLANES, int(weights.widths[0]), self.has_value)


class Residual(nn.Module):
    """x + scale · layer(activation(x)), where the scale is learned from 0 on (ReZero; Bachlechner
    et al. 2020)."""

    def __init__(self, layer: nn.Linear, activation: nn.Module) -> None:
        super().__init__()
        if isinstance(activation, nn.ReLU):
            activation.inplace = False  # x is added later
        self.activation, self.layer = activation, layer
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        change: Tensor = self.layer(self.activation(x))
        return x + self.scale * change


Layer = tuple[Tensor, Tensor]
"""A matrix [inputs, outputs] and biases [outputs]."""


def hidden_layers(torso: nn.Sequential) -> list[Layer]:
    """The linear layers of a torso, with the scales of residual ones."""
    layers = []
    for module in torso:
        if isinstance(module, nn.Linear):
            layers.append(_layer([module]))
        elif isinstance(module, Residual):
            matrix, biases = _layer([module.layer])
            layers.append((module.scale * matrix, module.scale * biases))
    return layers


def heads(network: Any) -> Layer:
    """The layers `logits` and, if there is one, `value` of a network as one."""
    return _layer([network.logits, network.value] if network.has_value else [network.logits])


def apply_heads(network: Any, features: Tensor) -> tuple[Tensor, Tensor | None]:
    """Scores [B, A] and perhaps a value [B], float32, by the layers `logits` and `value`, as one
    product of matrices, which takes half of the time of two."""
    matrix, bias = heads(network)
    outputs = torch.addmm(bias, features, matrix)
    if not network.has_value:
        return outputs, None
    return outputs[:, :-1], outputs[:, -1]


def _layer(modules: Sequence[nn.Linear]) -> Layer:
    matrix = torch.cat([module.weight for module in modules]).T
    biases: list[Tensor] = [
        module.weight.new_zeros(module.out_features) if module.bias is None else module.bias
        for module in modules
    ]
    return matrix, torch.cat(biases)


@torch.no_grad()
def pack_layers(activation: str, *layers: Layer) -> MlpWeights:
    """Copies of layers on the CPU as a kernel takes them."""
    from rlgames.kernels import mlp as kernel
    from rlgames.kernels.sparse_rows import LANES, TILE

    parts = []
    for matrix, biases in layers:
        matrix, biases = (
            pad(each.float().cpu(), (0, -len(biases) % LANES)) for each in (matrix, biases)
        )
        parts += [tile.reshape(-1) for tile in matrix.split(TILE, 1)] + [biases]
    widths = [len(matrix) for matrix, _ in layers] + [len(layers[-1][1])]
    return kernel.NO_NETWORK._replace(
        widths=np.array(widths, np.int64),
        weights=torch.cat(parts).numpy(),
        activation=kernel.ACTIVATIONS[activation],
    )
