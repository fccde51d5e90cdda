"""REINFORCE: raise the probability of each move by its return, less a baseline."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.core import distributed
from rlgames.core.schedule import Schedule
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import NonFiniteError
from rlgames.learners.policy_gradient import mean_entropy, select_actions, standardized
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import distance_to_certainty

BASELINES = ("none", "mean", "standardized", "value")


class Reinforce(GradientLearner):
    """One step a batch down -Σ (return - baseline) · log p(action), summed over a game's moves and
    averaged over the games; one game a batch gives the estimator of equation 4 in Landy's article.

    baseline: "none"; "mean" of the batch's returns; "standardized", less the mean and divided by
        the deviation, in which every game counts once, however long it is (section 3.2.1 of
        Dedieu and Amar's paper); "value", learnt by the policy's value head, then divided by the
        deviation over all moves.
    masked: differentiate the probabilities that moves were drawn with. False takes the softmax
        over all actions, legal or not, as the gradient in Landy's program does.
    entropy: weight of the policy's mean entropy, which keeps it exploring; fades to entropy_end.
    """

    learns_logits = True
    supports_distributed = True
    learns_from_records = True

    def __init__(
        self,
        *parts: Any,
        baseline: str,
        masked: bool,
        entropy_coef: float,
        entropy_coef_end: float | None,
        value_coef: float,
        **descent: Any,
    ) -> None:
        super().__init__(*parts, **descent)
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        self.baseline, self.masked, self.value_coef = baseline, masked, value_coef

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, entropy_coef = self.lr.at(progress), self.entropy_coef.at(progress)
        returns = self.reward.returns(moves, results)
        if not torch.isfinite(returns).all():
            raise NonFiniteError("a return is not a finite number")
        share = 1 / torch.bincount(moves.game, minlength=moves.games)[moves.game]
        scores, value = self.policy.scores(self.game, moves.state)
        if self.masked:
            scores = self.sampling.logits(scores, self.game.legal_action_mask(moves.state))
        log_p = scores.log_softmax(1)
        gained = self._advantage(returns, value, share) * select_actions(log_p, moves.action)
        p = log_p.exp()
        entropy = mean_entropy(log_p, p)
        loss = -gained.mean()
        if entropy_coef:
            loss = loss - entropy_coef * entropy
        if self.baseline == "value" and value is not None:
            loss = loss + self.value_coef * (value - returns).square().mean()
        # Sums over a game's moves, averaged over games, from means over moves.
        loss = loss * (len(moves) / moves.games)
        norm = self.descend(loss, lr, moves.games)
        return {
            "return": float(returns.mean()),
            "loss": float(loss.detach()),
            "entropy": float(entropy.detach()),
            "distance_to_certainty": float(
                (share * distance_to_certainty(p.detach())).sum() / moves.games
            ),
            "grad_norm": norm,
            "lr": lr,
        }

    def _advantage(self, returns: Tensor, value: Tensor | None, share: Tensor) -> Tensor:
        """Float32 [M]; share: float32 [M], each move's part of its game."""
        if self.baseline == "none":
            return returns
        if self.baseline == "mean":
            return returns - distributed.all_reduce_mean(returns)
        if self.baseline == "standardized":
            return standardized(returns, share)
        assert value is not None
        return standardized(returns - value.detach())
