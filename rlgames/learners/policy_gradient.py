"""Shared by policy gradient learners. Shapes: M moves, A actions."""

from __future__ import annotations

from torch import Tensor


def select_actions(log_prob: Tensor, action: Tensor) -> Tensor:
    """Float32 [M]: the log-probabilities of the actions taken, out of all actions [M, A]."""
    return log_prob.gather(1, action[:, None])[:, 0]


def mean_entropy(log_prob: Tensor, prob: Tensor) -> Tensor:
    """The mean entropy of distributions [M, A]; illegal actions have log-probability -inf."""
    return -(prob * log_prob.clamp(min=-1e9)).sum(1).mean()


def standardized(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """[M] minus its mean, divided by its standard deviation, both weighted by weight [M]."""

    def mean(values: Tensor) -> Tensor:
        return values.mean() if weight is None else (weight * values).sum() / weight.sum()

    centered = advantage - mean(advantage)
    return centered / mean(centered.square()).sqrt().clamp(min=1e-6)
