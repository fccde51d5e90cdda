"""Expectimax: exact means over new tiles of 2048, a few moves deep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.pages import collapse_pages
from rlgames.games.board_game import BoardState
from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.players.player import Agent, Player, choose_in_live_rows
from rlgames.policies.ntuple import reason_not_packed
from rlgames.rng import Rng
from rlgames.sampling import greedy_action
from rlgames.search.ntuple_expectimax import SearchSettings, search


class Expectimax(Player):
    """Makes the move with the largest Q_plies, where

        Q_1(s, a) = the policy's score: the points for a plus the value of its afterstate
        Q_n(s, a) = points(s, a) + γ · E[max over a' of Q_(n - 1)(s', a')].

    s' is the position after a new tile. The maximum is 0 in finished positions.

    player: an agent with n-tuples that were trained on points.
    tile_downgrading: boards with this tile, or with one that the n-tuples count as a smaller one,
        are searched as downgrade_tiles returns them. discount: γ of the values.
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
        if reason := reason_not_packed(game, policy):
            raise ValueError(f"search=expectimax is not supported here: {reason}")
        self.game, self.policy, self.plies = game, policy, plies
        self.discount, self.tile_downgrading = discount, tile_downgrading
        collapse_pages(policy.values)

    def choose(self, state: State, rng: Rng) -> Tensor:
        def choose(live: Any, _: Rng) -> Tensor:
            legal = self.game.legal_action_mask(live)
            return greedy_action(self.scores(self._downgraded(live), self.plies), legal)

        return choose_in_live_rows(state, rng, choose)

    def _downgraded(self, state: Any) -> BoardState:
        if self.tile_downgrading is None:
            return state
        least = min(self.tile_downgrading, 1 << self.policy.num_cell_values)
        downgraded = self.game.from_exponents(downgrade_tiles(self.game.tiles(state), least))
        return replace(state, words=downgraded.words)

    def scores(self, state: BoardState, plies: int) -> Tensor:
        """Float32 [B, A]: Q_plies of live positions; meaningless for illegal actions."""
        policy = self.policy
        settings = SearchSettings(float(self.discount), float(policy.score_scale))
        boards = state.words.numpy().view(np.uint64)[:, 0]
        shared = *policy.packed(self.game), self.game.rules, settings
        return torch.from_numpy(search(boards, np.uint64(plies), *shared))


def least_exponent(least: int) -> int:
    """The exponent from which boards with a tile are searched as downgrade_tiles returns them."""
    return max(2, (least - 1).bit_length())


def downgrade_tiles(tiles: Tensor, least: int) -> Tensor:
    """Boards that a network knows better, with the same moves (Guei, Chen and Wu 2021).

    While the largest tile is at least `least` and a smaller tile is missing, all tiles above the
    largest missing one are halved. Equal tiles stay equal and different ones different, so actions
    slide and merge the same cells as before.

    tiles: exponents, int64 [B, N], as is the result; 0: empty. least: a tile, not an exponent.
    """
    lowest = least_exponent(least)
    while (largest := int(tiles.max())) >= lowest:
        is_present = torch.zeros(len(tiles), largest + 1, dtype=torch.bool, device=tiles.device)
        is_present.scatter_(1, tiles, True)
        exponents, tops = torch.arange(largest + 1, device=tiles.device), tiles.amax(1, True)
        missing = (exponents * (~is_present & (exponents < tops))).amax(1, True)
        is_halved = (tops >= lowest) & (missing > 0) & (tiles > missing)
        if not is_halved.any():
            break
        tiles = tiles - is_halved.long()
    return tiles
