"""What every policy is, and how the weights of networks begin."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "gelu": math.sqrt(2), "silu": math.sqrt(2)}
INITS = ("orthogonal", "truncated_normal")


class Policy(nn.Module, ABC):
    """Positions to scores of the actions: logits, or values by which the best action is taken."""

    has_value: bool
    """Whether scores comes with an estimate of the mover's return."""

    @abstractmethod
    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        """Float32 [B, A] for public positions, whatever is legal, and a value [B] or None."""


class Network(Policy):
    """A network that reads observations."""

    canonical = False
    """Whether boards are turned to one side before they are read: turning them teaches nothing."""

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """What forward reads: the observations, float32 [B, C, H, W]."""
        return game.observe(state)

    @abstractmethod
    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores [B, A] and a value [B] or None."""

    def __call__(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        result: tuple[Tensor, Tensor | None] = super().__call__(inputs)
        return result

    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        return self(self.inputs(game, state))


class ValueFunction(Policy):
    """Values of positions, seen from the side whose move led to them.

    An action is worth what it gains, where gains are what is learnt from, and the value to be
    expected of what it leads to.

    gains: what a point gained counts in values; 0 where something else is learnt from.
    """

    has_value = False

    def __init__(self, score_scale: float) -> None:
        super().__init__()
        self.score_scale = score_scale

    @abstractmethod
    def value(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B]."""

    def expected(self, game: Game[Any], afterstate: State) -> Tensor:
        """Float32 [B]: the exact mean of the value over all that chance may add to afterstates."""
        return mean_over_chance(game, afterstate, partial(self.value, game))

    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        actions = game.spec.actions
        every = torch.arange(len(state) * actions, device=state.done.device)
        score = self._worth(game, state[every // actions], every % actions)
        return score.view(-1, actions), None

    @torch.no_grad()
    def best(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B]: what the best legal action is worth, 0 where the game is over."""
        row, action = (game.legal_action_mask(state) & ~state.done[:, None]).nonzero().unbind(1)
        best = torch.zeros(len(state), device=state.done.device)
        if len(row):
            worth = self._worth(game, state[row], action)
            best.scatter_reduce_(0, row, worth, "amax", include_self=False)
        return best

    def _worth(self, game: Game[Any], before: State, action: Tensor) -> Tensor:
        """Float32 [B]: what an action gains and leads to."""
        after = game.apply_action(before, action)
        score = self.expected(game, after)
        if self.score_scale:
            gained = (after.score - before.score).gather(1, before.current_seat[:, None])[:, 0]
            score = score + self.score_scale * gained
        return score


def mean_over_chance(
    game: Game[Any], afterstate: State, worth: Callable[[State], Tensor]
) -> Tensor:
    """Float32 [B]: the exact mean of what positions are worth over all that chance may make."""
    probability, after = game.chance_outcomes(afterstate)
    possible = probability > 0
    value = torch.zeros_like(probability)
    value[possible] = worth(after[possible.flatten()]).to(value.dtype)
    return (probability * value).sum(1).float()


class AfterstateValues(ValueFunction):
    """Values of what moves have made before chance adds to it, so that no mean is to be taken.

    values: float32 [W], what is learnt; an afterstate is worth the sum of those at its places.
    tuple_of: int64 [K], which tuple of cells each of the K places is of; by default one has all.
    """

    values: Tensor
    tuple_of = torch.zeros(1, dtype=torch.int64)

    @abstractmethod
    def feature_indices(self, game: Game[Any], afterstate: State) -> Tensor:
        """Int32 or int64 [B, K]: which of the values make up that of each afterstate."""

    def allocate(
        self, game: Game[Any], afterstate: State, frozen: Collection[int] = ()
    ) -> tuple[Tensor, Tensor]:
        """The same for afterstates that are about to be learnt, and int64 [N], which places begin
        anew: makes those that lack, but for the tuples that are frozen."""
        places = self.feature_indices(game, afterstate)
        return places, torch.empty(0, dtype=torch.int64, device=places.device)

    def lookup(self, places: Tensor) -> Tensor:
        """Float32 [B]: the values of afterstates with these places, [B, K]."""
        # Twice as fast as indexing with a matrix.
        return self.values.index_select(0, places.reshape(-1)).view(places.shape).sum(1)

    def value(self, game: Game[Any], state: State) -> Tensor:
        return self.lookup(self.feature_indices(game, state))

    def expected(self, game: Game[Any], afterstate: State) -> Tensor:
        return self.value(game, afterstate)


def init_weights(
    layer: nn.Linear | nn.Conv2d, init: str, gain: float, rng: torch.Generator
) -> None:
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


def make_linear(
    inputs: int, outputs: int, init: str, gain: float, rng: torch.Generator, bias: bool = True
) -> nn.Linear:
    """A last layer. A small gain makes a new network play almost uniformly."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    init_weights(layer, init, gain, rng)
    return layer
