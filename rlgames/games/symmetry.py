"""Turned and mirrored boards that are played just the same.

Letters in shapes: G symmetries, N cells, A actions, M moves.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game


def board_symmetries(rows: int, columns: int, upright: bool = False) -> Tensor:
    """Int64 [G, N]: the permutations that turn and mirror a board, the identity first.

    upright: left and right may change places, up and down may not.
    """
    grid = torch.arange(rows * columns).view(rows, columns)
    turned = [grid, grid.flip(1)]
    if not upright:
        turned += [g.flip(0) for g in turned]
        if rows == columns:
            turned += [g.T for g in turned]
    found: Tensor = torch.stack([g.reshape(-1) for g in turned]).unique(dim=0)
    return found


class Symmetries:
    """A game's symmetries, drawn at random for each move of a batch."""

    def __init__(self, game: Game[Any], device: torch.device | str) -> None:
        self.cells = game.symmetries().to(device)
        self.actions = game.action_symmetries().to(device)
        self.inverse_actions = self.actions.argsort(1)  # where each action has gone
        self.count = len(self.cells)

    def sample(self, moves: int, rng: torch.Generator) -> Tensor:
        """Int64 [M]: a symmetry for each move."""
        return torch.randint(self.count, (moves,), generator=rng, device=self.cells.device)

    def planes(self, planes: Tensor, turn: Tensor) -> Tensor:
        """Float32 [M, C, H, W] turned, each row by its own symmetry, turn int64 [M]."""
        cells = self.cells[turn][:, None].expand(-1, planes.shape[1], -1)
        return planes.flatten(2).gather(2, cells).view_as(planes)

    def of_actions(self, values: Tensor, turn: Tensor) -> Tensor:
        """[M, A]: what belongs to each action, such as its legality, turned."""
        return values.gather(1, self.actions[turn])

    def action(self, action: Tensor, turn: Tensor) -> Tensor:
        """Int64 [M]: the same moves on the turned boards."""
        return self.inverse_actions[turn, action]
