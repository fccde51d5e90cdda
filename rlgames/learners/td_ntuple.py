"""TD learning of n-tuple networks in a compiled kernel that also plays."""

from __future__ import annotations

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import nn

from rlgames.core.errors import ConfigError, NonFiniteError
from rlgames.core.pages import discard_pages
from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import load_weights, parts
from rlgames.core.untrusted import checked_int
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import State
from rlgames.kernels.stepping import Games
from rlgames.kernels.td import Settings, learn_games
from rlgames.kernels.words import Words
from rlgames.learners.learner import (
    GamesToPlay,
    Learner,
    LearnerContext,
    Plan,
    check_afterstate_reward,
)
from rlgames.policies.ntuple import Ntuple, reason_not_compiled
from rlgames.rng import Rng
from rlgames.rollouts.trajectories import FinalStates
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling

PARTS = 100
"""ValueAverage adds the values once in each of this many parts of a training."""


class ValueTable(nn.Module):
    """The values of a network, each followed by its statistics, so that both share a cache line.

    step_size: as in TdNtuple. table: float32 [W, 1 or 3], of which policy.values and the statistics
        are the columns.
    errors, sizes: float32 [W], the sums of each value's errors and of their absolute values.
    """

    STATISTICS: ClassVar = {"constant": (), "temporal_coherence": ("errors", "sizes")}
    """The names of the buffers with a number for every value, by step_size."""

    trained_buffers: tuple[str, ...]

    def __init__(self, policy: Ntuple, step_size: str) -> None:
        super().__init__()
        self.trained_buffers = names = self.STATISTICS[step_size]
        # Numpy asks for huge pages, without which half the time is spent on finding pages.
        zeros = np.zeros((len(policy.values), 1 + len(names)), dtype=np.float32)
        self.table = torch.from_numpy(zeros)
        for part, target in zip(parts(policy.values), parts(self.table[:, 0]), strict=True):
            target.copy_(part)
            discard_pages(part)  # the values are never there twice
        policy.values = self.table[:, 0]
        for column, name in enumerate(names, 1):
            self.register_buffer(name, self.table[:, column])


