"""Expectimax: exact means over chance outcomes, a few moves deep."""

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
from rlgames.policies.ntuple import Ntuple, flat_table, pack_network, reason_not_packed
from rlgames.policies.policy import ValueFunction
from rlgames.sampling import greedy_action, mask_illegal

CHUNK_SIZE = 2048
"""Positions per call, few enough that their successors fit into the processor's cache."""


class Expectimax(Player):
    """Makes the move with the largest Q_plies, where

        Q_1(s, a) = the policy's score: the points for a plus the value of its afterstate
        Q_n(s, a) = points(s, a) + γ · E[max over a' of Q_(n - 1)(s', a')].

    s' is the position after chance. The maximum is 0 in finished positions.

    player: an agent whose policy values afterstates and was trained on points. N-tuple networks
        on boards of up to 4×4 are searched in a compiled kernel with a transposition table.
    plies: the number of the player's own moves to look ahead. min_probability: less likely
        chance outcomes are left out, except the likeliest. tile_downgrading: 2048 boards with
        this tile, or with one that the n-tuples count as a smaller one, are searched as
        downgrade_tiles returns them; None: as they are. discount: γ of the values.
    Raises ValueError if player and game cannot be combined.
    """

    is_deterministic = True

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        plies: int = 2,
        min_probability: float = 0.0,
        tile_downgrading: int | None = 16384,
        discount: float = 1.0,
    ) -> None:
        policy = player.policy if isinstance(player, Agent) else None
        if game.spec.seats == 2 or game.spec.hidden or not game.spec.num_chance_inputs:
            raise ValueError(
                "search=expectimax plays one-player games with chance and without hidden "
                f"information, not {game.spec.name}"
            )
        if not isinstance(policy, ValueFunction) or not policy.score_scale:
            raise ValueError(
                "search=expectimax adds the points of moves to the values of a run; it needs a run "
                "with reward=score and policy=ntuple, table or linear"
            )
        self.game, self.policy, self.plies = game, policy, plies
        self.min_probability, self.discount = min_probability, discount
        self.tile_downgrading = tile_downgrading
        self.is_compiled = isinstance(policy, Ntuple) and isinstance(game, Game2048)
        self._network: tuple[int, Any] | None = None
        if isinstance(policy, Ntuple):
            collapse_pages(policy.values)

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        def choose(live: State) -> Tensor:
            legal = self.game.legal_action_mask(live)
            return greedy_action(self.scores(self._downgraded(live), self.plies), legal)

        return choose_in_live_rows(state, choose)

    def _downgraded(self, state: State) -> State:
        least = self.tile_downgrading
        if least is None or not isinstance(self.game, Game2048):
            return state
        if isinstance(self.policy, Ntuple):
            least = min(least, 1 << self.policy.num_cell_values)
        assert isinstance(state, BoardState)
        downgraded = self.game.from_exponents(downgrade_tiles(self.game.tiles(state), least))
        return replace(state, words=downgraded.words)

    @torch.no_grad()
    def scores(self, state: Any, plies: int) -> Tensor:
        """Float32 [B, A]: Q_plies of live positions; meaningless for illegal actions."""
        game, policy = self.game, self.policy
        if self.is_compiled and len(state) and not reason_not_packed(game, policy):
            assert isinstance(game, Game2048)
            assert isinstance(policy, Ntuple)
            return self._compiled_scores(game, policy, state, plies)
        starts = range(0, len(state), CHUNK_SIZE)
        return torch.cat([self._scores(state[n : n + CHUNK_SIZE], plies) for n in starts])

    def _compiled_scores(
        self, game: Game2048, policy: Ntuple, state: BoardState, plies: int
    ) -> Tensor:
        """As scores, in a compiled kernel."""
        from rlgames.search.ntuple_expectimax import SearchSettings, search

        stride = policy.values.stride(0)  # training may keep statistics next to the values
        if self._network is None or self._network[0] != stride:
            self._network = stride, pack_network(game, policy, stride)
        settings = SearchSettings(
            discount=float(self.discount),
            scale=float(policy.score_scale),
            min_probability=float(self.min_probability),
        )
        boards = state.words.numpy().view(np.uint64)[:, 0]
        shared = flat_table(policy.values), self._network[1], game.rules, settings
        return torch.from_numpy(search(boards, np.uint64(plies), *shared))

    def _scores(self, state: State, plies: int) -> Tensor:
        if plies == 1:
            return self.policy.scores(self.game, state)[0]
        legal = self.game.legal_action_mask(state)
        row, action = legal.nonzero(as_tuple=True)
        after = self.game.apply_action(state[row], action)
        probability, outcomes = self.game.chance_outcomes(after)
        threshold = probability.amax(1, keepdim=True).clamp(max=self.min_probability)
        probability = probability * (probability >= threshold)
        possible = (probability > 0).flatten().nonzero()[:, 0]
        future = torch.zeros(probability.numel(), device=row.device)
        future[possible] = self._best_score(outcomes[possible], plies - 1)
        expected = (probability * future.view_as(probability)).sum(1) / probability.sum(1)
        points = (after.score - state.score[row])[:, 0]
        scores = torch.zeros(legal.shape, device=row.device)
        discounted = self.discount * expected.float()
        scores[row, action] = self.policy.score_scale * points + discounted
        return scores

    def _best_score(self, state: State, plies: int) -> Tensor:
        """Float32 [B]: the largest Q_plies, 0 in finished positions."""
        best = torch.zeros(len(state), device=state.done.device)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            scores = self.scores(state[live], plies)
            best[live] = mask_illegal(scores, self.game.legal_action_mask(state[live])).amax(1)
        return best


def downgrade_tiles(tiles: Tensor, least: int) -> Tensor:
    """Boards that a network knows better, with the same moves (Guei, Chen and Wu 2021).

    While the largest tile is at least `least` and a smaller tile is missing, all tiles above the
    largest missing one are halved. Equal tiles stay equal and different ones different, so actions
    slide and merge the same cells as before.

    tiles: exponents, int64 [B, N], as is the result; 0: empty. least: a tile, not an exponent.
    """
    lowest = max(2, (least - 1).bit_length())
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
