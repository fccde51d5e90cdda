"""Expectimax of n-tuple networks in a compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048State
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.packed_ntuple import PackedNtuple, reason_not_packed

MAX_EXPONENT = 15
"""Of tiles that fit into four bits."""


class CompiledExpectimax:
    """The scores of Expectimax for a policy that kernels can read.

    min_probability, discount: as in ExpectimaxSettings.
    """

    def __init__(
        self, game: Game[Any], policy: Ntuple, min_probability: float, discount: float
    ) -> None:
        self.game, self.policy = game, policy
        self.min_probability, self.discount = min_probability, discount
        self._packed: PackedNtuple | None = None

    def fits(self, state: State) -> bool:
        """Whether it can search these positions: they may have tiles that are too large."""
        assert isinstance(state, Game2048State)
        is_packed = not reason_not_packed(self.game, self.policy)
        return is_packed and int(state.tiles.max()) <= MAX_EXPONENT

    def scores(self, state: State, plies: int) -> Tensor:
        """Float32 [B, A], as Expectimax.scores."""
        from rlgames.kernels.ntuple_expectimax import TABLE_SIZE, SearchSettings, search

        assert isinstance(state, Game2048State)
        values = self.policy.values
        stride = values.stride(0)  # training may keep statistics beside the values
        if self._packed is None or self._packed.stride != stride:
            self._packed = PackedNtuple(self.game, self.policy, stride)
        packed, rules = self._packed, self._packed.compiled.rules
        table = values.as_strided(((len(values) - 1) * stride + 1,), (1,)).numpy()
        settings = SearchSettings(
            cells=rules.cells,
            fours=packed.game.fours,
            discount=float(self.discount),
            scale=float(self.policy.score_scale),
            min_probability=float(self.min_probability),
        )
        size = max(1, plies - 1) * int(TABLE_SIZE)
        memory = np.zeros(size, np.uint64), np.empty(size, np.float64)
        boards = packed.compiled.pack(state).numpy().view(np.uint64)[:, 0]
        shared = (table, packed.network, rules.rows, settings)
        return torch.from_numpy(search(boards, np.uint64(plies), *shared, *memory))
