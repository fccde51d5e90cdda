"""Expectimax: exact means over new tiles of 2048, a few moves deep."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.pages import collapse_pages
from rlgames.games.board_game import BoardState
from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.players.player import Agent, Player, choose_in_live_rows
from rlgames.policies.ntuple import reason_not_compiled
from rlgames.rng import Rng
from rlgames.sampling import greedy_action
from rlgames.search.ntuple_expectimax import NEVER, SearchSettings, search


class Expectimax(Player):
    """Makes the move with the largest Q_plies, where

        Q_1(s, a) = the policy's score: the points for a plus the value of its afterstate
        Q_n(s, a) = points(s, a) + γ · E[max over a' of Q_(n - 1)(s', a')].

    s' is the position after a new tile. The maximum is 0 in finished positions.

    player: an agent with n-tuples that were trained on points.
    tile_downgrading: boards with this tile, or with one that the n-tuples count as a smaller one,
        are searched as `downgrade` returns them. discount: γ of the values.
    Raises ValueError if player and game cannot be combined.
    """

    is_deterministic = True

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        plies: int,
        tile_downgrading: int | None,
        discount: float = 1.0,
    ) -> None:
        if not isinstance(game, Game2048):
            raise ValueError(f"search=expectimax plays 2048, not {game.spec.name}")
        policy: Any = player.policy if isinstance(player, Agent) else None
        if reason := reason_not_compiled(game, policy):
            raise ValueError(f"search=expectimax is not supported here: {reason}")
        self.game, self.policy, self.plies = game, policy, plies
        least = NEVER
        if tile_downgrading is not None:
            tile = min(tile_downgrading, 1 << policy.num_cell_values)
            least = np.uint64(max(2, (tile - 1).bit_length()))
        self.settings = SearchSettings(float(discount), float(policy.score_scale), least)
        collapse_pages(policy.values)

    def choose(self, state: State, rng: Rng) -> Tensor:
        def choose(live: Any, _: Rng) -> Tensor:
            legal = self.game.legal_action_mask(live)
            return greedy_action(self.scores(live, self.plies), legal)

        return choose_in_live_rows(state, rng, choose)

    def scores(self, state: BoardState, plies: int) -> Tensor:
        """Float32 [B, A]: Q_plies of live positions; meaningless for illegal actions."""
        boards = state.words.numpy().view(np.uint64)[:, 0]
        policy = self.policy.compiled(self.game)
        shared = policy.table, policy.network, self.game.rules, self.settings
        return torch.from_numpy(search(boards, np.uint64(plies), *shared))
