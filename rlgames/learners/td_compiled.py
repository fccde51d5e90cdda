"""TD learning of n-tuple networks in a compiled kernel that also plays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.errors import NonFiniteError
from rlgames.core.schedule import Schedule
from rlgames.games.capabilities import find_compiled_rules
from rlgames.games.compiled import play_packed
from rlgames.games.game import State
from rlgames.learners.learner import LearnerContext
from rlgames.learners.td_minimax import discount_per_ply, learns_replies
from rlgames.policies.packed_ntuple import Array, pack_network, reason_not_packed
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling


def reason_not_compiled(
    context: LearnerContext, step_size: str, backup: str, frozen_tuples: Sequence[int]
) -> str:
    """Why CompiledTd cannot learn this, as part of a sentence; "" if it can."""
    reason = reason_not_packed(context.game, context.policy)
    if reason:
        return reason
    for key, value in (("step_size", step_size), ("backup", backup)):
        if value in ("counts", "reachable"):
            return f"it has no learner.{key}={value}"
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

    table: float32 [W, 1 or 3], the policy's values and their statistics, as SharedValues has
        them.
    """

    def __init__(
        self, context: LearnerContext, table: Tensor, backup: str, td_lambda: float, threads: int
    ) -> None:
        self.game, self.policy, self.reward = context.game, context.policy, context.reward
        self.backup, self.td_lambda, self.threads = backup, td_lambda, threads
        epsilon, compiled = epsilon_schedule(context.sampling), find_compiled_rules(context.game)
        assert epsilon is not None
        assert compiled is not None
        self.epsilon, self.compiled, self.stride = epsilon, compiled, table.shape[1]
        self._table: Array = table.numpy().reshape(-1)
        self._network: Any = None

    def play_and_learn(
        self, pool: GamePool, plies: int | None, lr: float, progress: float
    ) -> tuple[FinalStates, float]:
        """Play and learn as Learner.play_and_learn; also the sum of the sizes of the errors."""
        from rlgames.kernels.random_play import Games
        from rlgames.kernels.td import learn_games

        self._network = self._network or pack_network(self.game, self.policy, self.stride)
        shared = (self._table, self._network, self.compiled.rules)
        settings = self._settings(plies, lr, progress)
        seeds = torch.randint(1 << 62, (self.threads,), generator=pool.rng).numpy()
        total_error = 0.0

        def learn(*part_and_seed: Any) -> tuple[int, float]:
            *columns, seed = part_and_seed
            return learn_games(*shared, settings, Games(*columns), seed)

        def learn_all(games: Games) -> tuple[int, float]:
            nonlocal total_error
            results = _in_threads(learn, games, seeds.astype(np.uint64))
            total_error = sum(error for _, error in results)
            return sum(moves for moves, _ in results), total_error

        def play(state: State) -> tuple[State, int]:
            return play_packed(self.compiled, state, learn_all)

        final_states = pool.play_window(play, plies)
        if not math.isfinite(total_error):
            raise NonFiniteError("a value is not a finite number; a smaller lr may help")
        return final_states, total_error

    def _settings(self, plies: int | None, lr: float, progress: float) -> Any:
        from rlgames.kernels.td import Settings

        max_plies, is_minimax = self.game.spec.max_plies, self.backup == "minimax"
        discount = -discount_per_ply(self.reward) if is_minimax else self.reward.discount
        return Settings(
            epsilon=np.uint64(round(self.epsilon.at(progress) * 2**32)),
            plies=max_plies if plies is None else min(plies, max_plies),
            lr=np.float32(lr),
            discount=np.float32(discount),
            td_lambda=np.float32(self.td_lambda),
            scale=np.float32(self.reward.scale),
            coherent=self.stride > 1,
            minimax=is_minimax,
            expected=self.backup == "expected",
            learns=True,
        )


def _in_threads(learn: Any, columns: Sequence[Array], seeds: Array) -> list[tuple[int, float]]:
    """Call learn once for each seed, in its own thread, with a part of the rows of each column
    and the seed; what each call returns."""
    if len(seeds) == 1:
        return [learn(*columns, seeds[0])]
    parts = [np.array_split(column, len(seeds)) for column in columns]
    with ThreadPoolExecutor(len(seeds)) as pool:
        return list(pool.map(learn, *parts, seeds))
