"""Temporal differences: values of afterstates, updated backwards from the end of each game."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.core.pages import discard_pages
from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import load_weights, parts
from rlgames.games.capabilities import InvertibleKey, require
from rlgames.games.game import State
from rlgames.games.game_2048 import Game2048
from rlgames.learners.learner import Learner, LearnerContext, check_all_finite
from rlgames.learners.reachable import reachable_afterstates
from rlgames.learners.td_compiled import CompiledTd, reason_not_compiled
from rlgames.learners.td_minimax import check_backup, discount_per_ply, learn_replies
from rlgames.learners.value_average import ValueAverage
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import AfterstateValues, mean_over_chance
from rlgames.rewards import is_last, reversed_plies, trajectory_id
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.solvers.graph import MAX_POSITIONS

MIN_PROBABILITY = 1e-7
"""How often play reaches a board that counts as reachable, at least."""


class SharedValues(nn.Module):
    """Batched updates of values that several afterstates share. step_size: as in Td.

    table: float32 [W, 1 or 3], of which policy.values and the statistics are the columns, so that a
        value shares a cache line with its statistics; None unless it is interleaved.
    errors, sizes: float32 [W], the sums of each value's errors and of their absolute values.
    times: float32 [W], the number of updates of each value.
    """

    STATISTICS: ClassVar = {
        "constant": (),
        "temporal_coherence": ("errors", "sizes"),
        "counts": ("times",),
    }
    """The names of the buffers with a number for every value, by step_size."""

    @classmethod
    def floats_per_value(cls, step_size: str, interleaved: bool) -> int:
        """The memory for each value: it and its statistics, and unless interleaved, for update."""
        return 1 + len(cls.STATISTICS[step_size]) + (not interleaved)

    def __init__(self, policy: AfterstateValues, step_size: str, interleaved: bool = False) -> None:
        super().__init__()
        self.step_size = step_size
        self.errors: Tensor
        self.sizes: Tensor
        self.times: Tensor
        names = self.STATISTICS[step_size]
        self.table: Tensor | None = None
        if interleaved:
            # Numpy asks for huge pages, without which half the time is spent on finding pages.
            zeros = np.zeros((len(policy.values), 1 + len(names)), dtype=np.float32)
            self.table = torch.from_numpy(zeros)
            for part, target in zip(parts(policy.values), parts(self.table[:, 0]), strict=True):
                target.copy_(part)
                discard_pages(part)  # the values are never there twice
            policy.values = self.table[:, 0]
        self.values = policy.values
        for column, name in enumerate(names, 1):
            own = torch.zeros_like(self.values) if self.table is None else self.table[:, column]
            self.register_buffer(name, own)
        self._representative: Tensor | None = None

    def update(self, indices: Tensor, error: Tensor, lr: float) -> None:
        """Move the values at indices, int64 [B, K], towards correcting error, float32 [B], of
        their sums: n errors at the same index count as n updates, each with their mean."""
        index = indices.reshape(-1).long()
        value_error = (error[:, None] * self._error_weights(indices)).view(-1)
        # Sum errors of equal indices at the position of any one of them. Sorting takes longer.
        position = torch.arange(len(index), dtype=torch.int32, device=index.device)
        if self._representative is None:
            self._representative = torch.zeros_like(self.values, dtype=torch.int32)
        group = self._representative.scatter_(0, index, position).index_select(0, index).long()
        ones = torch.ones_like(value_error)
        count = torch.zeros_like(value_error).scatter_add_(0, group, ones)
        total = torch.zeros_like(value_error).scatter_add_(0, group, value_error)
        unique = count.nonzero()[:, 0]
        index, count, total = (each.index_select(0, unique) for each in (index, count, total))
        mean = total / count
        rate: Tensor | float = lr
        if self.step_size == "counts":
            self.times.scatter_add_(0, index, torch.ones_like(mean))
        if self.step_size == "temporal_coherence":
            errors, sizes = self.errors.index_select(0, index), self.sizes.index_select(0, index)
            rate = lr * torch.where(sizes > 0, errors.abs() / sizes, 1.0)
            self.errors.scatter_(0, index, errors + mean)
            self.sizes.scatter_(0, index, sizes + mean.abs())
        step = (1 - (1 - rate) ** count) * mean
        self.values.scatter_add_(0, index, step)

    def reset(self, indices: Tensor) -> None:
        """Clear the statistics of newly allocated values, at indices, int64 [N]."""
        for name in self.STATISTICS[self.step_size]:
            getattr(self, name).index_fill_(0, indices, 0)

    def _error_weights(self, indices: Tensor) -> Tensor:
        """Float32 [B, K]: the fraction of an error that each value corrects; rows sum to 1."""
        if self.step_size != "counts":
            return torch.full(indices.shape, 1 / indices.shape[1], device=indices.device)
        weight = 1 / (1 + self.times.index_select(0, indices.reshape(-1)).view(indices.shape))
        return weight / weight.sum(1, keepdim=True)


class Td(Learner):
    """TD(0) on the afterstates of each seat's moves, from the last move to the first:

        V(s_t) ← V(s_t) + lr · (γ · target - V(s_t)),  target = r_{t+1} + V(s_{t+1}),

    with V(s_{t+1}) as just updated. The target of the last move is the final reward (Hickman's
    article), or in an unfinished game the value of the best action in the state where its window
    ends. Games are updated in parallel: a value that n of them share moves by 1 - (1 - lr)ⁿ
    towards their mean target, as if one had followed another. If V is a sum of K values, each
    corrects its fraction of the error.

    step_size: "constant"; "temporal_coherence": lr · |Σ error| ÷ Σ |error| for each value, 1 at
        first (Beal and Smith 1999; Jaskowski 2016); "counts": the values of a sum share its error
        in proportion to 1 ÷ (1 + updates of the value) instead of equally, so that common features
        converge and rare ones learn the rest (the gain of a Kalman filter for independent values).
    backup: "sampled" as above; "expected": the exact mean over chance of the best action's reward
        and value, without noise from chance or from exploration; "reachable": the same, not for
        the moves of the games but for all legal moves from all boards of 2048 that play
        reaches, the largest sum of tiles first (LAO*; Hansen and Zilberstein 2001). Both need
        one seat and reward.scored=score_delta. "minimax": for two seats, see learn_replies. None:
        minimax for two-seat n-tuples, else sampled.
    min_probability: boards that play reaches less often do not count as reachable.
    td_lambda: λ. The target has (1 - λ) · V(s_{t+1}) + λ · γ · (target of s_{t+1}) for V(s_{t+1}),
        where backup is "sampled" or "minimax": λ = 1 learns from returns.
    frozen_tuples: tuples whose values do not change; the others correct the whole error.
    backend: "numba" plays and learns in a compiled kernel, one game after the other; "torch" learns
        from batches of games; "auto" is "numba" where that is possible (reason_not_compiled).
    threads: that play and learn at once on the same values, where the backend is numba.
    average_start: see ValueAverage; None: evaluations and checkpoints have the latest values.
    Raises ValueError for tuples that do not exist, where all are frozen, and for a backend or
    threads that are not possible.
    """

    policy_class = AfterstateValues
    learns_from = frozenset({"rewards", "records", "windows"})
    needs = frozenset({"score_deltas"})

    policy: AfterstateValues

    def __init__(
        self,
        context: LearnerContext,
        *,
        lr: float,
        lr_end: float | None,
        step_size: str,
        backup: str | None,
        min_probability: float,
        frozen_tuples: Sequence[int],
        td_lambda: float,
        backend: str,
        threads: int,
        average_start: float | None,
    ) -> None:
        super().__init__(context)
        self.backup = backup = check_backup(context, backup)
        if backup in ("expected", "reachable"):
            self._check_expected(td_lambda)
        if backup == "reachable":
            require(self.game, InvertibleKey, "backup=reachable")
            is_2048 = isinstance(self.game, Game2048) and isinstance(self.policy, Ntuple)
            if not is_2048 or self.policy.values.device.type != "cpu":
                needs = (
                    "game=2048, policy=ntuple, which values symmetric boards alike, and device=cpu"
                )
                raise NotImplementedError(f"backup=reachable needs {needs}")
            if self.game.spec.max_positions > MAX_POSITIONS:
                raise NotImplementedError("backup=reachable needs a small board, such as board=3")
        elif min_probability != MIN_PROBABILITY:
            raise ValueError(f"learner.min_probability is for backup=reachable, not {backup}")
        self.frozen_tuples, self.td_lambda = frozen_tuples, td_lambda
        self.min_probability = min_probability
        self.lr = Schedule(lr, lr_end)
        self._trained_columns = _trained_columns(self.policy.tuple_of, frozen_tuples)
        reason = reason_not_compiled(context, step_size, backup, frozen_tuples)
        is_compiled = backend == "numba" or (backend == "auto" and not reason)
        if is_compiled and reason:
            raise ValueError(f"learner.backend=numba does not fit: {reason}")
        if threads > 1 and not is_compiled:
            raise ValueError(
                f"learner.threads={threads} needs learner.backend=numba"
                + (f", which does not fit: {reason}; use learner.threads=1" if reason else "")
            )
        self.learns_while_playing = is_compiled
        self.values = SharedValues(self.policy, step_size, interleaved=is_compiled)
        self.compiled: CompiledTd | None = None
        if self.values.table is not None:
            self.compiled = CompiledTd(context, self.values.table, backup, td_lambda, threads)
        self.average = None if average_start is None else ValueAverage(self.policy, average_start)

    def _check_expected(self, td_lambda: float) -> None:
        """Raises NotImplementedError and ValueError where targets cannot be means over chance."""
        if self.game.spec.seats != 1 or self.reward.scored != "score_delta":
            raise NotImplementedError(
                f"backup={self.backup} needs a game with one seat and reward.scored=score_delta"
            )
        if td_lambda:
            raise ValueError(
                f"learner.td_lambda={td_lambda} mixes targets of sampled moves, and "
                f"learner.backup={self.backup} has none; use learner.backup=sampled"
            )

    def play_and_learn(
        self, pool: GamePool, plies: int | None, progress: float
    ) -> tuple[FinalStates, dict[str, float]]:
        assert self.compiled is not None
        lr = self.lr.at(progress)
        final_states, error = self.compiled.play_and_learn(pool, plies, lr, progress)
        self._add_to_average(progress)
        return final_states, {"td_error": error / max(1, final_states.num_moves), "lr": lr}

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"values": self.values.state_dict()}
        return state if self.average is None else state | {"average": self.average.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_weights(self.values, state["values"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    @property
    def evaluated_policy(self) -> AfterstateValues:
        return self.policy if self.average is None else self.average.policy

    def _add_to_average(self, progress: float) -> None:
        if self.average is not None:
            self.average.add(progress)

    @torch.no_grad()
    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        metrics = self._learn(trajectories, final_states, progress)
        self._add_to_average(progress)
        return metrics

    def _learn(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        if self.backup == "minimax":
            assert isinstance(self.policy, Ntuple)
            update, discount = partial(self._update, lr=lr), discount_per_ply(self.reward)
            total_error = learn_replies(
                self.game, self.policy, trajectories, update, discount, self.td_lambda
            )
            return {"td_error": float(total_error) / len(trajectories), "lr": lr}
        if self.backup == "reachable":
            return self._back_up_reachable(lr, progress)
        afterstate = self.game.apply_action(trajectories.state, trajectories.action)
        indices, new_indices = self.policy.allocate(self.game, afterstate, self.frozen_tuples)
        self.values.reset(new_indices)
        reward = self.reward.rewards(trajectories, final_states)
        check_all_finite("a reward", reward)
        ends_game = is_last(trajectories) & final_states.state.done[trajectories.game]
        trajectory = trajectory_id(trajectories)
        seats = final_states.score.shape[1]
        next_reward = torch.zeros(trajectories.num_games * seats, device=reward.device)
        next_value = self._bootstrap_value(final_states.state).repeat_interleave(seats)
        total_error = torch.zeros((), device=reward.device)
        for ply in reversed_plies(trajectories):
            if ply.start == ply.stop:
                continue
            seat = trajectory[ply]
            if self.backup == "sampled":
                target = next_reward[seat] + next_value[seat]
            else:
                target = self._expected_target(afterstate[ply])
            if self.reward.is_final:
                target = torch.where(ends_game[ply], reward[ply], target)
            else:
                next_reward[seat] = reward[ply]
            error = self.reward.discount * target - self.policy.lookup(indices[ply])
            total_error += error.abs().sum()
            self._update(indices[ply], error, lr)
            next_value[seat] = self.policy.lookup(indices[ply])
            if self.td_lambda:
                later = self.reward.discount * target - next_value[seat]
                next_value[seat] += self.td_lambda * later
        return {"td_error": float(total_error) / len(trajectories), "lr": lr}

    def _back_up_reachable(self, lr: float, progress: float) -> dict[str, float]:
        """Update the values of all reachable afterstates, those with the largest tiles first."""
        assert isinstance(self.game, Game2048)
        total_error, count = 0.0, 0
        play = (self.game, self.policy, self.sampling, progress)
        layers = reachable_afterstates(*play, self.min_probability)
        for afterstate in reversed(layers):
            indices, new_indices = self.policy.allocate(self.game, afterstate, self.frozen_tuples)
            self.values.reset(new_indices)
            target = self.reward.discount * self._expected_target(afterstate)
            error = target - self.policy.lookup(indices)
            self._update(indices, error, lr)
            total_error, count = total_error + float(error.abs().sum()), count + len(error)
        return {"td_error": total_error / max(1, count), "lr": lr, "boards": count}

    def _update(self, indices: Tensor, error: Tensor, lr: float) -> None:
        """Correct the errors, float32 [B], of values with these feature indices, [B, K]."""
        self.values.update(indices[:, self._trained_columns], error, lr)

    def _bootstrap_value(self, state: State) -> Tensor:
        """Float32 [G]: reward and value of the best move where each game's window ends, 0 where the
        game is over."""
        return self.policy.best(self.game, state) + (self.reward.constant or 0.0) * ~state.done

    def _expected_target(self, afterstate: State) -> Tensor:
        """Float32 [B]: the mean over chance of the best action's reward and value."""
        return mean_over_chance(self.game, afterstate, partial(self.policy.best, self.game))


def _trained_columns(tuple_of: Tensor, frozen: Sequence[int]) -> Tensor | slice:
    """The columns of the value indices that are not frozen. tuple_of: int64 [K], their tuples."""
    numbers = tuple_of.unique().tolist()
    for number in frozen:
        if number not in numbers:
            valid = "0" if len(numbers) == 1 else f"0 to {numbers[-1]}"
            raise ValueError(f"learner.frozen_tuples={list(frozen)}: the tuples are {valid}")
    if not frozen:
        return slice(None)
    if set(frozen) == set(numbers):
        raise ValueError(f"learner.frozen_tuples={list(frozen)} leaves nothing to learn")
    return torch.tensor([number not in frozen for number in tuple_of.tolist()]).nonzero()[:, 0]
