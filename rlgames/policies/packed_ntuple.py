"""N-tuple networks and 2048 boards as the arrays that kernels read (rlgames/kernels)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.games.game_2048 import Compiled2048, Game2048
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
    if type(game) is not Game2048:
        return f"it knows the rules of 2048, not those of {game.spec.name}"
    if max(game.rows, game.columns) > MAX_LENGTH:
        return f"a board of {game.rows}x{game.columns} is larger than 4x4"
    if policy.num_cell_values > MAX_CELL_VALUES:
        return f"policy.num_cell_values={policy.num_cell_values} is more than {MAX_CELL_VALUES}"
    if len(policy.met):
        return "policy.table_size= hashes some of the tuples"
    if next(policy.buffers()).device.type != "cpu":
        return ON_CPU
    return ""


class PackedNtuple:
    """A policy and its game for which reason_not_packed is "".

    compiled: the rules of the game. stride: numbers per value, 1 for policy.values alone. network:
    see kernels/ntuple_values.py.
    """

    def __init__(self, game: Game[Any], policy: Policy, stride: int) -> None:
        from rlgames.kernels.ntuple_values import CompiledNetwork

        assert isinstance(game, Game2048)
        assert isinstance(policy, Ntuple)
        self.game, self.policy, self.stride = game, policy, stride
        self.compiled = Compiled2048(game)
        lookups = [_views_by_lookup(game, cells) for cells in policy.tuples]
        stages = tuple(policy.stage_exponents)
        network = _network(game, policy, stride, lookups, stages)
        self.network = CompiledNetwork(network)


def _position(game: Game2048, cell: int) -> int:
    """The lowest bit of a cell."""
    return 16 * (cell // game.columns) + 4 * (cell % game.columns)


def _network(
    game: Game2048,
    policy: Ntuple,
    stride: int,
    lookups: Sequence[list[list[int]]],
    stages: tuple[int, ...] = (),
) -> Network:
    """The network as kernels/ntuple_values.py describes it. lookups: the views of each lookup of
    each tuple."""
    from rlgames.kernels.ntuple_values import Network, Tuple

    described: list[Tuple] = []
    first, radix = 0, policy.num_cell_values
    for cells, each in zip(policy.tuples, lookups, strict=True):
        runs = tuple(_runs([_position(game, cell) for cell in cells]))
        views = tuple(tuple(views) for views in each)
        described.append(Tuple(first * stride, len(cells), runs, views))
        first += radix ** len(cells)
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


def _views(game: Game2048) -> list[Tensor]:
    """The cells of the board that each view shows, as the board is shown."""
    grid = torch.arange(game.num_cells).view(game.rows, game.columns)
    views = [grid, grid.flip(1), grid.flip(0), grid.flip(0, 1)]
    return views + ([view.T for view in views] if game.rows == game.columns else [])


def _views_by_lookup(game: Game2048, cells: Sequence[int]) -> list[list[int]]:
    """The views that show a tuple's cells on the same cells of the board, for each set of these."""
    lookups: dict[frozenset[int], list[int]] = {}
    for number, view in enumerate(_views(game)):
        shown = frozenset(view.reshape(-1)[list(cells)].tolist())
        lookups.setdefault(shown, []).append(number)
    return list(lookups.values())
