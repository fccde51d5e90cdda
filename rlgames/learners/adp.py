"""Approximate dynamic programming: fits a linear value to the returns of games."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.core.devices import has_float64, no_float64
from rlgames.core.errors import NonFiniteError
from rlgames.core.schedule import Schedule
from rlgames.learners.learner import (
    BatchLearner,
    LearnerContext,
    Plan,
    check_afterstate_reward,
    check_values_are_not_sampled,
)
from rlgames.policies.linear import LinearValue
from rlgames.rollouts.trajectories import FinalStates, Trajectories


class Adp(BatchLearner):
    """Fits the weights λ of a linear value to the returns y of all states x of a batch:

        λ ← λ - α · mean over x of 2 · φ(x) · (λ·φ(x) - y)

    Dedieu and Amar (section 4.2) print (1 - α) λ + α Δ with Δ the sum over all states: that
    ascends the error, and a batch has thousands of states. As in their paper, the return is the
    whole reward of the game if it is final and not discounted. It is discounted once more for the
    move that led to x, because values are compared when that move is chosen.

    fit: "gradient" as above; "least_squares": λ ← λ + α · (λ* - λ), with λ* of least squared
        error, and of least norm among these.
    """

    policy_class = LinearValue

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None,
        fit: str,
    ) -> None:
        super().__init__(context)
        self.lr = Schedule(lr, lr_end)
        self.fit = fit

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        check_values_are_not_sampled(plan)
        check_afterstate_reward(plan)
        if not has_float64(plan.game.device):
            raise no_float64(f"learner={plan.cfg.learner.name}", plan.game.device)

    @torch.no_grad()
    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        target = self.reward.discount * self.reward.returns(trajectories, final_states).double()
        features = self.policy.features(self.game, trajectories.state).double()
        weights = self.policy.weights.double()
        error = features @ weights - target
        if self.fit == "gradient":
            new_weights = weights - lr * 2 * features.T @ error / len(error)
        else:
            new_weights = weights + lr * (least_squares(features, target) - weights)
        if not torch.isfinite(new_weights).all():
            raise NonFiniteError("a weight is not a finite number any more; a smaller lr may help")
        self.policy.weights.copy_(new_weights)
        named_weights = zip(self.policy.names, new_weights.tolist(), strict=True)
        return {
            "squared_error": float(error.square().mean()),
            "lr": lr,
            **{f"weight_{name}": weight for name, weight in named_weights},
        }


def least_squares(features: Tensor, target: Tensor) -> Tensor:
    """Float64 [K]: the λ of least Σ (λ·φ - y)², and of least norm among these.

    features: float64 [M, K]. target: float64 [M]. Solves the normal equations, which are K × K.
    """
    inverse: Tensor = torch.linalg.pinv(features.T @ features, rtol=1e-12, hermitian=True)
    return inverse @ (features.T @ target)
