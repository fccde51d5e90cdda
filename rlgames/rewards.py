"""Finished moves to the return of each move."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.play import Moves

SCORED = ("gain", "turns")
SUBTRACTED = ("nothing", "random_shot", "random_turn")


class Reward:
    """One composition: what is scored, what is taken off, how the future is discounted.

    scored: "gain", what the move added to its mover's score; "turns", -1 for each turn.
    minus: taken off at the end of each turn: "nothing"; "random_shot", what one random shot
        would have gained (ship cells left ÷ cells left, as both battleship documents do);
        "random_turn", what a whole random turn would have gained.
    discount: the weight of what comes a turn later, γ.
    """

    def __init__(self, scored: str = "gain", minus: str = "nothing", discount: float = 1.0) -> None:
        self.scored, self.minus, self.discount = scored, minus, discount

    def of_moves(self, game: Game[Any], moves: Moves) -> Tensor:
        """Float32 [M]: the reward of each move by itself; a turn is paid where it ends."""
        reward = -moves.ends_turn.float() if self.scored == "turns" else moves.gain
        if self.minus != "nothing":
            expected = game.random_gain(moves.state, plies=self.minus == "random_shot")
            reward = reward - expected * moves.ends_turn
        return reward

    def returns(self, game: Game[Any], moves: Moves) -> Tensor:
        """Float32 [M]: equation 2 of Landy's article, Σ_{t ≥ t0} γ^(t - t0) · reward(t).

        The sum runs over the rest of the mover's own game, and t counts turns, so that all moves
        of one turn share its reward undiscounted.
        """
        return discounted(self.of_moves(game, moves), moves, self.discount)


def discounted(reward: Tensor, moves: Moves, discount: float) -> Tensor:
    """Float32 [M]: the discounted sum of reward, float32 [M], over each seat's later moves."""
    result = torch.empty_like(reward)
    seats = int(moves.seat.max()) + 1 if len(moves) else 1
    owner = moves.game * seats + moves.seat if seats > 1 else moves.game
    total = torch.zeros(moves.games * seats, device=reward.device)
    turn = torch.zeros(moves.games * seats, device=reward.device)
    stop = len(moves)
    for size in reversed(moves.plies):
        now = slice(stop - size, stop)
        stop -= size
        future = total[owner[now]]
        if discount != 1:
            now_turn = moves.turn[now].float()
            # A game's last move has no later one: its future is 0, whatever the exponent.
            gap = (turn[owner[now]] - now_turn).clamp(min=0)
            future = future * discount**gap
            turn[owner[now]] = now_turn
        result[now] = reward[now] + future
        total[owner[now]] = result[now]
    return result
