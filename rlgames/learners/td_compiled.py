"""TD learning of n-tuple networks in a compiled kernel that plays, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from torch import Tensor

from rlgames.core.schedule import Schedule
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.learner import LearnerContext, NonFiniteError
from rlgames.learners.packed_games import learn_packed_games
from rlgames.learners.td_minimax import learns_replies
from rlgames.policies.packed_lines import TOO_LARGE
from rlgames.policies.packed_ntuple import ON_CPU, Array, PackedNtuple, reason_not_packed
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling


def reason_not_compiled(
    context: LearnerContext, step_size: str, backup: str, frozen_tuples: Sequence[int]
) -> str:
    """Why CompiledTd cannot learn this, as part of a sentence; "" if it can."""
    if learns_replies(context.policy):
        reason = ON_CPU if context.policy.values.device.type != "cpu" else ""
        if isinstance(context.game, KInARow) and context.game.has_rows:
            reason = TOO_LARGE
    else:
        reason = reason_not_packed(context.game, context.policy)
    if reason:
        return reason
    if step_size == "counts" or backup == "every":
        return f"it has no learner.step_size={step_size} with learner.backup={backup}"
    if frozen_tuples:
        return "it has no learner.frozen_tuples"
    if epsilon_schedule(context.sampling) is None:
        return "it plays by sampling=argmax or epsilon_greedy with sampling.ties=first"
    if learns_replies(context.policy):
        return ""
    if context.reward.scored != "score_delta" or context.reward.minus != "nothing":
        return "it learns from reward=score alone"
    return ""


def epsilon_schedule(sampling: Sampling) -> Schedule | None:
    """The fraction of random moves of a sampling rule; None if it is none that is compiled."""
    if isinstance(sampling, Argmax) and sampling.deterministic:
        return Schedule(0.0)
    if isinstance(sampling, EpsilonGreedy) and sampling.greedy.deterministic:
        return sampling.epsilon
    return None


class CompiledTd:
    """Plays games and learns from each window of a game before the next game.

    With one thread, equal generators and values give equal values, to the last bit. Several threads
    read and write the same values without locks.

    table: float32 [W, 1 or 4], the policy's values and their statistics, as SharedValues.interleave
        returns them.
    """

    def __init__(
        self, context: LearnerContext, table: Tensor, backup: str, td_lambda: float, threads: int
    ) -> None:
        self.game, self.policy, self.reward = context.game, context.policy, context.reward
        self.backup, self.td_lambda, self.threads = backup, td_lambda, threads
        epsilon = epsilon_schedule(context.sampling)
        assert epsilon is not None
        self.epsilon, self.stride = epsilon, table.shape[1]
        self._table: Array = table.numpy().reshape(-1)
        self._packed: PackedNtuple | None = None

    def play_and_learn(
        self, pool: GamePool, plies: int | None, lr: float, progress: float
    ) -> tuple[FinalStates, float]:
        """Play and learn as Learner.play_and_learn; also the sum of the sizes of the errors."""
        from rlgames.kernels.ntuple_td import learn_games

        packed = self._packed = self._packed or PackedNtuple(self.game, self.policy, self.stride)
        settings = self._settings(packed, plies, lr, progress)
        shared = (self._table, packed.network, packed.compiled.rules.rows, settings)

        def learn(*part_and_seed: Any) -> tuple[int, float]:
            return learn_games(*shared, *part_and_seed)

        final_states, results = learn_packed_games(
            learn, itemgetter(0), pool, plies, packed.compiled, self.threads
        )
        total_error = sum(error for _, error in results)
        if not math.isfinite(total_error):
            raise NonFiniteError("a value is not a finite number; a smaller lr may help")
        return final_states, total_error

    def _settings(self, packed: PackedNtuple, plies: int | None, lr: float, progress: float) -> Any:
        from rlgames.kernels.ntuple_td import Settings

        max_plies = self.game.spec.max_plies
        return Settings(
            cells=packed.compiled.rules.cells,
            fours=packed.compiled.rules.fours,
            epsilon=np.uint64(round(self.epsilon.at(progress) * 2**32)),
            plies=max_plies if plies is None else min(plies, max_plies),
            lr=np.float32(lr),
            discount=np.float32(self.reward.discount),
            td_lambda=np.float32(self.td_lambda),
            scale=np.float32(self.reward.scale),
            coherent=self.stride > 1,
            expected=self.backup == "expected",
        )
