"""Alpha-beta search on the values of n-tuple networks, in a compiled kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game, State
from rlgames.kernels.value_search import search_positions
from rlgames.players.player import Agent, Player, choose_in_live_rows
from rlgames.policies.ntuple import reason_not_compiled
from rlgames.rng import Rng


class AlphaBetaSearch(Player):
    """Makes the move with the largest Q_plies, where

        Q_1(s, a) = the policy's score: the value of the afterstate, or of a game that is over
        Q_n(s, a) = -(the largest Q_(n - 1)(s', a') of the other seat in s' = the afterstate).

    Of equal moves it makes the one with the larger score, and of these the first.

    player: an agent with policy=ntuple for a board game of two seats without chance.
    Raises ValueError if player and game cannot be combined.
    """

    is_deterministic = True

    def __init__(self, game: Game[Any], player: Player, plies: int) -> None:
        has_chance = game.spec.num_chance_inputs > 0
        if not isinstance(game, BoardGame) or game.spec.seats != 2 or has_chance:
            raise ValueError(
                "search=alphabeta plays board games of two seats without chance, not "
                f"{game.spec.name}"
            )
        policy: Any = player.policy if isinstance(player, Agent) else None
        if reason := reason_not_compiled(game, policy):
            raise ValueError(f"search=alphabeta is not supported here: {reason}")
        self.game, self.policy, self.plies = game, policy, plies

    def choose(self, state: State, rng: Rng) -> Tensor:
        return choose_in_live_rows(state, rng, lambda live, _: self.search(live)[0])

    def search(self, state: Any) -> tuple[Tensor, Tensor]:
        """The best actions in live positions, int64 [B], and what they reach, float32 [B]."""
        positions = state.words.numpy()
        seats = state.current_seat.numpy()
        policy = self.policy.compiled(self.game)
        actions, values = search_positions(
            positions, seats, self.plies, policy.table, policy.network, self.game.rules
        )
        return torch.from_numpy(actions), torch.from_numpy(values)
