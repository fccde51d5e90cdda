"""TD learning of the afterstates of both seats, from the values of the best replies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.learners.learner import LearnerContext
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Policy
from rlgames.rewards import Reward, reversed_plies
from rlgames.rollouts.trajectories import Trajectories


def learns_replies(policy: Policy) -> bool:
    """Whether a policy values games in progress of two seats, and knows those that are over."""
    return isinstance(policy, Ntuple) and policy.has_lines


def check_backup(context: LearnerContext, backup: str | None) -> str:
    """The backup, by default the one that fits the policy.

    Raises NotImplementedError and ValueError where backup, policy and reward do not fit.
    """
    has_replies = learns_replies(context.policy)
    if backup is None:
        backup = "minimax" if has_replies else "sampled"
    if backup == "minimax" and not has_replies:
        raise NotImplementedError("backup=minimax needs policy=ntuple in a game of two seats")
    if backup != "minimax" and has_replies:
        raise ValueError(
            f"learner.backup={backup} does not fit n-tuples in a game of two seats; "
            "use learner.backup=minimax"
        )
    payoffs = context.reward.payoffs
    if backup == "minimax" and payoffs is None:
        raise ValueError(
            "learner.backup=minimax needs rewards of both seats that sum to zero; reward=outcome "
            "fits, with reward.loss=-reward.win and two opposite numbers as reward.draws"
        )
    if backup == "minimax" and payoffs is not None and payoffs[0] <= 0:
        raise ValueError("learner.backup=minimax needs reward.win above 0")
    return backup


def discount_per_ply(reward: Reward) -> float:
    """reward.discount is for a turn of one seat, which is two plies."""
    return math.sqrt(reward.discount)


def learn_replies(
    game: Game[Any],
    policy: Ntuple,
    trajectories: Trajectories,
    update: Callable[[Tensor, Tensor], None],
    discount: float,
    td_lambda: float,
) -> Tensor:
    """Learn each afterstate that is not final from the reply to it, the last one first:

        V(s_t) ← V(s_t) + lr · (-√γ · R_{t+1} - V(s_t))

    R_{t+1} is the value of the best reply as it was before learning; or, where that reply was made,
    (1 - λ) · V(s_{t+1}) + λ · (the target of s_{t+1}), with V(s_{t+1}) as just updated. So random
    moves do not spoil the targets of the moves before them (Watkins's Q(λ)).

    trajectories: of both seats. update: as SharedValues.update, of the columns that are trained.
    discount: √γ. Returns the sum of the sizes of the errors.
    """
    afterstate = game.apply_action(trajectories.state, trajectories.action)
    indices = policy.feature_indices(game, afterstate)
    value, best_reply = policy.value(game, afterstate), policy.best(game, afterstate)
    # For each game the move that follows: when it was made, its value before learning, and R if
    # it was the best.
    turn = trajectories.state.turn
    reply_turn = turn.new_full((trajectories.num_games,), -1)
    reply_value, reply = torch.zeros((2, trajectories.num_games), device=value.device)
    total_error = torch.zeros((), device=value.device)
    for ply in reversed_plies(trajectories):
        games, is_final = trajectories.game[ply], afterstate.done[ply]
        is_reply = reply_turn[games] == turn[ply] + 1  # the other player's moves may be absent
        is_best = is_reply & (reply_value[games] >= best_reply[ply])
        best = torch.where(is_best, reply[games], best_reply[ply])
        target = -discount * best
        live = ~is_final
        error = target - policy.lookup(indices[ply])
        total_error += error[live].abs().sum()
        update(indices[ply][live], error[live])
        learned = policy.clamp(policy.lookup(indices[ply]))
        learned += td_lambda * (target - learned)
        reply[games] = torch.where(is_final, value[ply], learned)
        reply_value[games], reply_turn[games] = value[ply], turn[ply]
    return total_error
