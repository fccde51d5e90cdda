"""Symmetries of a game: rotations and reflections of the board that leave the rules unchanged.

Letters in shapes: G symmetries, N cells, C planes, A actions, M moves.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.capabilities import Symmetric, find
from rlgames.games.game import Game


def board_symmetries(rows: int, columns: int, upright: bool = False) -> Tensor:
    """Int64 [G, N]: the permutations that rotate and reflect a board, the identity first.

    upright: left and right may be exchanged, top and bottom may not.
    """
    grid = torch.arange(rows * columns).view(rows, columns)
    grids = [grid, grid.flip(1)]
    if not upright:
        grids += [each.flip(0) for each in grids]
        if rows == columns:
            grids += [each.T for each in grids]
    return torch.stack([each.reshape(-1) for each in grids]).unique(dim=0)


def cell_symmetries(game: Game[Any]) -> Tensor:
    """Int64 [G, N]: as Symmetric.symmetries; only the identity without the capability."""
    symmetric = find(game, Symmetric)
    _, rows, columns = game.spec.observation
    return torch.arange(rows * columns)[None] if symmetric is None else symmetric.symmetries()


def action_symmetries(game: Game[Any]) -> Tensor:
    """Int64 [G, A]: as Symmetric.action_symmetries; only the identity without the capability."""
    symmetric, actions = find(game, Symmetric), torch.arange(game.spec.actions)
    return actions[None] if symmetric is None else symmetric.action_symmetries()


def preserving(symmetries: Tensor, layouts: Tensor) -> Tensor:
    """Those of the permutations, int64 [G, N], that map the layouts [L, N] onto themselves.

    A solver may take positions for the same only if such a permutation relates them: on some of a
    fleet's layouts a rotated position need not have the same value.
    """

    def counted(rows: Tensor) -> tuple[Tensor, Tensor]:
        distinct, counts = rows.to(torch.uint8).unique(dim=0, return_counts=True)
        return distinct, counts

    expected = counted(layouts)
    valid = [
        all(map(torch.equal, counted(layouts[:, permutation]), expected))
        for permutation in symmetries
    ]
    return symmetries[torch.tensor(valid)]


class Symmetries:
    """A game's symmetries, applied to the moves of a batch, each by a random one."""

    def __init__(self, game: Game[Any], device: torch.device | str) -> None:
        self.cells = cell_symmetries(game).to(device)
        self.actions = action_symmetries(game).to(device)
        self.inverse_actions = self.actions.argsort(1)  # where each action goes
        symmetric, planes = find(game, Symmetric), torch.arange(game.spec.observation[0])[None]
        seen = symmetric.plane_symmetries() if symmetric else planes
        self._planes, self._moves_planes = seen.to(device), bool((seen != planes).any())
        self.count = len(self.cells)

    def sample(self, moves: int, generator: torch.Generator) -> Tensor:
        """Int64 [M]: the number of a random symmetry for each move."""
        return torch.randint(self.count, (moves,), generator=generator, device=self.cells.device)

    def transform_planes(self, planes: Tensor, symmetry: Tensor) -> Tensor:
        """Float32 [M, C, H, W]: each row transformed by its own symmetry, int64 [M]."""
        if self._moves_planes:
            order = self.plane_order(planes.shape[1])[symmetry]
            planes = planes.gather(1, order[:, :, None, None].expand_as(planes))
        cells = self.cells[symmetry][:, None].expand(-1, planes.shape[1], -1)
        return planes.flatten(2).gather(2, cells).view_as(planes)

    def plane_order(self, count: int) -> Tensor:
        """Int64 [G, C]: as Symmetric.plane_symmetries, if a policy may have added planes to the
        observation."""
        added = torch.arange(self._planes.shape[1], count, device=self.cells.device)
        return torch.cat([self._planes, added.expand(self.count, -1)], 1)

    def transform_action_values(self, values: Tensor, symmetry: Tensor) -> Tensor:
        """[M, A]: a value of each action, such as its legality, on the transformed board."""
        return values.gather(1, self.actions[symmetry])

    def transform_action(self, action: Tensor, symmetry: Tensor) -> Tensor:
        """Int64 [M]: the same actions on the transformed board."""
        return self.inverse_actions[symmetry, action]


def direction_symmetries(rows: int, columns: int) -> Tensor:
    """Int64 [G, 4]: by symmetry of board_symmetries, the direction on the original board of each
    direction, up, right, down and left, on the transformed one."""
    direction_of_step = {1: 1, -1: 3, columns: 2, -columns: 0}
    directions = []
    for cells in board_symmetries(rows, columns).tolist():
        # Without a step along an axis the symmetries keep it.
        right = direction_of_step[cells[1] - cells[0]] if columns > 1 else 1
        down = direction_of_step[cells[columns] - cells[0]] if rows > 1 else 2
        directions.append([(down + 2) % 4, right, down, (right + 2) % 4])
    return torch.tensor(directions)
