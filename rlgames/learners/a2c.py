"""Advantage actor-critic with an n-tuple policy, in a compiled kernel that plays, too."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from rlgames.core.schedule import Schedule
from rlgames.learners.learner import LearnerContext
from rlgames.learners.ntuple_logits import NtupleLogitsLearner
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates
from rlgames.sampling import Stochastic

INITIAL_MEAN_SQUARE = 100.0
"""Of advantages, before the first move, in squared units of the reward."""


class A2c(NtupleLogitsLearner):
    """Advantage actor-critic (Mnih et al. 2016, without asynchronous workers) with GAE.

    Every move of a window, the last one first, takes a step of Adagrad for each entry and a step
    of temporal coherence for each value:

        logits ← logits + lr · g ÷ √(1 + Σ g²),  g = ∇ [Â · log π(a|s) + entropy_coef · H]
        V ← V + value_lr · |Σ error| ÷ Σ |error| · (R - V),

    where logits and V are sums of K entries, the logits of each take the whole step and each value
    1 ÷ K of the correction. R = V + A is the λ-return; Â is A divided by the root of its running
    mean square, within ±5; H is the policy's entropy.

    gae_lambda: λ of GAE. entropy_coef, entropy_coef_end: at the start and at the end of the run.
    Raises ValueError for policies, rewards and sampling rules that the kernel does not have.
    """

    trains_value_head = True

    STATISTICS: ClassVar[dict[str, int]] = {"errors": 5, "sizes": 6, "squares": 7}

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None,
        value_lr: float,
        gae_lambda: float,
        entropy_coef: float,
        entropy_coef_end: float | None,
        threads: int,
    ) -> None:
        super().__init__(context, "a2c", lr, lr_end, threads)
        sampling, reward = self.sampling, self.reward
        if not isinstance(sampling, Stochastic) or sampling.temperature != 1:
            raise ValueError("learner=a2c learns from the moves of sampling=stochastic alone")
        if reward.scored != "score_delta" or reward.minus != "nothing":
            raise ValueError("learner=a2c learns from reward=score alone")
        self.value_lr, self.gae_lambda = value_lr, gae_lambda
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        mean_square = torch.full((1,), INITIAL_MEAN_SQUARE)
        self.statistics.register_buffer("mean_square", mean_square)

    def play_and_learn(
        self, pool: GamePool, plies: int | None, progress: float
    ) -> tuple[FinalStates, dict[str, float]]:
        from rlgames.kernels.ntuple_a2c import Settings, Totals, learn_games

        packed, lr = self.packed(), self.lr.at(progress)
        settings = Settings(
            cells=packed.cells,
            fours=packed.fours,
            plies=self.most_plies(plies),
            lr=np.float32(lr),
            value_lr=np.float32(self.value_lr),
            discount=np.float32(self.reward.discount),
            gae_lambda=np.float32(self.gae_lambda),
            entropy_coef=np.float32(self.entropy_coef.at(progress)),
            scale=np.float32(self.reward.scale),
        )
        mean_square = self.statistics.get_buffer("mean_square").numpy()
        policy = (self._table, packed.network, packed.permutations)

        def learn(*part_and_seed: Any) -> Totals:
            return learn_games(*policy, packed.rows, mean_square, settings, *part_and_seed)

        final_states, means = self.learn_in_kernel(learn, pool, plies)
        return final_states, means | {"lr": lr}
