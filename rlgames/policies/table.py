"""A value for every board, in one table."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.policies.policy import AfterstateValues

MAX_TABLE_SIZE = 50_000_000


class Table(AfterstateValues):
    """Boards are numbered by the marks of their cells, so that every board has its own value.

    start: the value of a board that was never met.
    Raises ValueError for games with hidden information and for boards that are too many.
    """

    def __init__(self, game: Game[Any], score_scale: float, init_value: float) -> None:
        super().__init__(score_scale)
        spec = game.spec
        if spec.hidden or not spec.num_cell_values:
            raise ValueError(
                f"a table holds values of boards, and in {spec.name} much of the board is hidden"
            )
        cells = spec.observation[1] * spec.observation[2]
        entries = spec.num_cell_values**cells
        if entries > MAX_TABLE_SIZE:
            raise ValueError(
                f"a table of {spec.name} on this board would need {entries:.3g} entries, and "
                f"{MAX_TABLE_SIZE:,} is the most"
            )
        self.register_buffer("values", torch.full((entries,), init_value))
        self._place: Tensor
        self.register_buffer(
            "_place", spec.num_cell_values ** torch.arange(cells), persistent=False
        )

    def feature_indices(self, game: Game[Any], afterstate: State) -> Tensor:
        """Int64 [B, 1]: each board's place in the table."""
        return (game.cells(afterstate).flatten(1) * self._place).sum(1, keepdim=True)
