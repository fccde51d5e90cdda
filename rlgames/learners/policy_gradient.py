"""What the learners that follow the policy's gradient have in common. M moves, A actions."""

from __future__ import annotations

from torch import Tensor

from rlgames import ranks


def of_action(log_p: Tensor, action: Tensor) -> Tensor:
    """Float32 [M]: the log-probabilities of the actions taken, from those of all, [M, A]."""
    return log_p.gather(1, action[:, None])[:, 0]


def entropy_of(log_p: Tensor, p: Tensor) -> Tensor:
    """The mean entropy of distributions [M, A]; what is not legal has minus infinity, and 0."""
    return -(p * log_p.clamp(min=-1e9)).sum(1).mean()


def standardised(advantage: Tensor, weight: Tensor | None = None) -> Tensor:
    """[M] less its mean and divided by its deviation, in both of which weight, [M], counts.

    Several processes take the mean and the deviation of all that they have.
    """
    advantage = advantage - ranks.mean(advantage, weight)
    return advantage / ranks.mean(advantage.square(), weight).sqrt().clamp(min=1e-6)
