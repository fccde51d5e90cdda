"""TD(λ) on afterstates by gradient, for networks."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import (
    LearnerContext,
    Plan,
    as_in_play,
    check_afterstate_reward,
    check_all_finite,
    check_values_are_not_sampled,
)
from rlgames.policies.policy import AfterstateNetwork
from rlgames.rewards import generalized_advantage, next_index
from rlgames.rollouts.trajectories import FinalStates, Trajectories

EVAL_CHUNK = 1 << 15
"""Afterstates per forward pass without gradient."""


class TdLambda(GradientLearner):
    """Minimizes (V(s_t) - G_t)² over the afterstates s_t of a seat's moves, where

        G_t = γ · (r_{t+1} + (1 - λ) · V(s_{t+1}) + λ · G_{t+1})

    is the λ-return (Sutton and Barto 2018, section 12.1) from the seat's next move on. If a
    window ends, it bootstraps from the value of the best action.

    Raises NotImplementedError for rewards other than score_delta.
    """

    learns_from = frozenset({"rewards", "windows"})
    trains_afterstates = True

    policy: AfterstateNetwork

    def __init__(
        self,
        context: LearnerContext,
        *,
        td_lambda: float,
        epochs: int,
        num_minibatches: int,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        if self.reward.scored != "score_delta":
            raise NotImplementedError(
                f"it needs reward.scored=score_delta, not {self.reward.scored}"
            )
        self.td_lambda, self.epochs, self.num_minibatches = td_lambda, epochs, num_minibatches

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        check_values_are_not_sampled(plan)
        check_afterstate_reward(plan)

    @classmethod
    def has_value_head(cls, keys: Any) -> bool:
        return True

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        reward = self.reward.rewards(trajectories, final_states)
        check_all_finite("a reward", reward)
        afterstate = self.game.apply_action(trajectories.state, trajectories.action)
        inputs = self.policy.network.inputs(self.game, afterstate)
        value, bootstrap_value = self._evaluate(inputs, final_states)
        next_move, has_next = next_index(trajectories)
        discount = self.reward.discount
        next_reward = discount * torch.where(has_next, reward[next_move], 0.0)
        td_error = generalized_advantage(
            next_reward, value, trajectories, discount, self.td_lambda, bootstrap_value
        )
        td_target = value + td_error
        batches = self.minibatches(len(trajectories), self.epochs, parts=self.num_minibatches)

        def loss(rows: Tensor) -> Tensor:
            return (self._value(inputs[rows]) - td_target[rows]).square().mean()

        metrics = self.fit(loss, batches, self.lr.at(progress))
        return {"td_error": float(td_error.abs().mean()), **metrics}

    @as_in_play
    def _evaluate(self, inputs: Tensor, final_states: FinalStates) -> tuple[Tensor, Tensor]:
        """The values of afterstates, float32 [M], and of the best actions in the last positions,
        float32 [G]."""
        value = torch.cat([self._value(chunk) for chunk in inputs.split(EVAL_CHUNK)])
        return value, self.policy.best(self.game, final_states.state)

    def _value(self, inputs: Tensor) -> Tensor:
        _, value = self.policy.network(inputs)
        assert value is not None
        return value
