"""The contract of a search: a player that tries actions before it chooses one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.games.game import Game, State
from rlgames.players.player import Player, choose_in_live_rows
from rlgames.search.utility import Utility


@dataclass(frozen=True)
class SearchResult(Rows):
    """What a search found at T roots, for the seats to move.

    visits: float32 [T, A]. q: float32 [T, A], in [0, 1), 0 for unvisited actions. policy: float32
    [T, A], what a network learns from: the fractions of the visits, the improved policy of
    rule=gumbel, or equal shares for the best actions of search=rollout. action: int64 [T], the
    action to take: the one with the most visits, of these with the highest q; by rule=gumbel, of
    these with the highest noise + logits + transformed q; by search=rollout the best, of these the
    likeliest. value: float32 [T], the mean of all simulations, or of the action to take by
    search=rollout; see Utility.
    """

    visits: Tensor
    q: Tensor
    policy: Tensor
    action: Tensor
    value: Tensor


class Search(Player):
    """explores: whether its own noise explores in training, so that it chooses the actions."""

    game: Game[Any]
    utility: Utility
    explores = False

    @abstractmethod
    def search(self, state: State, rng: torch.Generator) -> SearchResult:
        """The result at live public positions [T]."""

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        """The action that the search takes, see SearchResult."""
        return choose_in_live_rows(state, lambda live: self.search(live, rng).action)
