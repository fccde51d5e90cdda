"""Expectimax of n-tuple networks in a compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.games.game_2048 import Game2048, Game2048State
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.packed_ntuple import flat_table, pack_network, reason_not_packed

MAX_EXPONENT = 15
"""Of tiles that fit into four bits."""


class CompiledExpectimax:
    """The scores of Expectimax for a policy that kernels can read.

    min_probability, discount: as in ExpectimaxSettings.
    """

    def __init__(
        self, game: Game2048, policy: Ntuple, min_probability: float, discount: float
    ) -> None:
        self.game, self.policy = game, policy
        self.min_probability, self.discount = min_probability, discount
        self._network: tuple[int, Any] | None = None

    def fits(self, state: State) -> bool:
        """Whether it can search these positions: they may have tiles that are too large."""
        assert isinstance(state, Game2048State)
        is_packed = not reason_not_packed(self.game, self.policy)
        return is_packed and int(state.tiles.max()) <= MAX_EXPONENT

    def scores(self, state: State, plies: int) -> Tensor:
        """Float32 [B, A], as Expectimax.scores."""
        from rlgames.kernels.ntuple_expectimax import TABLE_SIZE, SearchSettings, search

        assert isinstance(state, Game2048State)
        compiled = self.game.compiled_rules()
        stride = self.policy.values.stride(0)  # training may keep statistics next to the values
        if self._network is None or self._network[0] != stride:
            self._network = stride, pack_network(self.game, self.policy, stride)
        settings = SearchSettings(
            fours=self.game.fours,
            discount=float(self.discount),
            scale=float(self.policy.score_scale),
            min_probability=float(self.min_probability),
        )
        size = max(1, plies - 1) * int(TABLE_SIZE)
        memory = np.zeros(size, np.uint64), np.empty(size, np.float64)
        boards = compiled.pack(state).numpy().view(np.uint64)[:, 0]
        shared = flat_table(self.policy.values), self._network[1], compiled.rules, settings
        return torch.from_numpy(search(boards, np.uint64(plies), *shared, *memory))
