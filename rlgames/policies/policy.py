"""What every policy network is, and how its weights begin."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "gelu": math.sqrt(2), "silu": math.sqrt(2)}
INITS = ("orthogonal", "truncated_normal")


class Policy(nn.Module, ABC):
    """forward(observation float32 [B, C, H, W]) gives scores [B, A] and a value [B] or None.

    Scores are logits. The value is an estimate of the mover's return.
    """

    has_value: bool

    @abstractmethod
    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor | None]: ...

    def __call__(self, observation: Tensor) -> tuple[Tensor, Tensor | None]:
        result: tuple[Tensor, Tensor | None] = super().__call__(observation)
        return result


def initialise(layer: nn.Linear | nn.Conv2d, init: str, gain: float, rng: torch.Generator) -> None:
    """Set a layer's weights, and its biases to zero.

    init: "truncated_normal" has standard deviation 0.1/√fan_in, cut at two deviations (Landy's
        choice); "orthogonal" has the given gain.
    """
    weight = layer.weight
    if init == "truncated_normal":
        deviation = 0.1 / math.sqrt(weight[0].numel())
        nn.init.trunc_normal_(weight, 0, deviation, -2 * deviation, 2 * deviation, generator=rng)
    else:
        nn.init.orthogonal_(weight, gain, generator=rng)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def head(inputs: int, outputs: int, init: str, gain: float, rng: torch.Generator) -> nn.Linear:
    """A last layer. A small gain makes a new network play almost uniformly."""
    layer = nn.Linear(inputs, outputs)
    initialise(layer, init, gain, rng)
    return layer
