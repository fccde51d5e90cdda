"""A value for every board, in one table."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.policies.policy import AfterstateValues

MOST_ENTRIES = 50_000_000


class Table(AfterstateValues):
    """Boards are numbered by the marks of their cells, so that every board has its own value.

    start: the value of a board that was never met.
    Raises ValueError for games with hidden information and for boards that are too many.
    """

    def __init__(self, game: Game[Any], gains: bool, start: float) -> None:
        super().__init__(gains)
        spec = game.spec
        if spec.hidden or not spec.marks:
            raise ValueError(
                f"a table holds values of boards, and in {spec.name} much of the board is hidden"
            )
        cells = spec.observation[1] * spec.observation[2]
        entries = spec.marks**cells
        if entries > MOST_ENTRIES:
            raise ValueError(
                f"a table of {spec.name} on this board would need {entries:.3g} entries, and "
                f"{MOST_ENTRIES:,} is the most"
            )
        self.values: Tensor
        self.register_buffer("values", torch.full((entries,), start))
        self._place: Tensor
        self.register_buffer("_place", spec.marks ** torch.arange(cells), persistent=False)

    def number(self, game: Game[Any], state: State) -> Tensor:
        """Int64 [B]: each board's place in the table."""
        return (game.cells(state).flatten(1) * self._place).sum(1)

    def value(self, game: Game[Any], state: State) -> Tensor:
        return self.values[self.number(game, state)]

    def learn(self, game: Game[Any], afterstate: State, target: Tensor, lr: float) -> Tensor:
        number = self.number(game, afterstate)
        asked = target - self.values[number]
        boards, where, count = number.unique(return_inverse=True, return_counts=True)
        mean = torch.zeros(len(boards), device=asked.device).index_add_(0, where, asked) / count
        # As far as if they had asked one after another, in no particular order.
        self.values[boards] += (1 - (1 - lr) ** count) * mean
        return self.values[number]