class TdNtuple(Learner):
    """TD(λ) on the afterstates of each seat's moves. A kernel plays each game, or a window of it,
    and learns from its last move to its first before it plays the next game:

        V(s_t) ← V(s_t) + lr · (γ · target - V(s_t)),
        target = r_{t+1} + (1 - λ) · V(s_{t+1}) + λ · γ · (target of s_{t+1}),

    with V(s_{t+1}) as just updated. V is a sum of K values, and each corrects its part of the
    error. At the end of a window, the target is the value of the best move.

    With two seats, V(s_{t+1}) is the value of the reply, so the target is

        -√γ · R_{t+1},  R_{t+1} = (1 - λ) · V(s_{t+1}) + λ · (target of s_{t+1}),

    as reward.discount is for a turn of one seat, which is two plies. If the reply was not the best
    one, R_{t+1} is the value of the best one instead: random moves do not spoil the targets of the
    moves before them (Watkins's Q(λ)).

    With one thread, equal generators and values give equal values, to the last bit. Several threads
    read and write the same values without locks.

    step_size: "constant", or "temporal_coherence": lr · |Σ error| ÷ Σ |error| for each value, 1 at
        first (Beal and Smith 1999; Jaskowski 2016).
    td_lambda: λ. threads: how many play and learn at once on the same values.
    average_start: see ValueAverage; None: evaluations and checkpoints have the latest values.
    Raises NotImplementedError and ValueError for what the kernel cannot learn.
    """

    policy_class = Ntuple
    learns_from = frozenset({"rewards", "windows"})

    policy: Ntuple

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None,
        step_size: str,
        td_lambda: float,
        threads: int,
        average_start: float | None,
    ) -> None:
        super().__init__(context)
        _check_kernel_learns(context)
        self.has_replies = self.policy.has_stones
        self.td_lambda, self.threads = td_lambda, threads
        self.lr = Schedule(lr, lr_end)
        epsilon = epsilon_schedule(context.sampling)
        assert epsilon is not None
        assert isinstance(context.game, BoardGame)
        self.epsilon, self.board_game = epsilon, context.game
        self.values = ValueTable(self.policy, step_size)
        self.stride = self.values.table.shape[1]
        self.average = None if average_start is None else ValueAverage(self.policy, average_start)

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        check_afterstate_reward(plan)
        cfg, keys = plan.cfg, cast(Any, plan.cfg.learner)
        if cfg.opponent.name != "self":
            raise ConfigError(
                f"learner={cfg.learner.name} learns from games against itself, not from "
                f"opponent={cfg.opponent.name}",
                "remove opponent=, or use policy=mlp learner=ppo",
            )
        if keys.average_start is not None and (cfg.schedule_games or cfg.games) < cfg.games:
            raise ConfigError(
                f"learner.average_start={keys.average_start} averages until "
                f"schedule_games={cfg.schedule_games}, and games={cfg.games} go on after it",
                "remove schedule_games=",
            )

    @classmethod
    def floats_per_weight(cls, keys: Any) -> int:
        """A value, its statistics and its mean."""
        has_mean = keys.average_start is not None
        return 1 + len(ValueTable.STATISTICS[keys.step_size]) + has_mean

    @property
    def evaluated_policy(self) -> Ntuple:
        return self.policy if self.average is None else self.average.policy

    def learn(self, games: GamesToPlay, progress: float) -> tuple[FinalStates, dict[str, float]]:
        pool, plies, lr = games.pool(), games.plies, self.lr.at(progress)
        policy = self.policy.compiled(self.game)
        assert policy is not None
        shared = (self.values.table.numpy().reshape(-1), policy.network, self.board_game.rules)
        settings = self._settings(plies, lr, progress)
        total_error = 0.0

        def learn(keys: Words, *columns: Any) -> tuple[int, float]:
            return learn_games(*shared, settings, Games(*columns), keys)

        def learn_all(keys: Words, games: Games) -> tuple[int, float]:
            nonlocal total_error
            if self.threads == 1:
                num_moves, total_error = learn(keys, *games)
                return num_moves, total_error
            shares = [np.array_split(column, self.threads) for column in (keys, *games)]
            with ThreadPoolExecutor(self.threads) as executor:
                moves, errors = zip(*executor.map(learn, *shares), strict=True)
            total_error = sum(errors)
            return sum(moves), total_error

        def play(state: State, rng: Rng) -> tuple[State, int]:
            return self.board_game.play_with(
                cast(BoardState, state), lambda games: learn_all(rng.keys, games)
            )

        final_states = pool.play_window(play, plies)
        if not math.isfinite(total_error):
            raise NonFiniteError("a value is not a finite number; a smaller lr may help")
        if self.average is not None:
            self.average.add(progress)
        metrics = {"td_error": total_error / max(1, final_states.num_moves), "lr": lr}
        if not self.has_replies:
            # Positions with a tile that num_cell_values does not tell from others.
            max_tile = self.game.measures(final_states.state)["max_tile"]
            is_clipped = max_tile >= 1 << self.policy.num_cell_values
            metrics["clipped_boards"] = float(is_clipped.float().mean())
        return final_states, metrics

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"values": self.values.state_dict()}
        return state if self.average is None else state | {"average": self.average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_weights(self.values, state["values"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    def _settings(self, plies: int | None, lr: float, progress: float) -> Any:
        max_plies, discount = self.game.spec.max_plies, self.reward.discount
        return Settings(
            epsilon=np.uint64(round(self.epsilon.at(progress) * 2**32)),
            plies=max_plies if plies is None else min(plies, max_plies),
            lr=np.float32(lr),
            discount=np.float32(-math.sqrt(discount) if self.has_replies else discount),
            td_lambda=np.float32(self.td_lambda),
            scale=np.float32(self.reward.scale),
            coherent=self.stride > 1,
        )


class ValueAverage:
    """Averages the values that a learner trains, so that they can go on changing quickly (Polyak
    and Juditsky 1992).

    policy: like the trained one, with the mean of its values since `start`, a fraction of the
        training; before that, with the same values. If a training becomes longer, the mean begins
        anew.
    """

    def __init__(self, trained: Ntuple, start: float) -> None:
        self.start, self.count, self.part = start, 0, -1
        self.policy = copy.copy(trained)
        self.policy._buffers = dict(trained._buffers)  # only the values will differ
        self._latest = trained.values

    @torch.no_grad()
    def add(self, progress: float) -> None:
        """Count the trained values if it is time. progress: the fraction of training done."""
        part = int(progress * PARTS)
        if part < self.part:
            self.count, self.part, self.policy.values = 0, -1, self._latest
        if progress < self.start or part == self.part:
            return
        self.count, self.part = self.count + 1, part
        if self.count == 1:
            self._separate()
        values = zip(parts(self.policy.values), parts(self._latest), strict=True)
        for mean, latest in values:
            mean.lerp_(latest, 1 / self.count)

    def _separate(self) -> None:
        self.policy.values = self._latest.clone(memory_format=torch.contiguous_format)

    def state_dict(self) -> dict[str, Any]:
        latest = {"values": self._latest} if self.count else {}
        return {"count": self.count, "part": self.part, "trained": latest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore both from the trained policy, which has loaded what `policy` had, and a state.
        Raises LookupError, TypeError or ValueError for a state that does not match."""
        self.count = checked_int(state["count"], 0, PARTS + 1)
        self.part = checked_int(state["part"], -1, PARTS)
        if self.count:
            self._separate()
            trained = nn.Module()
            trained.register_parameter("values", nn.Parameter(self._latest, requires_grad=False))
            load_weights(trained, state["trained"])


def epsilon_schedule(sampling: Sampling) -> Schedule | None:
    """The fraction of random moves of a sampling rule; None if it is none that is compiled."""
    if isinstance(sampling, Argmax) and sampling.deterministic:
        return Schedule(0.0)
    if isinstance(sampling, EpsilonGreedy) and sampling.greedy.deterministic:
        return sampling.epsilon
    return None


def _check_kernel_learns(context: LearnerContext) -> None:
    """Raises NotImplementedError for games, sampling rules and rewards that the kernel lacks, and
    ValueError for rewards of two seats that do not sum to zero."""
    reason, reward = reason_not_compiled(context.game, context.policy), context.reward
    if not reason and epsilon_schedule(context.sampling) is None:
        reason = "it plays by sampling=argmax or epsilon_greedy with sampling.ties=first"
    pays_deltas = (reward.scored, reward.minus, reward.is_own) == ("score_delta", "nothing", False)
    if not reason and not context.policy.has_stones and not pays_deltas:
        reason = "it learns only from reward=score"
    if reason:
        raise NotImplementedError(reason)
    if not context.policy.has_stones:
        return
    if reward.payoffs is None:
        raise ValueError(
            "learner=td_ntuple needs rewards of both seats that sum to zero: use reward=outcome "
            "with reward.loss=-reward.win and two opposite numbers as reward.draws"
        )
    if reward.payoffs[0] <= 0:
        raise ValueError("learner=td_ntuple needs reward.win above 0")
