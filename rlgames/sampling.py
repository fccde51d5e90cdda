"""Sampling rules: from scores to actions. Only legal actions are chosen, whatever the scores.

Each rule has `logits`, the distribution that a learner differentiates, and `choose`. Shapes:
scores float32 [B, A], legal bool [B, A], actions int64 [B].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.devices import float64_on, to_float64
from rlgames.core.errors import NonFiniteError
from rlgames.core.schedule import Schedule
from rlgames.kernels.choice import best_rows, sample_rows
from rlgames.rng import Rng

MAX_LOGIT = torch.finfo(torch.float32).max


def illegal_mask(legal: Tensor) -> Tensor:
    """Float32 [B, A], to be added to scores: -inf for illegal actions, 0 for legal ones."""
    # Adding is many times as fast as torch.where, forward and backward.
    return 1 - legal.view(torch.uint8).float().reciprocal_()


def mask_illegal(scores: Tensor, legal: Tensor) -> Tensor:
    """Scores with -inf for illegal actions, and only for these; NaN stays NaN."""
    return scores.clamp(-MAX_LOGIT, MAX_LOGIT) + illegal_mask(legal)


def greedy_action(scores: Tensor, legal: Tensor) -> Tensor:
    """Int64 [B]: the first legal action with the highest score; NaN counts as 0. Raises ValueError
    for shapes that differ."""
    _check_shapes(scores, legal)
    if not _has_kernel(scores):
        return (scores.nan_to_num() + illegal_mask(legal)).argmax(1)
    action = torch.empty(len(scores), dtype=torch.int64)
    best_rows(*_as_arrays(scores, legal), action.numpy())
    return action


def sampled_action(
    scores: Tensor, legal: Tensor, rng: Rng, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Samples from softmax(scores ÷ temperature), int64 [B], where NaN counts as 0, and their
    log-probabilities, float32 [B].

    On the CPU it is what a kernel that plays whole games draws. Raises ValueError for shapes that
    differ.
    """
    _check_shapes(scores, legal)
    if not _has_kernel(scores):
        logits = scaled(scores.nan_to_num(), legal, temperature)
        action = sample_logits(logits, rng)
        return action, logits.log_softmax(1).gather(1, action[:, None])[:, 0]
    action, log_prob = torch.empty(len(scores), dtype=torch.int64), torch.empty(len(scores))
    keys, columns = rng.rows(len(scores)).keys, (action.numpy(), log_prob.numpy())
    sample_rows(*_as_arrays(scores, legal), keys, np.float32(temperature), *columns)
    return action, log_prob


def _as_arrays(scores: Tensor, legal: Tensor) -> tuple[Any, Any]:
    """Contiguous ones, for which kernels are compiled once."""
    return scores.detach().contiguous().numpy(), legal.contiguous().numpy()


def _has_kernel(scores: Tensor) -> bool:
    return scores.device.type == "cpu" and scores.dtype == torch.float32


def _check_shapes(scores: Tensor, legal: Tensor) -> None:
    if scores.shape != legal.shape or scores.dim() != 2:
        raise ValueError(f"scores {[*scores.shape]} for legal actions {[*legal.shape]}")


def scaled(scores: Tensor, legal: Tensor, temperature: float) -> Tensor:
    """The logits of softmax(scores ÷ temperature) over the legal actions, float32 [B, A]."""
    logits = scores + illegal_mask(legal)
    if temperature == 1:
        return logits
    # Dividing the difference to the maximum keeps huge scores finite.
    return mask_illegal((logits - logits.amax(1, keepdim=True)) / temperature, legal)


def greedy_actions(scores: Tensor, legal: Tensor) -> Tensor:
    """Bool [B, A]: all legal actions with the highest score; NaN counts as 0."""
    scores = scores.nan_to_num() + illegal_mask(legal)
    return (scores == scores.amax(1, keepdim=True)) & legal


def sample_logits(logits: Tensor, rng: Rng) -> Tensor:
    """Int64 [B]: samples from softmax(logits) by the Gumbel-max trick, which never picks an action
    of probability 0."""
    return (logits - rng.exponential(*logits.shape).log_()).argmax(1)


def sample_uniform(legal: Tensor, rng: Rng) -> Tensor:
    """Int64 [B]: uniformly random legal actions."""
    return (rng.uniform(*legal.shape) + legal).argmax(1)


