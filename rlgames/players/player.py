"""Players: random play, and a policy with a rule of sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.policies.policy import Policy
from rlgames.sampling import Sampling, draw_uniform


class Player(ABC):
    """Chooses from public positions only."""

    deterministic = False

    @abstractmethod
    def choose(self, state: State, legal: Tensor, rng: torch.Generator) -> Tensor:
        """Int64 [B], a legal action for each row; state is public, legal is bool [B, A]."""


class Random(Player):
    """Every legal action equally likely."""

    def choose(self, state: State, legal: Tensor, rng: torch.Generator) -> Tensor:
        return draw_uniform(legal, rng)


class Agent(Player):
    """A policy that scores the actions and a rule that picks one.

    progress, 0 to 1, is how much of its training is over: exploring fades by it.
    """

    def __init__(self, game: Game[Any], policy: Policy, sampling: Sampling) -> None:
        self.game, self.policy, self.sampling = game, policy, sampling
        self.deterministic = sampling.deterministic
        self.progress = 0.0

    @torch.no_grad()
    def choose(
        self, state: State, legal: Tensor | None = None, rng: torch.Generator | None = None
    ) -> Tensor:
        """Int64 [B]; legal is worked out where it is not given, rng is needed unless greedy."""
        legal = self.game.legal(state) if legal is None else legal
        rng = torch.Generator(legal.device) if rng is None else rng
        scores, _ = self.policy(self.game.observe(state))
        return self.sampling.choose(scores, legal, rng, self.progress)
