"""REINFORCE: the policy gradient on whole games, with a choice of baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.core.schedule import Schedule
from rlgames.games.game import State
from rlgames.learners.gradient import (
    GradientLearner,
    OptimizerSettings,
    mean_entropy,
    select_actions,
    standardized,
)
from rlgames.learners.learner import LearnerContext, check_all_finite, return_metrics
from rlgames.rewards import plies
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import distance_to_certainty


@dataclass(frozen=True)
class StepExamples(Rows):
    """What one gradient step learns from. state: [M]. action: int64 [M]. returns: float32 [M].

    advantage: float32 [M], or None where the value head gives the baseline. weight: float32 [M],
    that metrics count the moves by, so that every game counts the same.
    """

    state: State
    action: Tensor
    returns: Tensor
    advantage: Tensor | None
    weight: Tensor


class Reinforce(GradientLearner):
    """REINFORCE (Williams 1992), one gradient step per batch or per move.

        loss = mean over games of Σ -(G - baseline) · log π(a|s), over the moves of the game

    G is the return of the move. With one game per batch this is equation 4 of Landy's article.

    baseline: "none"; "mean" of the batch's returns; "standardized": minus the mean, divided by
        the standard deviation, every game with the same weight (Dedieu and Amar, section 3.2.1);
        "value": the policy's value head, then divided by the standard deviation over all moves.
    masked: differentiate the probabilities that the moves were sampled with. False: the softmax
        runs over all actions, legal or not, as the gradient in Landy's program does.
    step_per: "move": after the games, one step for their first moves, one for their second moves
        and so on, each with the weights that the step before it has left, as the loop of Landy's
        program does with one game per batch.
    Raises ValueError for step_per="move" with baseline="value", which compares many moves.
    """

    learns_from = frozenset({"rewards", "records"})
    trains_logits = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        baseline: str,
        masked: bool,
        entropy_coef: float,
        entropy_coef_end: float | None,
        value_coef: float,
        step_per: str,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        if step_per == "move" and baseline == "value":
            raise ValueError("learner.step_per=move does not work with learner.baseline=value")
        super().__init__(context, **optimizer)
        self.step_per = step_per
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        self.baseline, self.masked, self.value_coef = baseline, masked, value_coef

    @classmethod
    def has_value_head(cls, keys: Any) -> bool:
        return bool(keys.baseline == "value")

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, entropy_coef = self.lr.at(progress), self.entropy_coef.at(progress)
        returns = self.reward.returns(trajectories, final_states)
        check_all_finite("a return", returns)
        num_games, game = trajectories.num_games, trajectories.game
        weight = 1 / torch.bincount(game, minlength=num_games)[game]  # each game's sum is 1
        advantage = None if self.baseline == "value" else self._advantage(returns, weight)
        by_move = self.step_per == "move"
        rows = plies(trajectories) if by_move else [slice(0, len(trajectories))]
        metrics: dict[str, float] = {}
        weight = weight * (len(trajectories) / num_games)
        examples = StepExamples(trajectories.state, trajectories.action, returns, advantage, weight)
        for part in rows:
            for name, value in self._step(examples[part], num_games, lr, entropy_coef).items():
                fraction = (part.stop - part.start) / len(trajectories)
                metrics[name] = metrics.get(name, 0.0) + fraction * value
        statistics = return_metrics(trajectories, returns, returns)
        return {**statistics, **metrics, "lr": lr, "ent_coef": entropy_coef}

    def _step(
        self, moves: StepExamples, num_games: int, lr: float, entropy_coef: float
    ) -> dict[str, float]:
        """One gradient step; the metrics are means over the moves."""
        logits, value = self.policy.scores(self.game, moves.state)
        if self.masked:
            legal = self.game.legal_action_mask(moves.state)
            logits = self.sampling.logits(logits, legal)
        log_probs = logits.log_softmax(1)
        advantage = moves.advantage
        if advantage is None:
            assert value is not None
            advantage = standardized(moves.returns - value.detach())
        surrogate = advantage * select_actions(log_probs, moves.action)
        probs = log_probs.exp()
        entropy = mean_entropy(log_probs, probs)
        loss = -surrogate.mean()
        if entropy_coef:
            loss = loss - entropy_coef * entropy
        if self.baseline == "value" and value is not None:
            loss = loss + self.value_coef * (value - moves.returns).square().mean()
        # From the mean over moves to the mean over games of the sum over their moves.
        loss = loss * (len(moves.action) / num_games)
        grad_norm = self.descend(loss, lr)
        uncertainty = float((moves.weight * distance_to_certainty(probs.detach())).mean())
        return {
            "loss": float(loss.detach()),
            "entropy": float(entropy.detach()),
            "distance_to_certainty": uncertainty,
            "grad_norm": grad_norm,
        }

    def _advantage(self, returns: Tensor, weight: Tensor) -> Tensor:
        """Float32 [M]: the return minus a baseline without a value head. weight: float32 [M], by
        which "standardized" counts the moves."""
        if self.baseline == "none":
            return returns
        if self.baseline == "mean":
            return returns - returns.mean()
        return standardized(returns, weight)
