"""Occupancy: a network's scores become the log-odds that an action hits."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rlgames.games.capabilities import HiddenHits, require
from rlgames.games.fleets.game import FleetGame
from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import LearnerContext
from rlgames.rollouts.trajectories import FinalStates, Trajectories


class Occupancy(GradientLearner):
    """Minimizes the binary cross-entropy of the score z of every legal action,

        loss = -y · log σ(z) - (1 - y) · log(1 - σ(z)),

    where y is 1 if the finished game reveals a hit there, else 0; averaged over the legal actions
    of all positions. The minimum is at σ(z) = the posterior probability of a hit, so the greedy
    action is the one most likely to hit. Positions come from the agent's own games. Rewards are
    not used.

    posterior_steps: where the layouts that agree with a position are listed, or can be counted in
        about this many steps (ways to place all ships but two), y is the exact posterior instead,
        which has the same minimum and less noise; 0: never.
    Raises ValueError for a game without HiddenHits, and for posterior_steps in a game without a
    fleet.
    """

    learns_from = frozenset({"earlier_weights"})
    trains_logits = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        posterior_steps: int,
        epochs: int,
        minibatch_size: int,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        self._revealing = require(self.game, HiddenHits, "learner=occupancy")
        if posterior_steps and not isinstance(self.game, FleetGame):
            raise ValueError("learner.posterior_steps needs battleship, salvo or salvo_duel")
        self.posterior_steps = posterior_steps
        self.epochs, self.minibatch_size = epochs, minibatch_size

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        hits = self._revealing.hidden_hits(final_states.state).float()
        batches = self.minibatches(len(trajectories), self.epochs, size=self.minibatch_size)
        return self.fit(
            lambda rows: self.loss(trajectories, rows, hits), batches, self.lr.at(progress)
        )

    def loss(self, trajectories: Trajectories, rows: Tensor, hits: Tensor) -> Tensor:
        """The mean over the legal actions of the moves in these rows. hits: float32 [G, P, A]."""
        state = trajectories.state[rows]
        logits, _ = self.policy.scores(self.game, state)
        legal = self.game.legal_action_mask(state).float()
        target = hits[trajectories.game[rows], trajectories.seat[rows]]
        if self.posterior_steps:
            assert isinstance(self.game, FleetGame)
            posterior = self.game.exact_occupancy(state, self.posterior_steps)
            target = torch.where(posterior.isnan(), target, posterior)
        total = binary_cross_entropy_with_logits(logits, target, legal, reduction="sum")
        return total / legal.sum()
