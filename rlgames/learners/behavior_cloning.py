"""Behaviour cloning: make a teacher's moves the likely ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rlgames.core.untrusted import checked_float, checked_int
from rlgames.learners.gradient import GradientLearner
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal

EVAL_CHUNK = 4096
"""Moves that are looked at side by side where nothing is learnt from them."""


class BehaviorCloning(GradientLearner):
    """The loss is the cross-entropy -log p(the teacher's action), p over the legal actions,
    averaged over moves. What the moves led to does not count.

    epochs: how often the moves of a batch are gone through. minibatch: moves of a step.
    patience: evaluations without a lower loss on moves that were held out, after which the run
    ends; None: it never does.
    """

    learns_logits = True
    learns_from_rewards = False
    learns_from_records = True

    def __init__(
        self,
        *parts: Any,
        epochs: int = 1,
        minibatch: int = 256,
        patience: int | None = None,
        **descent: Any,
    ) -> None:
        super().__init__(*parts, **descent)
        self.epochs, self.minibatch, self.patience = epochs, minibatch, patience
        self.lowest, self.since = torch.inf, 0

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        norms, found = [], []
        for _ in range(self.epochs):
            order = torch.randperm(len(moves), generator=self.rng, device=self.rng.device)
            for part in order.split(self.minibatch):
                loss, agreed = self._judge(moves, part)
                norms.append(self.descend(loss / len(part), lr))
                found.append(torch.stack([loss.detach(), agreed]))
        loss, agreed = (torch.stack(found).sum(0) / (self.epochs * len(moves))).tolist()
        return {
            "loss": loss,
            "agreement": agreed,
            "grad_norm": sum(norms) / len(norms),
            "lr": lr,
        }

    @torch.no_grad()
    def evaluate(self, moves: Trajectories) -> dict[str, float]:
        """The mean loss, and the share of moves that the policy's best action agrees with."""
        rows = torch.arange(len(moves), device=moves.action.device)
        found = [torch.stack(self._judge(moves, part)) for part in rows.split(EVAL_CHUNK)]
        loss, agreed = (torch.stack(found).sum(0) / len(moves)).tolist()
        return {"loss": loss, "agreement": agreed}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"lowest": self.lowest, "since": self.since}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.lowest = checked_float(state["lowest"], -math.inf, math.inf)
        self.since = checked_int(state["since"], 0)

    def converged(self, loss: float) -> bool:
        """Told the loss on held-out moves of each evaluation: whether it is time to stop."""
        self.since = 0 if loss < self.lowest else self.since + 1
        self.lowest = min(loss, self.lowest)
        return self.patience is not None and self.since >= self.patience

    def _judge(self, moves: Trajectories, part: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the loss over the moves in these rows, and how many of them agree."""
        state, action = moves.state[part], moves.action[part]
        scores, _ = self.policy.scores(self.game, state)
        logits = mask_illegal(scores, self.game.legal_action_mask(state))
        return cross_entropy(logits, action, reduction="sum"), (logits.argmax(1) == action).sum()
