"""Scores to actions. Only legal actions are ever chosen, whatever the scores.

Each rule has `logits`, the distribution that a learner differentiates, and `choose`. Shapes:
scores float32 [B, A], legal bool [B, A], actions int64 [B].
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from rlgames.core.schedule import Schedule

MAX_LOGIT = torch.finfo(torch.float32).max


class NonFiniteError(ArithmeticError):
    """A NaN or an infinity, met before it could reach the weights; the message names the tensor."""


def illegal_mask(legal: Tensor) -> Tensor:
    """Float32 [B, A] to be added to scores: minus infinity for what is not legal, otherwise 0."""
    # Sums of numbers are many times as fast as choices by a mask, forward and backward.
    return 1 - legal.view(torch.uint8).float().reciprocal_()


def mask_illegal(scores: Tensor, legal: Tensor) -> Tensor:
    """Scores with minus infinity for what is not legal, and for nothing else; NaN stays NaN."""
    return scores.clamp(-MAX_LOGIT, MAX_LOGIT) + illegal_mask(legal)


def greedy_action(scores: Tensor, legal: Tensor) -> Tensor:
    """Int64 [B]: the legal action with the highest score, the first of equals; NaN counts as 0."""
    return (scores.nan_to_num() + illegal_mask(legal)).argmax(1)


def sample_logits(logits: Tensor, rng: torch.Generator) -> Tensor:
    """One action a row, with probabilities softmax(logits): the Gumbel-max trick.

    An argmax cannot pick an item of probability 0, which torch.multinomial can, and is faster. The
    logarithm of a uniform number takes a third of the time of exponential_, and does the same.
    """
    u = torch.rand(logits.shape, generator=rng, device=logits.device)
    return (logits - u.clamp_(min=1e-30).log_().neg_().log_()).argmax(1)


def sample_uniform(legal: Tensor, rng: torch.Generator) -> Tensor:
    """One legal action a row, all equally likely."""
    noise = torch.rand(legal.shape, generator=rng, device=legal.device)
    return (noise + legal).argmax(1)


class Sampling(ABC):
    """A rule that turns scores into actions."""

    deterministic = False

    def logits(self, scores: Tensor, legal: Tensor) -> Tensor:
        """Float32 [B, A]. Raises BadNumber for scores that are not finite."""
        return check_finite(scores) + illegal_mask(legal)

    @abstractmethod
    def choose(
        self, scores: Tensor, legal: Tensor, rng: torch.Generator, progress: float
    ) -> Tensor:
        """Int64 [B]; progress, 0 to 1, is how much of the run has been played.

        Legal even where scores are not finite: to ask at every ply would slow down playing.
        """

    @abstractmethod
    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        """Float64 [B, A]: how likely choose makes each action.

        Raises BadNumber for scores that are not finite.
        """


class Stochastic(Sampling):
    """Draws from softmax(scores ÷ temperature)."""

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def logits(self, scores: Tensor, legal: Tensor) -> Tensor:
        return self._tempered(check_finite(scores), legal)

    def _tempered(self, scores: Tensor, legal: Tensor) -> Tensor:
        logits = scores + illegal_mask(legal)
        if self.temperature == 1:
            return logits
        # Dividing the distance to the best keeps huge scores from becoming infinite.
        return mask_illegal((logits - logits.amax(1, keepdim=True)) / self.temperature, legal)

    def choose(
        self, scores: Tensor, legal: Tensor, rng: torch.Generator, progress: float
    ) -> Tensor:
        return sample_logits(self._tempered(scores.nan_to_num(), legal), rng)

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        return self.logits(scores, legal).double().softmax(1)


class EpsilonGreedy(Sampling):
    """The best action, or with probability epsilon a uniformly random legal one."""

    def __init__(self, epsilon: float = 0.1, epsilon_end: float | None = None) -> None:
        self.epsilon = Schedule(epsilon, epsilon_end)

    def choose(
        self, scores: Tensor, legal: Tensor, rng: torch.Generator, progress: float
    ) -> Tensor:
        explore = torch.rand(len(scores), generator=rng, device=scores.device)
        random = sample_uniform(legal, rng)
        return torch.where(
            explore < self.epsilon.at(progress), random, greedy_action(scores, legal)
        )

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        epsilon = self.epsilon.at(progress)
        uniform = legal.double() / legal.sum(1, keepdim=True)
        return epsilon * uniform + (1 - epsilon) * one_hot_greedy(check_finite(scores), legal)


class Argmax(Sampling):
    """The action with the highest score; the first of equals."""

    deterministic = True

    def choose(
        self, scores: Tensor, legal: Tensor, rng: torch.Generator, progress: float
    ) -> Tensor:
        return greedy_action(scores, legal)

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        return one_hot_greedy(check_finite(scores), legal)


def check_finite(scores: Tensor) -> Tensor:
    """The same scores; raises BadNumber where one is NaN or infinite."""
    # A sum is finite only where all are, and most often tells so in a fraction of the time.
    if not bool(scores.sum().isfinite()) and not bool(scores.isfinite().all()):
        raise NonFiniteError("a logit is not a finite number; a smaller lr may help")
    return scores


def one_hot_greedy(scores: Tensor, legal: Tensor) -> Tensor:
    """Float64 [B, A]: all probability on the best legal action, the first of equals."""
    surely = greedy_action(scores, legal)[:, None]
    return torch.zeros_like(scores, dtype=torch.float64).scatter_(1, surely, 1.0)


def distance_to_certainty(probability: Tensor) -> Tensor:
    """[B]: 1 - p of the likeliest action + p of all others (section 3.3.2 of Dedieu and Amar's
    paper): 0 for certainty, 1.5 for four equal actions. probability: [B, A], rows add up to 1."""
    return 2 * (1 - probability.amax(1))
