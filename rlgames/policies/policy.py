"""The contracts of policies, networks and value functions, and the initialization of weights."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State

if TYPE_CHECKING:
    pass

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": partial(nn.ReLU, inplace=True),  # on outputs of layers, which nothing else reads
    "gelu": nn.GELU,
    "silu": nn.SiLU,
}
ACTIVATION_GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "gelu": math.sqrt(2), "silu": math.sqrt(2)}


class Policy(nn.Module, ABC):
    """Maps states to scores of the actions: logits, or action values."""

    has_value: bool
    """Whether scores returns an estimate of the current seat's return."""

    scores_are_logits = True
    """Whether scores are logits; otherwise they are action values."""

    reads_observation = False
    """Whether scores observes the positions."""

    @abstractmethod
    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        """Float32 [B, A] for public states, legal actions or not; and the value [B] or None."""

    def compiled(self, game: Game[Any]) -> Any:
        """The policy as kernels take it, see kernels/policy.py; None if none does."""
        return None


@contextmanager
def learning(policy: nn.Module, is_learning: bool = True) -> Iterator[None]:
    """Put a policy into training mode for this block, or into evaluation mode if not is_learning.
    Dropout and batch normalization depend on the mode. A policy plays in evaluation mode."""
    before = policy.training
    policy.train(is_learning)
    try:
        yield
    finally:
        policy.train(before)


class Network(Policy):
    """A network that reads observations."""

    reads_observation = True

    canonical = False
    """Whether inputs are the same for symmetric boards, so that data augmentation is useless."""

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """The inputs of forward: by default the observations, float32 [B, C, H, W]."""
        return game.observe(state)

    @abstractmethod
    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores [B, A], and the value [B] or None."""

    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        return self(self.inputs(game, state))


class ValueFunction(Policy):
    """Values of afterstates, for the seat whose move led to them.

        Q(s, a) = score_scale · (score of s·a - score of s) + V(s·a), before chance

    score_scale: the value of one point of score; 0 if the reward is not the change in score.
    """

    has_value = False
    scores_are_logits = False

    payoffs: tuple[float, float] = (1.0, 0.0)
    """The rewards of a win, and of a draw for the first of two seats. A loss and the draw of the
    second seat have their negatives."""

    def __init__(self, score_scale: float) -> None:
        super().__init__()
        self.score_scale = score_scale

    @abstractmethod
    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        """Float32 [B]."""

    def scores(self, game: Game[Any], state: State) -> tuple[Tensor, Tensor | None]:
        actions = game.spec.actions
        index = torch.arange(len(state) * actions, device=state.done.device)
        value = self._action_value(game, state[index // actions], index % actions)
        return value.view(-1, actions), None

    @torch.no_grad()
    def best(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B]: the value of the best legal action, 0 where the game is over."""
        row, action = (game.legal_action_mask(state) & ~state.done[:, None]).nonzero().unbind(1)
        best = torch.zeros(len(state), device=state.done.device)
        if len(row):
            value = self._action_value(game, state[row], action)
            best.scatter_reduce_(0, row, value, "amax", include_self=False)
        return best

    def _action_value(self, game: Game[Any], state: State, action: Tensor) -> Tensor:
        """Float32 [B]: Q(s, a)."""
        afterstate = game.apply_action(state, action)
        value = self.value(game, afterstate)
        if self.score_scale:
            score_delta = (afterstate.score - state.score).gather(1, state.current_seat[:, None])
            value = value + self.score_scale * score_delta[:, 0]
        return value


class AfterstateNetwork(ValueFunction):
    """The value head of a network, applied to afterstates: states after a move, before chance.

    Raises ValueError for a game with hidden information, whose afterstates the seat cannot know.
    """

    def __init__(self, game: Game[Any], network: Network, score_scale: float) -> None:
        super().__init__(score_scale)
        if game.spec.hidden:
            raise ValueError(f"afterstates of {game.spec.name} have hidden information")
        self.network = network

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        _, value = self.network.scores(game, afterstate)
        assert value is not None
        return value


class AfterstateValues(ValueFunction):
    """A table of values of afterstates: V(s) = values[index(s)].

    values: float32 [W], the trained values.
    """

    values: Tensor
    trained_buffers = ("values",)

    @abstractmethod
    def index(self, game: Game[Any], afterstate: State) -> Tensor:
        """Int64 [B]: the index of each afterstate's value."""

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        return self.values.index_select(0, self.index(game, afterstate))


def init_weights(
    layer: nn.Linear | nn.Conv2d, init: str, gain: float, generator: torch.Generator
) -> None:
    """Initialize a layer's weights, and set its biases to zero.

    init: "truncated_normal": standard deviation 0.1/√fan_in, truncated at two deviations (Landy's
        choice); "orthogonal": with the given gain.
    """
    weight = layer.weight
    if init == "truncated_normal":
        deviation = 0.1 / math.sqrt(weight[0].numel())
        nn.init.trunc_normal_(
            weight, 0, deviation, -2 * deviation, 2 * deviation, generator=generator
        )
    else:
        nn.init.orthogonal_(weight, gain, generator=generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def make_linear(
    inputs: int, outputs: int, init: str, gain: float, generator: torch.Generator, bias: bool = True
) -> nn.Linear:
    """An initialized linear layer. With a small gain a new network plays almost uniformly."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    init_weights(layer, init, gain, generator)
    return layer
