"""N-tuple networks and 2048 boards as the arrays that kernels read (rlgames/kernels)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Policy

if TYPE_CHECKING:
    from rlgames.kernels.ntuple_values import Network

Array = np.ndarray[Any, Any]

MAX_LENGTH, MAX_CELL_VALUES = 4, 16
"""Rows and columns of a board, and values of a cell, that fit in 64 bits."""


ON_CPU = "kernels run on the CPU, with device=cpu"
"""Why they are not used elsewhere, as part of a sentence."""


def reason_not_packed(game: Game[Any], policy: Policy) -> str:
    """Why kernels cannot read this policy, as part of a sentence; "" if they can."""
    if not isinstance(game, Game2048) or not isinstance(policy, Ntuple):
        return "it needs policy=ntuple"
    if max(game.rows, game.columns) > MAX_LENGTH:
        return f"a board of {game.rows}x{game.columns} is larger than 4x4"
    if policy.num_cell_values > MAX_CELL_VALUES:
        return f"policy.num_cell_values={policy.num_cell_values} is more than {MAX_CELL_VALUES}"
    if len(policy.met):
        return "policy.table_size= hashes some of the tuples"
    if policy.values.device.type != "cpu":
        return ON_CPU
    return ""


class PackedNtuple:
    """A policy and its game for which reason_not_packed is "".

    stride: numbers per value, 1 for policy.values alone. network, rows: see
    kernels/ntuple_values.py and kernels/packed_2048.py. cells: the lowest bit of each cell.
    """

    def __init__(self, game: Game[Any], policy: Policy, stride: int) -> None:
        from rlgames.kernels.ntuple_values import CompiledNetwork
        from rlgames.kernels.packed_2048 import slide_table

        assert isinstance(game, Game2048)
        assert isinstance(policy, Ntuple)
        self.game, self.policy = game, policy
        network = _network(game, policy, stride)
        self.network, self.stride = CompiledNetwork(network), stride
        self.rows = slide_table(game.rows, game.columns)
        self._shifts = np.array(
            [_position(game, cell) for cell in range(game.num_cells)], np.uint64
        )
        self.cells = np.uint64(sum(1 << int(shift) for shift in self._shifts))

    def pack(self, tiles: Tensor) -> Array:
        """Uint64 [B] from tiles, uint8 [B, N]; exponents above 15 become 15."""
        exponents = tiles.clamp(max=15).numpy().astype(np.uint64)
        boards: Array = np.bitwise_or.reduce(exponents << self._shifts, axis=1)
        return boards

    def unpack(self, boards: Array) -> Tensor:
        """Tiles, uint8 [B, N], from uint64 [B]."""
        return torch.from_numpy(
            ((boards[:, None] >> self._shifts) & np.uint64(15)).astype(np.uint8)
        )


def _position(game: Game2048, cell: int) -> int:
    """The lowest bit of a cell."""
    return 16 * (cell // game.columns) + 4 * (cell % game.columns)


def _network(game: Game2048, policy: Ntuple, stride: int) -> Network:
    """The network as kernels/ntuple_values.py describes it."""
    from rlgames.kernels.ntuple_values import Network, Tuple

    described: list[Tuple] = []
    first, radix = 0, policy.num_cell_values
    for cells in policy.tuples:
        runs = tuple(_runs([_position(game, cell) for cell in cells]))
        lookups = tuple(tuple(views) for views in _views_by_lookup(game, cells))
        described.append(Tuple(first * stride, len(cells), runs, lookups))
        first += radix ** len(cells)
    stages = tuple(policy.stage_exponents)
    return Network(game.rows, game.columns, radix, stride, tuple(described), stages, first * stride)


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Mask and rotation to the right of each run of consecutive cells, given their lowest bits."""
    runs: list[tuple[int, int]] = []
    for index, position in enumerate(positions):
        rotation = (position - 4 * index) % 64
        if runs and runs[-1][1] == rotation:
            runs[-1] = (runs[-1][0] | 15 << (4 * index), rotation)
        else:
            runs.append((15 << (4 * index), rotation))
    return runs


def _views_by_lookup(game: Game2048, cells: Sequence[int]) -> list[list[int]]:
    """The views that show a tuple's cells on the same cells of the board, for each set of these."""
    grid = torch.arange(game.num_cells).view(game.rows, game.columns)
    views = [grid, grid.flip(1), grid.flip(0), grid.flip(0, 1)]
    views += [view.T for view in views] if game.rows == game.columns else []
    lookups: dict[frozenset[int], list[int]] = {}
    for number, view in enumerate(views):
        shown = frozenset(view.reshape(-1)[list(cells)].tolist())
        lookups.setdefault(shown, []).append(number)
    return list(lookups.values())
