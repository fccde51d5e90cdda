"""What a search found, as a player with probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.games.game import State
from rlgames.players.player import Player
from rlgames.sampling import sample_logits
from rlgames.search.search import Search


class SearchPolicy(Player):
    """Chooses actions with the probabilities that a search found, see SearchResult.policy."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return sample_logits(self.probabilities(state, rng).log(), rng)

    def probabilities(self, state: State, rng: torch.Generator | None = None) -> Tensor:
        rng = torch.Generator(state.done.device).manual_seed(0) if rng is None else rng
        return to_float64(self.search.search(state, rng).policy)
