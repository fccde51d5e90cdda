"""Rewards and returns of moves, and generalized advantage estimation.

To add what a reward can score or subtract, add a function, its name in MOVE_TERMS, FINAL_TERMS or
SUBTRACTED, and the choice in config/options/rewards.py. Shapes: M moves of G games with P seats.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from rlgames.games.capabilities import KnownRandomPlay, require
from rlgames.games.game import Game, State
from rlgames.rollouts.returns import sum_advantages, sum_rewards
from rlgames.rollouts.trajectories import FinalStates, Trajectories


def outcome(reward: Reward, final_states: FinalStates) -> Tensor:
    """reward.win, draws or loss, as the seat's score compares with the mean of the others'."""
    score = final_states.score
    others = (score.sum(1, keepdim=True) - score) / (score.shape[1] - 1)
    lead = score - others
    draws = reward.draws.to(score.device).expand_as(score)
    return draws.masked_fill(lead < 0, reward.loss).masked_fill(lead > 0, reward.win)


MOVE_TERMS: dict[str, Callable[[Trajectories], Tensor]] = {
    "score_delta": lambda trajectories: trajectories.score_delta,
    "turns": lambda trajectories: -trajectories.ends_turn.float(),
}
"""What a reward can score with every move, float32 [M]. score_delta: the change in score until the
seat's next move; turns: -1 per turn."""

FINAL_TERMS: dict[str, Callable[[Reward, FinalStates], Tensor]] = {
    "outcome": outcome,
    "score": lambda reward, final_states: final_states.score,
}
"""What it can score once, with each seat's last move of a finished game, float32 [G, P], besides
the measures of the game's final position."""

SUBTRACTED: dict[str, Callable[[KnownRandomPlay, State], Tensor]] = {
    "random_shot": lambda game, state: game.expected_random_score_delta(state, plies=True),
    "random_turn": lambda game, state: game.expected_random_score_delta(state, plies=False),
}
"""What a reward can subtract at the end of every turn, for the states before the moves: what one
random ply or turn is expected to score. In battleship a random shot scores ship cells left ÷ cells
left, as in both battleship documents."""


class Reward:
    """(what is scored - what is subtracted) · scale, with a discount for the future.

    scored: a name in MOVE_TERMS or FINAL_TERMS, a measure of the game, or "goal". minus: a name in
    SUBTRACTED, or "nothing". is_own: whether a subclass computes its own rewards, which may pay for
    any move. is_final: whether nothing is paid or subtracted before the end of the game. constant:
    what every turn before the last one earns, whatever the move; None if moves differ. A subclass
    may leave out what it does not use.
    Raises ValueError for a term that does not fit the game.
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
        if len(draws) != 2:
            raise ValueError(f"reward.draws={list(draws)} needs two numbers, one per seat")
        self.game, self.scored, self.minus = game, scored_term(scored, game), minus
        self.discount, self.scale = discount, scale
        self.win, self.loss = win, loss
        self.draws = torch.tensor(draws, dtype=torch.float32)
        self.is_own = type(self).rewards is not Reward.rewards
        is_plain = minus == "nothing" and not self.is_own
        self.is_final = is_plain and self.scored not in MOVE_TERMS
        self.constant = 0.0 if self.is_final else None
        if is_plain and self.scored == "turns":
            self.constant = -scale
        known = {*MOVE_TERMS, *FINAL_TERMS, *game.measures(game.example_state())}
        if self.scored not in known or (self.scored == "outcome" and game.spec.seats == 1):
            raise ValueError(f"reward.scored={scored} is not defined for {game.spec.name}")
        if minus != "nothing":
            require(game, KnownRandomPlay, f"reward.minus={minus}")

    @property
    def payoffs(self) -> tuple[float, float] | None:
        """The rewards of a win and of the first seat's draw, if a loss and the second seat's draw
        pay their negatives and nothing else is paid; else None."""
        is_zero_sum = self.win == -self.loss and float(self.draws.sum()) == 0 and not self.is_own
        if self.scored != "outcome" or self.minus != "nothing" or not is_zero_sum:
            return None
        return self.scale * self.win, self.scale * float(self.draws[0])

    def rewards(self, trajectories: Trajectories, final_states: FinalStates) -> Tensor:
        """Float32 [M]: the reward of each move. The last move of a turn receives the turn's
        reward; a final term is paid only where the game is over."""
        if self.scored not in MOVE_TERMS:
            if self.scored in FINAL_TERMS:
                payoff = FINAL_TERMS[self.scored](self, final_states)
            else:
                value = self.game.measures(final_states.state)[self.scored]
                payoff = value[:, None].expand_as(final_states.score)
            payoff = payoff * final_states.state.done[:, None]
            reward = payoff[trajectories.game, trajectories.seat] * is_last(trajectories)
        else:
            reward = MOVE_TERMS[self.scored](trajectories)
        if self.minus != "nothing":
            expected = SUBTRACTED[self.minus](cast(KnownRandomPlay, self.game), trajectories.state)
            reward = reward - expected * trajectories.ends_turn
        return reward * self.scale

    def returns(self, trajectories: Trajectories, final_states: FinalStates) -> Tensor:
        """Float32 [M]: Σ_{t ≥ t0} γ^(t - t0) · reward(t), equation 2 of Landy's article.

        The sum runs over the seat's own moves from this one on. t counts the seat's turns, so
        that all moves of one turn share its reward undiscounted.

        If the reward has payoffs, the value of a position where a random move followed (see
        Decision) replaces its return, and with it that of all earlier moves of both seats.
        """
        rewards, value = self.rewards(trajectories, final_states), trajectories.value
        if value is not None:
            value = None if self.payoffs is None else value * self.payoffs[0]
        return discounted_returns(rewards, trajectories, self.discount, value)


def scored_term(scored: str, game: Game[Any]) -> str:
    """The name of the term that a reward scores, which the game chooses for `goal`."""
    if scored != "goal":
        return scored
    return {"score": "score_delta"}.get(game.spec.goal, game.spec.goal)


def is_last(trajectories: Trajectories) -> Tensor:
    """Bool [M]: whether the move is its seat's last in the game."""
    return ~next_index(trajectories)[1]