class Sampling(ABC):
    """A rule that samples actions from scores."""

    deterministic = False

    is_softmax = False
    """Whether choose samples from softmax(logits), the distribution that learners differentiate."""

    def greedy_rule(self) -> Sampling:
        """The rule that takes the best action, as after training."""
        return Argmax("first")

    def logits(self, scores: Tensor, legal: Tensor) -> Tensor:
        """Float32 [B, A]. Raises NonFiniteError for scores that are not finite."""
        return check_finite(scores) + illegal_mask(legal)

    @abstractmethod
    def choose(self, scores: Tensor, legal: Tensor, rng: Rng, progress: float) -> Tensor:
        """Int64 [B]: legal actions. progress: the fraction of the run's games played, 0 to 1.

        Scores are not checked for finite numbers, which would slow down play.
        """

    @abstractmethod
    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        """Float64 [B, A]: the distribution of choose.

        Raises NonFiniteError for scores that are not finite.
        """

    def choose_and_tell(
        self, scores: Tensor, legal: Tensor, rng: Rng, progress: float
    ) -> tuple[Tensor, Tensor]:
        """What choose returns, and the log-probabilities of these actions, float32 [B]."""
        action = self.choose(scores, legal, rng, progress)
        probability = self.probabilities(scores.nan_to_num(), legal, progress)
        return action, probability.gather(1, action[:, None])[:, 0].log().float()


class Stochastic(Sampling):
    """Samples from softmax(scores ÷ temperature)."""

    is_softmax = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def logits(self, scores: Tensor, legal: Tensor) -> Tensor:
        return scaled(check_finite(scores), legal, self.temperature)

    def choose(self, scores: Tensor, legal: Tensor, rng: Rng, progress: float) -> Tensor:
        return sampled_action(scores, legal, rng, self.temperature)[0]

    def choose_and_tell(
        self, scores: Tensor, legal: Tensor, rng: Rng, progress: float
    ) -> tuple[Tensor, Tensor]:
        return sampled_action(scores, legal, rng, self.temperature)

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        return to_float64(self.logits(scores, legal)).softmax(1)


class EpsilonGreedy(Sampling):
    """A greedy action, or with probability epsilon a uniformly random legal one."""

    def __init__(self, epsilon: float, epsilon_end: float | None, ties: str) -> None:
        self.epsilon, self.greedy = Schedule(epsilon, epsilon_end), Argmax(ties)

    def greedy_rule(self) -> Sampling:
        return self.greedy

    def choose(self, scores: Tensor, legal: Tensor, rng: Rng, progress: float) -> Tensor:
        rng = rng.rows(len(scores))
        is_random = rng.uniform(len(scores)) < self.epsilon.at(progress)
        random_action = sample_uniform(legal, rng.fold_in(1))
        greedy_action = self.greedy.choose(scores, legal, rng.fold_in(2), progress)
        return torch.where(is_random, random_action, greedy_action)

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        epsilon = self.epsilon.at(progress)
        uniform = to_float64(legal) / legal.sum(1, keepdim=True)
        greedy = self.greedy.probabilities(scores, legal, progress)
        return epsilon * uniform + (1 - epsilon) * greedy


class Argmax(Sampling):
    """An action with the highest score."""

    def __init__(self, ties: str | None) -> None:
        self.is_random = ties == "random"
        self.deterministic = not self.is_random

    def greedy_rule(self) -> Sampling:
        return self

    def choose(self, scores: Tensor, legal: Tensor, rng: Rng, progress: float) -> Tensor:
        if self.is_random:
            return sample_uniform(greedy_actions(scores, legal), rng)
        return greedy_action(scores, legal)

    def probabilities(self, scores: Tensor, legal: Tensor, progress: float) -> Tensor:
        scores = check_finite(scores)
        if self.is_random:
            greedy = to_float64(greedy_actions(scores, legal))
            return greedy / greedy.sum(1, keepdim=True)
        zeros = torch.zeros_like(scores, dtype=float64_on(scores.device))
        return zeros.scatter_(1, greedy_action(scores, legal)[:, None], 1.0)


def check_finite(scores: Tensor) -> Tensor:
    """The same scores; raises NonFiniteError if one is NaN or infinite."""
    # A finite sum proves that all scores are finite, in a fraction of the time.
    if not bool(scores.sum().isfinite()) and not bool(scores.isfinite().all()):
        raise NonFiniteError("a logit is not a finite number; a smaller lr may help")
    return scores


def distance_to_certainty(probability: Tensor) -> Tensor:
    """[B]: 1 - p of the most likely action + p of all others (Dedieu and Amar, section 3.3.2): 0
    for certainty, 1.5 for four equal actions. probability: [B, A], rows sum to 1."""
    return 2 * (1 - probability.amax(1))
