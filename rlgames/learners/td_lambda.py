"""Temporal differences for networks: values of afterstates, by gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.core import distributed
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import NonFiniteError
from rlgames.policies.afterstate_network import AfterstateNetwork
from rlgames.rewards import generalized_advantage, next_index
from rlgames.rollouts.trajectories import FinalStates, Trajectories

CHUNK = 1 << 15
"""So many afterstates are valued at once where no gradient is wanted."""


class TdLambda(GradientLearner):
    """The value V of the afterstate of each move descends (V - G)², where G is the λ-return
    (Sutton and Barto 2018, section 12.1) of what the seat gained from its next move on:

        G_t = γ · (r_{t+1} + (1 - λ) · V_{t+1} + λ · G_{t+1})

    and beyond a window what the best action is worth there.

    td_lambda: λ. epochs, minibatches: how often, and in how many random parts, each batch is
    learnt from. Raises NotImplementedError for rewards that are no gains.
    """

    bootstraps = True
    trains_value_head = True
    trains_afterstates = True
    supports_distributed = True

    policy: AfterstateNetwork

    def __init__(
        self, *parts: Any, td_lambda: float, epochs: int, minibatches: int, **descent: Any
    ) -> None:
        super().__init__(*parts, **descent)
        if self.reward.scored != "score_delta":
            raise NotImplementedError(f"it learns from gains, not from {self.reward.scored}")
        self.td_lambda, self.epochs, self.minibatches = td_lambda, epochs, minibatches

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        gain = self.reward.rewards(moves, results)
        if not torch.isfinite(gain).all():
            raise NonFiniteError("a reward is not a finite number")
        inputs = self.policy.network.inputs(
            self.game, self.game.apply_action(moves.state, moves.action)
        )
        with torch.no_grad():
            value = torch.cat([self._value(part) for part in inputs.split(CHUNK)])
        error = self._errors(moves, results, gain, value)
        target = value + error
        losses, norms = [], []
        parts = min(self.minibatches, distributed.all_reduce_min(len(moves), inputs.device))
        for _ in range(self.epochs):
            order = torch.randperm(len(moves), generator=self.rng, device=self.rng.device)
            for part in order.tensor_split(parts):
                loss = (self._value(inputs[part]) - target[part]).square().mean()
                norms.append(self.descend(loss, lr, len(part)))
                losses.append(loss.detach())
        return {
            "td_error": float(error.abs().mean()),
            "loss": float(torch.stack(losses).mean()),
            "grad_norm": sum(norms) / len(norms),
            "lr": lr,
        }

    def _value(self, inputs: Tensor) -> Tensor:
        _, value = self.policy.network(inputs)
        assert value is not None
        return value

    def _errors(
        self, moves: Trajectories, results: FinalStates, gain: Tensor, value: Tensor
    ) -> Tensor:
        """Float32 [M]: G - V of each afterstate."""
        place, exists = next_index(moves)
        discount = self.reward.discount
        next_gain = torch.where(exists, gain[place], 0.0)
        beyond = self.policy.best(self.game, results.state)
        return generalized_advantage(
            discount * next_gain, value, moves, discount, self.td_lambda, beyond
        )
