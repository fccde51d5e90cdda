"""TD learning of n-tuple networks of k in a row in a compiled kernel that plays both seats."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.learner import LearnerContext, NonFiniteError
from rlgames.learners.packed_games import learn_in_threads, thread_seeds
from rlgames.learners.td_compiled import epsilon_schedule
from rlgames.learners.td_minimax import discount_per_ply
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.packed_lines import Array, make_network, make_rules, make_settings
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates


class CompiledLinesTd:
    """Plays games to their ends and learns from each before the next one; otherwise as CompiledTd.

    backup: "minimax".
    """

    def __init__(
        self, context: LearnerContext, table: Tensor, backup: str, td_lambda: float, threads: int
    ) -> None:
        assert isinstance(context.game, KInARow)
        assert isinstance(context.policy, Ntuple)
        assert backup == "minimax"
        self.game, self.policy, self.reward = context.game, context.policy, context.reward
        self.td_lambda, self.threads, self.stride = td_lambda, threads, table.shape[1]
        epsilon = epsilon_schedule(context.sampling)
        assert epsilon is not None
        self.epsilon = epsilon
        self._table: Array = table.numpy().reshape(-1)
        self._network: Any = None
        self._rules: Any = None

    def play_and_learn(
        self, pool: GamePool, plies: int | None, lr: float, progress: float
    ) -> tuple[FinalStates, float]:
        """Play and learn as Learner.play_and_learn; also the sum of the sizes of the errors."""
        from rlgames.kernels.ntuple_lines import Games, learn_games

        assert plies is None
        self._network = self._network or make_network(self.game, self.policy, self.stride)
        self._rules = self._rules or make_rules(self.game)
        settings = make_settings(
            self.policy,
            epsilon=self.epsilon.at(progress),
            lr=lr,
            discount=discount_per_ply(self.reward),
            td_lambda=self.td_lambda,
            coherent=self.stride > 1,
        )
        seeds = thread_seeds(pool, self.threads)
        total_error = 0.0

        def learn(*part_and_seed: Any) -> tuple[int, float]:
            *columns, seed = part_and_seed
            games = Games(*columns)
            return learn_games(self._table, self._network, self._rules, settings, games, seed)

        def play(state: Any) -> tuple[Any, int]:
            nonlocal total_error
            last = type(state)(**{name: column.clone() for name, column in vars(state).items()})
            columns = tuple(getattr(last, name).numpy() for name in Games._fields)
            results = learn_in_threads(learn, columns, seeds)
            total_error = sum(error for _, error in results)
            return last, sum(num_moves for num_moves, _ in results)

        final_states = pool.play_window(play, plies)
        if not math.isfinite(total_error):
            raise NonFiniteError("a value is not a finite number; a smaller lr may help")
        return final_states, total_error
