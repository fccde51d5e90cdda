"""N-tuple networks of k in a row as the arrays that kernels read (rlgames/kernels)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.games.k_in_a_row import CompiledKInARow, KInARow
from rlgames.policies.ntuple import Ntuple

Array = np.ndarray[Any, Any]

MAX_BITS = 64

TOO_LARGE = "a board this large does not fit in 62 bits"
"""Why kernels do not play on it, as part of a sentence."""


def make_rules(game: KInARow) -> Any:
    """The rules as kernels take them, of the class LineRules of kernels/k_in_a_row.py."""
    return CompiledKInARow(game).rules


def make_settings(
    policy: Ntuple,
    *,
    epsilon: float = 0.0,
    lr: float = 0.0,
    discount: float = 1.0,
    td_lambda: float = 0.0,
    coherent: bool = False,
) -> Any:
    """The Settings of kernels/ntuple_lines.py. epsilon: the probability of a random move."""
    from rlgames.kernels.ntuple_lines import Settings

    win, draw = policy.payoffs
    return Settings(
        epsilon=np.uint64(round(epsilon * 2**32)),
        lr=np.float32(lr),
        discount=np.float32(discount),
        td_lambda=np.float32(td_lambda),
        win=np.float32(win),
        draws=np.array([draw, -draw], np.float32),
        largest=np.float32(policy.max_value),
        coherent=coherent,
    )


def make_network(game: KInARow, policy: Ntuple, stride: int) -> Any:
    """The Network that kernels/ntuple_lines.py describes; stride: numbers per value."""
    from rlgames.kernels.ntuple_lines import Network

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
    sizes = np.bincount(policy.tuple_of.numpy())
    table = np.array(changes, np.int64).reshape(-1, 3)
    return Network(
        starts=starts,
        lookups=table[:, 0].astype(np.uint64),
        deltas=(stride * table[:, 1:].T).reshape(-1).astype(np.uint64),
        empty=np.array(empty, np.uint64) * np.uint64(stride),
        half=np.uint64(policy.part_size * stride),
        tuples=np.concatenate([[0], sizes.cumsum()]).astype(np.uint64),
    )
