"""DAgger: the policy plays, and learns what a teacher would do in the positions it meets."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.learners.learner import LearnerContext
from rlgames.learners.ntuple_logits import NtupleLogitsLearner
from rlgames.players.player import Agent, Player
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.packed_ntuple import PackedNtuple, reason_not_packed
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates


class Dagger(NtupleLogitsLearner):
    """DAgger (Ross, Gordon and Bagnell 2011) with an n-tuple policy and an n-tuple teacher.

    The policy plays greedily. At every move, the cross-entropy between its softmax and the target,
    the softmax of the teacher's scores ÷ temperature over the legal actions, takes a step of
    Adagrad: lr · gradient ÷ √(1 + Σ squared gradients) for each entry. Each position is learned
    from once, when it is met.

    temperature: of the teacher's scores, in their units; 0: imitate the best action alone.
    Raises ValueError for policies and sampling rules that the kernel does not have.
    """

    learns_from_rewards = False
    has_teacher = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None,
        temperature: float,
        threads: int,
    ) -> None:
        super().__init__(context, "dagger", lr, lr_end, threads)
        if not self.sampling.deterministic:
            raise ValueError("learner=dagger plays by sampling=argmax with sampling.ties=first")
        self.temperature = temperature
        self._packed_teacher: PackedNtuple | None = None

    def check_teacher(self, teacher: Player) -> None:
        policy = teacher.policy if isinstance(teacher, Agent) else None
        if not isinstance(policy, Ntuple):
            raise ValueError("learner=dagger needs the run of a policy=ntuple as its teacher")
        if reason := reason_not_packed(self.game, policy):
            raise ValueError(f"learner=dagger cannot ask this teacher: {reason}")

    def play_and_learn(
        self, pool: GamePool, plies: int | None, progress: float
    ) -> tuple[FinalStates, dict[str, float]]:
        from rlgames.kernels.ntuple_dagger import Settings, Totals, learn_games

        teacher, packed = pool.players[0], self.packed()
        assert isinstance(teacher, Agent)
        assert isinstance(teacher.policy, Ntuple)
        asked = self._packed_teacher or PackedNtuple(self.game, teacher.policy, 1)
        self._packed_teacher = asked
        lr = self.lr.at(progress)
        settings = Settings(
            cells=packed.cells,
            fours=packed.fours,
            plies=self.most_plies(plies),
            lr=np.float32(lr),
            temperature=np.float32(self.temperature),
            scale=np.float32(teacher.policy.score_scale),
        )
        policy = (self._table, packed.network, packed.permutations)
        values = teacher.policy.values.numpy()

        def learn(*part_and_seed: Any) -> Totals:
            shared = (*policy, values, asked.network, packed.rows, settings)
            return learn_games(*shared, *part_and_seed)

        final_states, means = self.learn_in_kernel(learn, pool, plies)
        return final_states, means | {"lr": lr}
