"""What lies under each action: a network's scores become the log-odds of a hit."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rlgames.learners.gradient import GradientLearner
from rlgames.rollouts.trajectories import FinalStates, Trajectories


class Occupancy(GradientLearner):
    """The score z of each action still open moves towards the log-odds that it would hit:

        loss = -y log σ(z) - (1 - y) log(1 - σ(z)),

    y being what the finished game reveals, averaged over all open actions of all positions met.
    The loss is least where σ(z) is the posterior probability, so that the best action is the one
    most likely to hit. Positions are those of the agent's own games; the reward does not count.

    share: of the moves of a batch so many are learnt from, drawn at random each time; those of one
    game have much in common. epochs: how often that is done. minibatch: moves of a step.
    Raises NotImplementedError for a game that reveals nothing.
    """

    learns_logits = True
    learns_from_rewards = False

    def __init__(
        self, *parts: Any, sample_fraction: float, epochs: int, minibatch: int, **descent: Any
    ) -> None:
        super().__init__(*parts, **descent)
        self.game.hidden_hits(self.game.initial(1, torch.Generator(self.rng.device)))
        self.sample_fraction, self.epochs, self.minibatch = sample_fraction, epochs, minibatch

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        truth = self.game.hidden_hits(results.state).float()
        losses, norms = [], []
        for _ in range(self.epochs):
            order = torch.randperm(len(moves), generator=self.rng, device=self.rng.device)
            order = order[: math.ceil(self.sample_fraction * len(moves))]
            for part in order.split(self.minibatch):
                loss = self.loss(moves, part, truth)
                norms.append(self.descend(loss, lr))
                losses.append(loss.detach())
        return {
            "loss": float(torch.stack(losses).mean()),
            "grad_norm": sum(norms) / len(norms),
            "lr": lr,
        }

    def loss(self, moves: Trajectories, part: Tensor, truth: Tensor) -> Tensor:
        """The mean over the open actions of the moves in these rows; truth: float32 [G, P, A]."""
        state = moves.state[part]
        scores, _ = self.policy.scores(self.game, state)
        open_ = self.game.legal_action_mask(state).float()
        found = binary_cross_entropy_with_logits(
            scores, truth[moves.game[part], moves.seat[part]], open_, reduction="sum"
        )
        return found / open_.sum()
