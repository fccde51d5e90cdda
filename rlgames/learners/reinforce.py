"""REINFORCE: the policy gradient on whole games, with a choice of baselines."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from rlgames.core import distributed
from rlgames.core.schedule import Schedule
from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import LearnerContext, check_all_finite
from rlgames.learners.policy_gradient import mean_entropy, select_actions, standardized
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import distance_to_certainty

BASELINES = ("none", "mean", "standardized", "value")


class Reinforce(GradientLearner):
    """REINFORCE (Williams 1992), one gradient step per batch.

        loss = mean over games of Σ -(G - baseline) · log π(a|s), over the moves of the game

    G is the return of the move. With one game per batch this is equation 4 of Landy's article.

    baseline: "none"; "mean" of the batch's returns; "standardized": minus the mean, divided by
        the standard deviation, every game with the same weight (Dedieu and Amar, section 3.2.1);
        "value": the policy's value head, then divided by the standard deviation over all moves.
    masked: differentiate the probabilities that the moves were sampled with. False: the softmax
        runs over all actions, legal or not, as the gradient in Landy's program does.
    entropy_coef, entropy_coef_end: weight of the mean entropy, at the start and end of the run.
    """

    learns_logits = True
    supports_distributed = True
    learns_from_records = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        baseline: str,
        masked: bool,
        entropy_coef: float,
        entropy_coef_end: float | None,
        value_coef: float,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        self.baseline, self.masked, self.value_coef = baseline, masked, value_coef

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, entropy_coef = self.lr.at(progress), self.entropy_coef.at(progress)
        returns = self.reward.returns(trajectories, final_states)
        check_all_finite("a return", returns)
        num_games, game = trajectories.num_games, trajectories.game
        weight = 1 / torch.bincount(game, minlength=num_games)[game]  # each game's sum is 1
        logits, value = self.policy.scores(self.game, trajectories.state)
        if self.masked:
            legal = self.game.legal_action_mask(trajectories.state)
            logits = self.sampling.logits(logits, legal)
        log_probs = logits.log_softmax(1)
        advantage = self._advantage(returns, value, weight)
        surrogate = advantage * select_actions(log_probs, trajectories.action)
        probs = log_probs.exp()
        entropy = mean_entropy(log_probs, probs)
        loss = -surrogate.mean()
        if entropy_coef:
            loss = loss - entropy_coef * entropy
        if self.baseline == "value" and value is not None:
            loss = loss + self.value_coef * (value - returns).square().mean()
        # From the mean over moves to the mean over games of the sum over their moves.
        loss = loss * (len(trajectories) / num_games)
        grad_norm = self.descend(loss, lr, num_games)
        uncertainty = (weight * distance_to_certainty(probs.detach())).sum() / num_games
        return {
            "return": float(returns.mean()),
            "loss": float(loss.detach()),
            "entropy": float(entropy.detach()),
            "distance_to_certainty": float(uncertainty),
            "grad_norm": grad_norm,
            "lr": lr,
        }

    def _advantage(self, returns: Tensor, value: Tensor | None, weight: Tensor) -> Tensor:
        """Float32 [M]: the return minus the baseline. weight: float32 [M], by which "standardized"
        counts the moves."""
        if self.baseline == "none":
            return returns
        if self.baseline == "mean":
            return returns - distributed.all_reduce_mean(returns)
        if self.baseline == "standardized":
            return standardized(returns, weight)
        assert value is not None
        return standardized(returns - value.detach())
