"""Shared by policy gradient learners. Shapes: M moves, A actions."""

from __future__ import annotations

from torch import Tensor

from rlgames.core import distributed


def select_actions(log_prob: Tensor, action: Tensor) -> Tensor:
    """Float32 [M]: the log-probabilities of the actions taken, out of all actions [M, A]."""
    return log_prob.gather(1, action[:, None])[:, 0]


def mean_entropy(log_prob: Tensor, prob: Tensor) -> Tensor:
    """The mean entropy of distributions [M, A]; illegal actions have log-probability -inf."""
    return -(prob * log_prob.clamp(min=-1e9)).sum(1).mean()


def standardized(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """[M] minus its mean, divided by its standard deviation, both weighted by weight [M].

    Mean and deviation are taken over all processes.
    """
    centered = advantage - distributed.all_reduce_mean(advantage, weight)
    deviation = distributed.all_reduce_mean(centered.square(), weight).sqrt()
    return centered / deviation.clamp(min=1e-6)
