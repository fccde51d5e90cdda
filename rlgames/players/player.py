"""The contract of every player, random play, and agents: a policy with a sampling rule."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.policies.policy import Policy
from rlgames.sampling import Sampling


class Player(ABC):
    """Chooses actions from public positions only."""

    deterministic = False
    """Whether it always chooses the same action in the same position."""

    is_stateful = False
    """Whether it gathers statistics while it plays, which would be lost in a forked process."""

    @abstractmethod
    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        """Int64 [B]: a legal action for each row, any action in finished rows; state is public."""

    def act_with_target(self, state: State, rng: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """The result of choose, and a target for the policy, float32 [B, A], from players that
        search."""
        return self.choose(state, rng), None

    def probabilities(self, state: State) -> Tensor:
        """Float64 [B, A]: the probability of each action. Raises NotImplementedError if unknown."""
        raise NotImplementedError(f"{type(self).__name__} has no probabilities")

    def state_dict(self) -> dict[str, Any]:
        """What its next moves in training depend on besides the policy in training and the
        generator: nested dicts of tensors and plain numbers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or RuntimeError for state that does not fit."""
        if state:
            raise ValueError(f"{type(self).__name__} has no state")

    def statistics(self) -> dict[str, float]:
        """Statistics of its play so far, by name."""
        return {}


class Random(Player):
    """Every legal action is equally likely.

    observe: also compute the observations, to measure the time that a network waits for them.
    """

    def __init__(self, game: Game[Any], observe: bool = False) -> None:
        self.game, self.observe = game, observe

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        if self.observe:
            self.game.observe(state)
        u = torch.rand(len(state), generator=rng, device=rng.device)
        return self.game.sample_legal_action(state, u)

    def probabilities(self, state: State) -> Tensor:
        legal = self.game.legal_action_mask(state).double()
        return legal / legal.sum(1, keepdim=True)


class Agent(Player):
    """A policy that scores the actions and a sampling rule that picks one.

    progress: the completed fraction of its training, 0 to 1, on which exploration depends.
    """

    def __init__(self, game: Game[Any], policy: Policy, sampling: Sampling) -> None:
        self.game, self.policy, self.sampling = game, policy, sampling
        self.deterministic = sampling.deterministic
        self.progress = 0.0

    @torch.no_grad()
    def choose(self, state: State, rng: torch.Generator | None = None) -> Tensor:
        """Int64 [B]; only greedy sampling works without rng."""
        legal = self.game.legal_action_mask(state)
        rng = torch.Generator(legal.device) if rng is None else rng
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.choose(scores, legal, rng, self.progress)

    @torch.no_grad()
    def probabilities(self, state: State) -> Tensor:
        tensor = next(itertools.chain(self.policy.parameters(), self.policy.buffers()))
        state = state.to(tensor.device)
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.probabilities(
            scores, self.game.legal_action_mask(state), self.progress
        )
