"""Behavior cloning: imitate the moves of a teacher."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rlgames.core.errors import ConfigError
from rlgames.core.metrics import are_equal
from rlgames.core.untrusted import checked_float, checked_int
from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import (
    LearnerContext,
    Plan,
)
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal

EVAL_CHUNK = 4096
"""Moves per forward pass without gradient."""


class BehaviorCloning(GradientLearner):
    """Minimizes the cross-entropy -log π(a|s) of the teacher's action a, with π over the legal
    actions, averaged over moves. Rewards are not used. patience: of evaluations on held-out moves.
    """

    learns_from = frozenset({"teacher", "records"})
    trains_logits = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        epochs: int,
        minibatch_size: int,
        patience: int | None,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        self.epochs, self.minibatch_size, self.patience = epochs, minibatch_size, patience
        self.lowest_loss, self.num_evals_since_lowest = torch.inf, 0

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        cfg = plan.cfg
        if cfg.teacher is None and (not cfg.demonstrations or cfg.demos_per_batch):
            raise ConfigError(
                "learner=behavior_cloning needs a teacher to learn from, or a record",
                "add teacher=NAME, teacher=RUN, or demonstrations=FILE without demos_per_batch=",
            )

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        num_moves = len(trajectories)
        sums, grad_norms = [], []
        for rows in self.minibatches(num_moves, self.epochs, size=self.minibatch_size):
            loss, num_agreed = self._loss_and_agreement(trajectories, rows)
            grad_norms.append(self.descend(loss / len(rows), lr))
            sums.append(torch.stack([loss.detach(), num_agreed]))
        loss, agreement = (torch.stack(sums).sum(0) / (self.epochs * num_moves)).tolist()
        return {
            "loss": loss,
            "agreement": agreement,
            "grad_norm": sum(grad_norms) / len(grad_norms),
            "lr": lr,
        }

    @torch.no_grad()
    def evaluate(self, held_out: Callable[[], Trajectories]) -> dict[str, float]:
        """The mean cross-entropy, and how often the policy's best action is the teacher's."""
        trajectories = held_out()
        rows = torch.arange(len(trajectories), device=trajectories.action.device)
        sums = [
            torch.stack(self._loss_and_agreement(trajectories, chunk))
            for chunk in rows.split(EVAL_CHUNK)
        ]
        loss, agreement = (torch.stack(sums).sum(0) / len(trajectories)).tolist()
        return {"cross_entropy": loss, "agreement": agreement}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "lowest_loss": self.lowest_loss,
            "num_evals_since_lowest": self.num_evals_since_lowest,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.lowest_loss = checked_float(state["lowest_loss"], -math.inf, math.inf)
        self.num_evals_since_lowest = checked_int(state["num_evals_since_lowest"], 0)

    def has_converged(self, metrics: dict[str, float]) -> bool:
        loss = metrics["cross_entropy"]
        if loss < self.lowest_loss and not are_equal(loss, self.lowest_loss):
            self.lowest_loss, self.num_evals_since_lowest = loss, 0
        else:
            self.num_evals_since_lowest += 1
        return self.patience is not None and self.num_evals_since_lowest >= self.patience

    def _loss_and_agreement(
        self, trajectories: Trajectories, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Over the moves in these rows, the sum of the loss and the number of equal actions."""
        state, action = trajectories.state[rows], trajectories.action[rows]
        scores, _ = self.policy.scores(self.game, state)
        logits = mask_illegal(scores, self.game.legal_action_mask(state))
        return cross_entropy(logits, action, reduction="sum"), (logits.argmax(1) == action).sum()
