"""TD learning of n-tuple networks in a compiled kernel that plays, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.schedule import Schedule
from rlgames.games.game import State
from rlgames.games.game_2048 import Game2048State
from rlgames.learners.learner import LearnerContext, NonFiniteError
from rlgames.learners.td_minimax import learns_replies
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


def learn_in_threads(
    learn: Callable[..., tuple[int, float]], columns: tuple[Array, ...], seeds: Array
) -> list[tuple[int, float]]:
    """Call learn once for each seed, in a thread of its own, with a part of the rows of each column
    and the seed; what each call returns."""
    num_threads = len(seeds)
    parts = zip(*(np.array_split(column, num_threads) for column in columns), strict=True)
    results: list[tuple[int, float]] = [(0, 0.0)] * num_threads

    def run(number: int, part: tuple[Array, ...]) -> None:
        results[number] = learn(*part, seeds[number])

    if num_threads == 1:
        run(0, columns)
        return results
    threads = [Thread(target=run, args=item) for item in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


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
        size = (self.threads,)
        seeds = torch.randint(1 << 62, size, generator=pool.rng).numpy().astype(np.uint64)
        total_error = 0.0

        def play(state: State) -> tuple[State, int]:
            nonlocal total_error
            assert isinstance(state, Game2048State)
            boards, score = packed.pack(state.tiles), state.score[:, 0].numpy().copy()
            turn, done = state.turn.numpy().copy(), state.done.numpy().copy()
            shared = (self._table, packed.network, packed.rows, settings)
            columns = (boards, score, turn, done)

            def learn(*part_and_seed: Any) -> tuple[int, float]:
                return learn_games(*shared, *part_and_seed)

            results = learn_in_threads(learn, columns, seeds)
            total_error = sum(error for _, error in results)
            last_state = replace(
                state,
                done=torch.from_numpy(done),
                turn=torch.from_numpy(turn),
                score=torch.from_numpy(score)[:, None],
                tiles=packed.unpack(boards),
            )
            return last_state, sum(num_moves for num_moves, _ in results)

        final_states = pool.play_window(play, plies)
        if not math.isfinite(total_error):
            raise NonFiniteError("a value is not a finite number; a smaller lr may help")
        return final_states, total_error

    def _settings(self, packed: PackedNtuple, plies: int | None, lr: float, progress: float) -> Any:
        from rlgames.kernels.ntuple_td import Settings

        max_plies = self.game.spec.max_plies
        return Settings(
            cells=packed.cells,
            fours=np.uint64(round(packed.game.fours * 2**32)),
            epsilon=np.uint64(round(self.epsilon.at(progress) * 2**32)),
            plies=max_plies if plies is None else min(plies, max_plies),
            lr=np.float32(lr),
            discount=np.float32(self.reward.discount),
            td_lambda=np.float32(self.td_lambda),
            scale=np.float32(self.reward.scale),
            coherent=self.stride > 1,
            expected=self.backup == "expected",
        )
