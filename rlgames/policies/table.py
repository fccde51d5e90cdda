"""A table with one value per board."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from rlgames.games.capabilities import CellBoard, require
from rlgames.games.game import Game, State
from rlgames.policies.policy import AfterstateValues

MAX_TABLE_SIZE = 50_000_000


class Table(AfterstateValues):
    """V(board) = table[index of the board], where the cell values are the digits of the index.

    Raises ValueError for games whose cells do not tell all, and where the table would be too large.
    """

    def __init__(self, game: Game[Any], score_scale: float, init_value: float) -> None:
        super().__init__(score_scale)
        board = require(game, CellBoard, "policy=table")
        _, rows, columns = game.spec.observation
        cells = rows * columns
        entries = board.num_cell_values**cells
        if entries > MAX_TABLE_SIZE:
            raise ValueError(
                f"policy=table needs {entries:.3g} entries for this board, more than the limit of "
                f"{MAX_TABLE_SIZE:,}"
            )
        self.initial_value = init_value
        self.register_buffer("values", torch.full((entries,), init_value))
        strides = board.num_cell_values ** torch.arange(cells)
        self._strides = nn.Buffer(strides, persistent=False)

    def index(self, game: Game[Any], afterstate: State) -> Tensor:
        cells = cast(CellBoard, game).cells(afterstate).flatten(1)
        return (cells * self._strides).sum(1)
