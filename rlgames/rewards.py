"""Finished moves to the return of each move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.rollouts.trajectories import FinalStates, Trajectories

SCORED = (
    "score_delta",
    "log_score_delta",
    "outcome",
    "turns",
    "score",
    "grid_sum",
    "max_tile",
    "win",
)
SUBTRACTED = ("nothing", "random_shot", "random_turn")


class Reward:
    """One composition: what is scored, what is taken off, how the future is discounted.

    scored: "score_delta", what the mover's score grew by until its next move; "log_score_delta",
        the binary logarithm of 1 + gain, negative for a loss, so that large gains do not drown
        small ones; "turns", -1 for each turn; or something paid once, with each seat's last move:
        "outcome", +1, 0 or -1 as the seat has more, as much or less than the other at the end;
        "score", its final score; or a measure of the final position by the name that the game gives
        it ("grid_sum", "max_tile", "win").
    win, loss, draws: what an outcome is worth; draws for the first seat and for the second.
    minus: taken off at the end of each turn: "nothing"; "random_shot", what one random shot
        would have gained (ship cells left ÷ cells left, as both battleship documents do);
        "random_turn", what a whole random turn would have gained.
    discount: the weight of what comes one of the player's own turns later, γ.
    scale: what all of it is multiplied by; a value head learns best from returns of about 1.
    Raises ValueError for a game that has nothing of the kind.
    """

    def __init__(
        self,
        game: Game[Any],
        scored: str = "score_delta",
        minus: str = "nothing",
        discount: float = 1.0,
        scale: float = 1.0,
        win: float = 1.0,
        loss: float = -1.0,
        draws: Sequence[float] = (0.0, 0.0),
    ) -> None:
        self.game, self.scored, self.minus = game, scored, minus
        self.discount, self.scale = discount, scale
        self.win, self.loss, self.draws = win, loss, torch.tensor(draws)
        self.at_the_end = scored not in ("score_delta", "log_score_delta", "turns")
        start = game.initial(1, torch.Generator())
        if scored == "outcome" and game.spec.seats == 1:
            raise ValueError(f"{game.spec.name} has one seat, so that no outcome can be scored")
        if len(draws) != 2:
            raise ValueError(f"reward.draws={list(draws)} should name two numbers, one a seat")
        if scored not in (
            "score_delta",
            "log_score_delta",
            "outcome",
            "turns",
            "score",
            *game.measures(start),
        ):
            raise ValueError(f"{game.spec.name} has no {scored} that could be scored")
        if minus != "nothing":
            try:
                game.expected_random_score_delta(start, plies=True)
            except NotImplementedError as error:
                raise ValueError(str(error)) from None

    def rewards(self, moves: Trajectories, results: FinalStates) -> Tensor:
        """Float32 [M]: the reward of each move by itself; a turn is paid where it ends, and what
        is paid at the end only where a game is over."""
        if self.scored == "score_delta":
            reward = moves.score_delta
        elif self.scored == "log_score_delta":
            reward = moves.score_delta.sign() * moves.score_delta.abs().log1p() / math.log(2)
        elif self.scored == "turns":
            reward = -moves.ends_turn.float()
        else:
            paid = self._final(results) * results.state.done[:, None]
            reward = paid[moves.game, moves.seat] * is_last(moves)
        if self.minus != "nothing":
            expected = self.game.expected_random_score_delta(
                moves.state, plies=self.minus == "random_shot"
            )
            reward = reward - expected * moves.ends_turn
        return reward * self.scale

    def returns(self, moves: Trajectories, results: FinalStates) -> Tensor:
        """Float32 [M]: equation 2 of Landy's article, Σ_{t ≥ t0} γ^(t - t0) · reward(t).

        The sum runs over the rest of the seat's own moves, and t counts its turns, so that all
        moves of one turn share its reward undiscounted.
        """
        return discounted_returns(self.rewards(moves, results), moves, self.discount)

    def _final(self, results: FinalStates) -> Tensor:
        """Float32 [G, P]: what each seat is paid at the end."""
        score = results.score
        if self.scored == "score":
            return score
        if self.scored == "outcome":
            others = (score.sum(1, keepdim=True) - score) / (score.shape[1] - 1)
            ahead = score - others
            draws = self.draws.to(score.device).expand_as(score)
            return torch.where(ahead > 0, self.win, torch.where(ahead < 0, self.loss, draws))
        return self.game.measures(results.state)[self.scored][:, None].expand_as(score)


def is_last(moves: Trajectories) -> Tensor:
    """Bool [M]: whether it is its seat's last move of the game."""
    owner = trajectory_id(moves)
    place = torch.arange(len(owner), device=owner.device)
    latest = torch.full((int(owner.max()) + 1,), -1, device=owner.device)
    latest.scatter_reduce_(0, owner, place, "amax")
    return latest[owner] == place


def next_index(moves: Trajectories) -> tuple[Tensor, Tensor]:
    """Int64 [M]: the place of the same seat's next move; and bool [M]: whether there is one."""
    owner = trajectory_id(moves)
    # Moves lie in the order they were made: a stable sort puts each seat's side by side.
    order = owner.argsort(stable=True)
    exists = torch.zeros_like(owner, dtype=torch.bool)
    exists[order[:-1]] = owner[order[1:]] == owner[order[:-1]]
    place = torch.empty_like(owner)
    place[order] = order.roll(-1)
    return place, exists


def discounted_returns(reward: Tensor, moves: Trajectories, discount: float) -> Tensor:
    """Float32 [M]: the discounted sum of reward, float32 [M], over each seat's later moves."""
    result = torch.empty_like(reward)
    owner = trajectory_id(moves)
    total = torch.zeros(int(owner.max()) + 1, device=reward.device)
    # The seat's next move is a turn later exactly where this one ends a turn.
    weight = torch.where(moves.ends_turn, discount, 1.0)
    stop = len(moves)
    for size in reversed(moves.ply_sizes):
        now = slice(stop - size, stop)
        stop -= size
        result[now] = reward[now] + weight[now] * total[owner[now]]
        total[owner[now]] = result[now]
    return result


def generalized_advantage(
    reward: Tensor,
    value: Tensor,
    moves: Trajectories,
    discount: float,
    decay: float,
    beyond: Tensor | None = None,
) -> Tensor:
    """Float32 [M]: equation 16 of Schulman et al. 2016, over each seat's later moves.

    reward, value: float32 [M]. decay: λ; at 1 it is the discounted return less the value.
    beyond: float32 [G], the value of where each game's window ends; 0 where the game is over.
    """
    result = torch.empty_like(reward)
    owner = trajectory_id(moves)
    seats = moves.state.score.shape[1]
    ahead = torch.zeros(2, moves.games * seats, device=reward.device)  # value, advantage
    if beyond is not None:
        ahead[0] = beyond.repeat_interleave(seats)
    weight = torch.where(moves.ends_turn, discount, 1.0)
    stop = len(moves)
    for size in reversed(moves.ply_sizes):
        now = slice(stop - size, stop)
        stop -= size
        own = owner[now]
        error = reward[now] + weight[now] * ahead[0, own] - value[now]
        result[now] = error + weight[now] * decay * ahead[1, own]
        ahead[:, own] = torch.stack([value[now], result[now]])
    return result


def trajectory_id(moves: Trajectories) -> Tensor:
    """Int64 [M]: one number for each seat of each game."""
    return moves.game * moves.state.score.shape[1] + moves.seat
