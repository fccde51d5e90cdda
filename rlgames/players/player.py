"""The contract of every player, random play, and a policy with a rule of sampling."""

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
    """Chooses from public positions only."""

    deterministic = False
    """Whether the same position always gets the same action."""

    is_stateful = False
    """Whether it counts as it plays what is asked for afterwards, so that no fork may do it."""

    @abstractmethod
    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        """Int64 [B], a legal action for each row; state is public; any action if it is over."""

    def act_with_target(self, state: State, rng: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """What choose says, and from those that search float32 [B, A], a target to learn."""
        return self.choose(state, rng), None

    def probabilities(self, state: State) -> Tensor:
        """Float64 [B, A]: how likely each action is; rows add up to 1."""
        raise NotImplementedError(f"{type(self).__name__} does not tell its probabilities")

    def state_dict(self) -> dict[str, Any]:
        """What its next moves in training depend on, beside the policy that learns and the
        generator: a tree of tensors and plain numbers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or RuntimeError for what does not fit."""
        if state:
            raise ValueError(f"{type(self).__name__} has nothing to remember")

    def statistics(self) -> dict[str, float]:
        """What there is to know about how it has played so far, by name."""
        return {}


class Random(Player):
    """Every legal action equally likely.

    observe: work out the observations as well, to measure what a network would wait for.
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
    """A policy that scores the actions and a rule that picks one.

    progress, 0 to 1, is how much of its training is over: exploring fades by it.
    """

    def __init__(self, game: Game[Any], policy: Policy, sampling: Sampling) -> None:
        self.game, self.policy, self.sampling = game, policy, sampling
        self.deterministic = sampling.deterministic
        self.progress = 0.0

    @torch.no_grad()
    def choose(self, state: State, rng: torch.Generator | None = None) -> Tensor:
        """Int64 [B]; rng is needed unless the sampling is greedy."""
        legal = self.game.legal_action_mask(state)
        rng = torch.Generator(legal.device) if rng is None else rng
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.choose(scores, legal, rng, self.progress)

    @torch.no_grad()
    def probabilities(self, state: State) -> Tensor:
        weights = next(itertools.chain(self.policy.parameters(), self.policy.buffers()))
        state = state.to(weights.device)
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.probabilities(
            scores, self.game.legal_action_mask(state), self.progress
        )
