"""Scripted players: wins and blocks in a row, and corners in 2048."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.games.board_game import BoardState
from rlgames.games.game import Game, State
from rlgames.games.game_2048 import ACTIONS, Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.sampling import sample_uniform


class UniformOver(Player):
    """Chooses one of its options with equal probability."""

    game: Game[Any]

    @abstractmethod
    def options(self, state: Any) -> Tensor:
        """Bool [B, A]: at least one legal action in each live row."""

    def choose(self, state: State, rng: Rng) -> Tensor:
        return sample_uniform(self.options(state), rng)

    def probabilities(self, state: State) -> Tensor:
        options = to_float64(self.options(state.to(self.game.device)))
        return options / options.sum(1, keepdim=True)


class WinOrBlock(UniformOver):
    """Wins if it can, else blocks a win, else moves at random; for games of k in a row."""

    game: KInARow

    def __init__(self, game: Game[Any]) -> None:
        if not isinstance(game, KInARow):
            raise ValueError(
                f"win_or_block plays k in a row, such as connect4, not {game.spec.name}"
            )
        self.game = game

    def options(self, state: BoardState) -> Tensor:
        wins = self.game.completing_actions(state, of_other=False)
        blocks = self.game.completing_actions(state, of_other=True)
        best = torch.where(wins.any(1, keepdim=True), wins, blocks)
        return torch.where(best.any(1, keepdim=True), best, self.game.legal_action_mask(state))


class Corner(Player):
    """Keeps large tiles of 2048 in a lower corner: down, else left, else right, else up."""

    is_deterministic = True

    def __init__(self, game: Game[Any]) -> None:
        if not isinstance(game, Game2048):
            raise ValueError(f"corner plays 2048, not {game.spec.name}")
        self.game = game
        ascending = ("up", "right", "left", "down")
        self._priority = torch.tensor([ascending.index(name) + 1 for name in ACTIONS])

    def choose(self, state: Any, rng: Rng) -> Tensor:
        priority = self._priority.to(state.done.device)
        return (self.game.legal_action_mask(state) * priority).argmax(1)

    def probabilities(self, state: Any) -> Tensor:
        action = self.choose(state.to(self.game.device), Rng())
        return to_float64(torch.nn.functional.one_hot(action, len(ACTIONS)))
