"""N-tuple networks as kernels read them (rlgames/kernels/ntuple.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.capabilities import find_compiled_rules
from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Policy

Array = np.ndarray[Any, Any]

MAX_BITS = 64

TOO_LARGE = "a board this large does not fit in 62 bits"
"""Why kernels do not read a network, as part of a sentence."""


def reason_not_packed(game: Game[Any], policy: Policy) -> str:
    """Why kernels cannot read this policy, as part of a sentence; "" if they can."""
    if not isinstance(policy, Ntuple):
        return "it needs policy=ntuple"
    if isinstance(game, KInARow) and game.has_rows:
        return TOO_LARGE
    if isinstance(game, Game2048):
        if type(game) is not Game2048:
            return f"it knows the rules of 2048, not of {game.spec.name}"
        if find_compiled_rules(game) is None:
            return f"a board of {game.rows}x{game.columns} is larger than 4x4"
    if policy.values.device.type != "cpu":
        return "kernels run on the CPU, with device=cpu"
    return ""


def pack_network(game: Game[Any], policy: Ntuple, stride: int) -> Any:
    """The network of a policy that kernels can read, of one of the classes that implement
    kernels/ntuple.py. stride: numbers of the table per value."""
    if isinstance(game, KInARow):
        return _line_network(game, policy, stride)
    assert isinstance(game, Game2048)
    return _network_2048(game, policy, stride)


def flat_table(values: Tensor) -> Array:
    """The numbers from the first of some values to the last; they may have others between them."""
    stride = values.stride(0)
    return values.as_strided(((len(values) - 1) * stride + 1,), (1,)).numpy()


def _network_2048(game: Game2048, policy: Ntuple, stride: int) -> Any:
    from rlgames.policies.ntuple_2048 import CompiledNetwork, Network, Tuple

    described: list[Tuple] = []
    first, radix = 0, policy.num_cell_values
    for cells in policy.tuples:
        positions = [16 * (cell // game.columns) + 4 * (cell % game.columns) for cell in cells]
        views = tuple(tuple(views) for views in _views_by_lookup(game, cells))
        described.append(Tuple(first * stride, len(cells), tuple(_runs(positions)), views))
        first += radix ** len(cells)
    stages = tuple(policy.stage_exponents)
    return CompiledNetwork(
        Network(game.rows, game.columns, radix, stride, tuple(described), stages, first * stride)
    )


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


def _line_network(game: KInARow, policy: Ntuple, stride: int) -> Any:
    from rlgames.policies.ntuple_lines import LineNetwork

    radix = policy.num_cell_values
    lookups, offsets = zip(*policy.lookups(), strict=True)
    bits = [int(bit).bit_length() - 1 for bit in game.layout.cell_bits.tolist()]
    cell_of_bit = {bit: cell for cell, bit in enumerate(bits)}
    open_digit = 3 if radix == 4 else 0
    starts, changes = np.zeros(MAX_BITS + 1, np.int64), []
    for bit in range(MAX_BITS):
        cell = cell_of_bit.get(bit)
        above = -1 if cell is None or not game.gravity else cell - game.columns
        for number, cells in enumerate(lookups) if cell is not None else ():
            own = radix ** cells.index(cell) if cell in cells else 0
            opened = open_digit * radix ** cells.index(above) if above in cells else 0
            was_open = open_digit if game.gravity else 0
            if own or opened:
                changes.append((number, *(own * (owner - was_open) + opened for owner in (1, 2))))
        starts[bit + 1] = len(changes)
    bottom = range(game.rows * game.columns - game.columns, game.rows * game.columns)
    empty = [
        offset + sum(open_digit * radix**n for n, cell in enumerate(cells) if cell in bottom)
        for offset, cells in zip(offsets, lookups, strict=True)
    ]
    table = np.array(changes, np.int64).reshape(-1, 3)
    win, draw = policy.payoffs
    return LineNetwork(
        starts=starts,
        lookups=table[:, 0].astype(np.uint64),
        deltas=(stride * table[:, 1:].T).reshape(-1).astype(np.uint64),
        empty=np.array(empty, np.uint64) * np.uint64(stride),
        half=np.uint64(policy.part_size * stride),
        win=np.float32(win),
        draws=np.array([draw, -draw], np.float32),
        largest=np.float32(policy.max_value),
    )
