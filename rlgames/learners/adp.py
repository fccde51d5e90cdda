"""Approximate dynamic programming: a linear value is fitted to what games came to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.core.schedule import Schedule
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, NonFiniteError
from rlgames.policies.linear import LinearValue
from rlgames.rewards import Reward
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Sampling

FITS = ("gradient", "least_squares")


class Adp(Learner):
    """After each batch λ·φ(x) moves towards the return y of each position x that was met:

        λ ← λ - α Δ,  Δ the mean over all x of 2 φ(x) (λ·φ(x) - y)

    Dedieu and Amar (4.2) print (1 - α) λ + α Δ, which climbs the error, and the sum over all
    positions, of which a batch has thousands. The return is the whole reward of the game where it
    is paid at the end and not discounted, as theirs; it is discounted once for the move that led
    to x too, as values are compared when that move is chosen.

    fit: "gradient" as above; "least_squares" goes by α of the way to the λ of least squared error,
        of least norm where features depend on each other.
    standardize: take the batch's mean off the returns and divide them by their deviation, as
        their policy network does.
    """

    policy_class = LinearValue

    def __init__(
        self,
        game: Game[Any],
        policy: LinearValue,
        sampling: Sampling,
        reward: Reward,
        rng: torch.Generator,
        *,
        lr: float,
        lr_end: float | None,
        fit: str,
        standardize: bool,
    ) -> None:
        self.game, self.policy, self.reward = game, policy, reward
        self.lr = Schedule(lr, lr_end)
        self.fit, self.standardize = fit, standardize

    @torch.no_grad()
    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        target = self.reward.discount * self.reward.returns(moves, results).double()
        if self.standardize:
            target = target - target.mean()
            target = target / target.square().mean().sqrt().clamp(min=1e-6)
        features = self.policy.features(self.game, moves.state).double()
        weights = self.policy.weights.double()
        error = features @ weights - target
        if self.fit == "gradient":
            new = weights - lr * 2 * features.T @ error / len(error)
        else:
            new = weights + lr * (least_squares(features, target) - weights)
        if not torch.isfinite(new).all():
            raise NonFiniteError("a weight is no longer a finite number; a smaller lr may help")
        self.policy.weights.copy_(new)
        named = zip(self.policy.names, new.tolist(), strict=True)
        return {
            "squared_error": float(error.square().mean()),
            "lr": lr,
            **{f"weight_{name}": weight for name, weight in named},
        }


def least_squares(features: Tensor, target: Tensor) -> Tensor:
    """Float64 [K]: the λ of least Σ (λ·φ - y)², of least norm where it is not the only one.

    features: float64 [M, K], target: float64 [M]. By the normal equations, which are K × K.
    """
    inverse: Tensor = torch.linalg.pinv(features.T @ features, rtol=1e-12, hermitian=True)
    return inverse @ (features.T @ target)
