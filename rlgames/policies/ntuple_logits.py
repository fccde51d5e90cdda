"""Policies on n-tuples: logits of the actions, and a value, as sums over table entries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048, Game2048State
from rlgames.games.symmetry import Symmetries
from rlgames.policies.ntuple import check_tuples, default_tuples
from rlgames.policies.policy import Policy


class NtupleLogits(Policy):
    """logits(board) = Σ over tuples and symmetries of table[tuple][contents of the tuple's cells]

    Each tuple of cells has a table with the logits of all actions for every content of its cells.
    It is looked up on the board and on all symmetric boards, whose actions are those of the board
    in another order: a rotated board has the rotated logits. Unlike an n-tuple network of
    afterstate values, it reads each position once and does not know where actions lead.

    tuples: the cells of each tuple, numbered from 0 in rows from the top; None: as in Ntuple.
    num_cell_values: distinct exponents; larger tiles count as the last.
    value: whether entries also hold parts of the position's value.
    Raises ValueError for games other than 2048, cells off the board and tables that are too large.
    """

    entries: Tensor
    """Float32 [W, 4 or 5]: the logits of the actions, and the value."""

    def __init__(
        self,
        game: Game[Any],
        tuples: list[list[int]] | None,
        num_cell_values: int,
        value: bool,
    ) -> None:
        super().__init__()
        if not isinstance(game, Game2048):
            raise ValueError(
                f"policy=ntuple_logits has tuples of boards of 2048, not of {game.spec.name}"
            )
        symmetries = game.symmetries()
        if tuples is None:
            tuples = default_tuples(game.rows, game.columns, symmetries)
        self.num_cell_values = min(num_cell_values, game.spec.num_cell_values)
        num_columns = game.spec.actions + value
        check_tuples(tuples, self.num_cell_values, None, game.num_cells, num_columns)
        self.tuples, self.has_value = tuples, value
        sizes = torch.tensor([self.num_cell_values ** len(cells) for cells in tuples])
        # Lookups are ordered by tuple, then by symmetry.
        strides = [self._strides_of(symmetries[:, cells], game.num_cells) for cells in tuples]
        self._strides: Tensor
        self._offsets: Tensor
        self._columns: Tensor
        self.register_buffer("_strides", torch.cat(strides).T.contiguous(), persistent=False)
        offsets = (sizes.cumsum(0) - sizes).repeat_interleave(len(symmetries))
        self.register_buffer("_offsets", offsets, persistent=False)
        columns = Symmetries(game, "cpu").inverse_actions
        if value:
            columns = torch.nn.functional.pad(columns, (0, 1), value=game.spec.actions)
        self.register_buffer("_columns", columns, persistent=False)
        self.register_buffer("entries", torch.zeros(int(sizes.sum()), num_columns))

    def _strides_of(self, placements: Tensor, num_cells: int) -> Tensor:
        """Float64 [G, N]: the factor of each cell's value in the index of a tuple's contents under
        each symmetry. placements: int64 [G, n], its cells."""
        powers = self.num_cell_values ** torch.arange(placements.shape[1], dtype=torch.float64)
        strides = torch.zeros(len(placements), num_cells, dtype=torch.float64)
        return strides.scatter_(1, placements, powers.expand(placements.shape))

    def feature_indices(self, state: Game2048State) -> Tensor:
        """Int64 [B, K]: the entries of each board, ordered by tuple, then by symmetry."""
        tiles = state.tiles.clamp(max=self.num_cell_values - 1)
        # Products of floats are exact here and many times as fast as integer ones.
        return (tiles.double() @ self._strides).long() + self._offsets

    def scores(self, game: Game[Any], state: Any) -> tuple[Tensor, Tensor | None]:
        indices = self.feature_indices(state)
        looked_up = self.entries.index_select(0, indices.reshape(-1))
        # Float32 [B, G, 4 or 5]: sums over tuples, with the actions of each symmetric board.
        num_symmetries, num_columns = self._columns.shape
        by_symmetry = looked_up.view(len(state), -1, num_symmetries, num_columns).sum(1)
        sums = by_symmetry.gather(2, self._columns.expand(len(state), -1, -1)).sum(1)
        return sums[:, :4], sums[:, 4] if self.has_value else None
