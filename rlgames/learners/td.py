"""Temporal differences: a table of afterstates, updated backwards from the end of each game."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.core.schedule import Schedule
from rlgames.games.game import State
from rlgames.learners.learner import (
    BatchLearner,
    LearnerContext,
    Plan,
    check_afterstate_reward,
    check_all_finite,
)
from rlgames.policies.policy import AfterstateValues
from rlgames.rewards import is_last, plies, trajectory_id
from rlgames.rollouts.trajectories import FinalStates, Trajectories


class Td(BatchLearner):
    """TD(λ) on the afterstates of each seat's moves, from the last move to the first:

        V(s_t) ← V(s_t) + lr · (γ · target - V(s_t)),
        target = r_{t+1} + (1 - λ) · V(s_{t+1}) + λ · γ · (target of s_{t+1}),

    with V(s_{t+1}) as just updated. The target of the last move is the final reward (Hickman's
    article), or in an unfinished game the value of the best action in the state where its window
    ends. Games are updated in parallel: a value that n of them share moves by 1 - (1 - lr)ⁿ
    towards their mean target, as if one had followed another.

    td_lambda: λ = 1 learns from returns.
    """

    policy_class = AfterstateValues
    learns_from = frozenset({"rewards", "records", "windows"})

    policy: AfterstateValues

    def __init__(
        self, context: LearnerContext, *, lr: float, lr_end: float | None, td_lambda: float
    ) -> None:
        super().__init__(context)
        self.td_lambda, self.lr = td_lambda, Schedule(lr, lr_end)
        self._representative = torch.zeros_like(self.policy.values, dtype=torch.int32)

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        check_afterstate_reward(plan)

    @torch.no_grad()
    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, values = self.lr.at(progress), self.policy.values
        afterstate = self.game.apply_action(trajectories.state, trajectories.action)
        index = self.policy.index(self.game, afterstate)
        reward = self.reward.rewards(trajectories, final_states)
        check_all_finite("a reward", reward)
        ends_game = is_last(trajectories) & final_states.state.done[trajectories.game]
        trajectory = trajectory_id(trajectories)
        seats = final_states.score.shape[1]
        next_reward = torch.zeros(trajectories.num_games * seats, device=reward.device)
        next_value = self._bootstrap_value(final_states.state).repeat_interleave(seats)
        total_error = torch.zeros((), device=reward.device)
        for ply in reversed(plies(trajectories)):
            seat = trajectory[ply]
            target = next_reward[seat] + next_value[seat]
            if self.reward.is_final:
                target = torch.where(ends_game[ply], reward[ply], target)
            else:
                next_reward[seat] = reward[ply]
            error = self.reward.discount * target - values[index[ply]]
            total_error += error.abs().sum()
            self._correct(index[ply], error, lr)
            next_value[seat] = values[index[ply]]
            if self.td_lambda:
                later = self.reward.discount * target - next_value[seat]
                next_value[seat] += self.td_lambda * later
        return {"td_error": float(total_error) / len(trajectories), "lr": lr}

    def _correct(self, index: Tensor, error: Tensor, lr: float) -> None:
        """Move the values at index, int64 [B], towards correcting error, float32 [B]: n errors at
        the same index count as n updates, each with their mean."""
        # Sum errors of equal indices at the position of any one of them. Sorting takes longer.
        position = torch.arange(len(index), dtype=torch.int32, device=index.device)
        group = self._representative.scatter_(0, index, position).index_select(0, index).long()
        count = torch.zeros_like(error).scatter_add_(0, group, torch.ones_like(error))
        total = torch.zeros_like(error).scatter_add_(0, group, error)
        unique = count.nonzero()[:, 0]
        index, count, total = (each.index_select(0, unique) for each in (index, count, total))
        step = (1 - (1 - lr) ** count) * (total / count)
        self.policy.values.scatter_add_(0, index, step)

    def _bootstrap_value(self, state: State) -> Tensor:
        """Float32 [G]: reward and value of the best move where each game's window ends, 0 where the
        game is over."""
        return self.policy.best(self.game, state) + (self.reward.constant or 0.0) * ~state.done
