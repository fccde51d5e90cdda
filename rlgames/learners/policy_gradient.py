"""What the learners that follow the policy's gradient have in common. M moves, A actions."""

from __future__ import annotations

from torch import Tensor

from rlgames.core import distributed


def select_actions(log_p: Tensor, action: Tensor) -> Tensor:
    """Float32 [M]: the log-probabilities of the actions taken, from those of all, [M, A]."""
    return log_p.gather(1, action[:, None])[:, 0]


def mean_entropy(log_p: Tensor, p: Tensor) -> Tensor:
    """The mean entropy of distributions [M, A]; what is not legal has minus infinity, and 0."""
    return -(p * log_p.clamp(min=-1e9)).sum(1).mean()


def standardized(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """[M] less its mean and divided by its deviation, in both of which weight, [M], counts.

    Several processes take the mean and the deviation of all that they have.
    """
    advantage = advantage - distributed.all_reduce_mean(advantage, weight)
    return advantage / distributed.all_reduce_mean(advantage.square(), weight).sqrt().clamp(
        min=1e-6
    )