def next_index(trajectories: Trajectories) -> tuple[Tensor, Tensor]:
    """Int64 [M]: the index of the same seat's next move; bool [M]: whether there is one."""
    trajectory = trajectory_id(trajectories)
    # Moves are in playing order: a stable sort puts the moves of each seat side by side.
    order = trajectory.argsort(stable=True)
    exists = torch.zeros_like(trajectory, dtype=torch.bool)
    exists[order[:-1]] = trajectory[order[1:]] == trajectory[order[:-1]]
    index = torch.empty_like(trajectory)
    index[order] = order.roll(-1)
    return index, exists


def discounted_returns(
    reward: Tensor, trajectories: Trajectories, discount: float, value: Tensor | None = None
) -> Tensor:
    """Float32 [M]: the discounted sum of reward, float32 [M], over the seat's moves from each.

    value: float32 [M], in a two-player game what takes the place of the sum for the seat to move
        and, negative, for the other seat's last move before; NaN where nothing does.
    """
    later = np.zeros((2, num_trajectories(trajectories)), np.float32)
    later[1] = np.nan
    columns = mover_columns(trajectories, discount, reward)
    known = np.empty(0, np.float32) if value is None else move_column(value, trajectories)
    returns = np.empty(len(reward), np.float32)
    sum_rewards(*columns, known, later, returns)
    return torch.from_numpy(returns).to(reward.device)


def generalized_advantage(
    reward: Tensor,
    value: Tensor,
    trajectories: Trajectories,
    discount: float,
    gae_lambda: float,
    bootstrap_value: Tensor | None = None,
) -> Tensor:
    """Float32 [M]: generalized advantage estimation (Schulman et al. 2016, equation 16).

        δ_t = r_t + γ · V_{t+1} - V_t,  Â_t = δ_t + γ · λ · Â_{t+1}

    over the moves of each seat; with λ = 1 the discounted return minus the value.

    reward, value: float32 [M]. bootstrap_value: float32 [G], the value of the state in which each
        game's window ends; 0 where the game is over.
    Raises ValueError for other shapes.
    """
    later = np.zeros((2, num_trajectories(trajectories)), np.float32)
    if bootstrap_value is not None:
        later[0] = to_array(bootstrap_value).repeat(trajectories.state.score.shape[1])
    slot, rewards, discounts = mover_columns(trajectories, discount, reward)
    advantage = np.empty(len(reward), np.float32)
    values = move_column(value, trajectories)
    sum_advantages(slot, rewards, values, discounts, gae_lambda, later, advantage)
    return torch.from_numpy(advantage).to(reward.device)


def mover_columns(
    trajectories: Trajectories, discount: float, reward: Tensor
) -> tuple[Any, Any, Any]:
    """Arrays [M] for kernels: trajectory_id, the reward, and the discount after each move. Raises
    ValueError if one of them has another length, or a game or a seat does not exist."""
    # The seat's next move is one turn later exactly where this move ends a turn.
    discounts = torch.where(trajectories.ends_turn, discount, 1.0)
    slot = move_column(trajectory_id(trajectories), trajectories)
    if len(slot) and not 0 <= slot.min() <= slot.max() < num_trajectories(trajectories):
        raise ValueError("a move belongs to a game or a seat that does not exist")
    return slot, move_column(reward, trajectories), move_column(discounts, trajectories)


def move_column(column: Tensor, trajectories: Trajectories) -> Any:
    """One number per move as kernels take it. Raises ValueError for another shape: a kernel would
    read and write outside of it."""
    if column.shape != trajectories.action.shape:
        raise ValueError(f"numbers of the shape {[*column.shape]} for {len(trajectories):,} moves")
    return to_array(column)


def to_array(column: Tensor) -> Any:
    """A tensor as kernels take it."""
    return column.detach().cpu().contiguous().numpy()


def num_trajectories(trajectories: Trajectories) -> int:
    """The number of seats in all games."""
    return trajectories.num_games * trajectories.state.score.shape[1]


def plies(trajectories: Trajectories) -> list[slice]:
    """The rows of the moves made side by side at each ply, where there are any, in order."""
    ends = itertools.accumulate(trajectories.ply_sizes)
    sizes = zip(ends, trajectories.ply_sizes, strict=True)
    return [slice(end - size, end) for end, size in sizes if size]


def trajectory_id(trajectories: Trajectories) -> Tensor:
    """Int64 [M]: one number for each seat of each game."""
    return trajectories.game * trajectories.state.score.shape[1] + trajectories.seat
