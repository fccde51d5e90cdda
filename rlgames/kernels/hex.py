"""The rules of Hex on boards of up to 11 × 11 cells, see rules.py.

Words: the stones of the seat to move, cells 0 to 63 and the others, then the other seat's stones.
Bit c is cell c in row-major order from the top, whoever sees it. Two bits of the second word that
no cell has say that the second seat is to move, for which actions and observations exchange rows
and columns, and that it may take over the opening.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, first_bit

U = np.uint64
SECOND, CAN_SWAP = U(1 << 62), U(1 << 61)
CELLS = U((1 << 57) - 1)
"""The bits of cells 64 to 120."""


class HexRules(NamedTuple):
    """neighbors: uint64 [cells, 2], the sets of neighbors. edges: uint64 [2, 2, 2], by seat its two
    edges as sets. mirrored: int64 [cells], the cells with row and column exchanged."""

    start: tuple[int, ...]
    actions: int
    neighbors: Array
    edges: Array
    mirrored: Array
    swap: bool


@compiled
def has_cell(low: np.uint64, high: np.uint64, cell: int) -> bool:
    """Whether a set contains a cell."""
    return bool(((low if cell < 64 else high) >> U(cell & 63)) & U(1))


@compiled
def touches(low: np.uint64, high: np.uint64, edge: Array) -> bool:
    """Whether a set contains a cell of an edge, uint64 [2]."""
    return bool((low & edge[0]) | (high & edge[1]))


@compiled
def linked(
    rules: HexRules, low: np.uint64, high: np.uint64, low_new: np.uint64, high_new: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The stones of a set that chains link to some of them."""
    low_chain, high_chain = U(0), U(0)
    while low_new | high_new:
        if low_new:
            near = rules.neighbors[first_bit(low_new)]
            low_chain |= low_new & (~low_new + U(1))
        else:
            near = rules.neighbors[64 + first_bit(high_new)]
            high_chain |= high_new & (~high_new + U(1))
        low_new = (low_new | (near[0] & low)) & ~low_chain
        high_new = (high_new | (near[1] & high)) & ~high_chain
    return low_chain, high_chain


@compiled
def connects(rules: HexRules, low: np.uint64, high: np.uint64, cell: int, seat: Any) -> bool:
    """Whether the chain of one of these stones, of a seat, touches both edges of the seat."""
    first, second = rules.edges[seat, 0], rules.edges[seat, 1]
    if not (touches(low, high, first) and touches(low, high, second)):
        return False
    low_new = U(1) << U(cell) if cell < 64 else U(0)
    high_new = U(0) if cell < 64 else U(1) << U(cell - 64)
    low_chain, high_chain = linked(rules, low, high, low_new, high_new)
    return touches(low_chain, high_chain, first) and touches(low_chain, high_chain, second)


@compiled
def seen_cell(rules: HexRules, position: Position, cell: int) -> int:
    """The cell that the seat to move sees as this one, and the other way around."""
    return int(rules.mirrored[cell]) if U(position[1]) & SECOND else cell


@compiled
def play(rules: HexRules, position: Position, action: int) -> Played:
    cells, flags = len(rules.mirrored), U(position[1])
    low, high = U(position[0]), flags & CELLS
    other_low, other_high = U(position[2]), U(position[3])
    turned = (flags ^ SECOND) & SECOND
    if action == cells:
        stone = first_bit(other_low) if other_low else 64 + first_bit(other_high)
        cell, other_low, other_high = rules.mirrored[stone], U(0), U(0)
    else:
        cell = seen_cell(rules, position, action)
    if cell < 64:
        low |= U(1) << U(cell)
    else:
        high |= U(1) << U(cell - 64)
    won = action < cells and connects(rules, low, high, cell, np.int64(flags & SECOND != U(0)))
    is_opening = not (position[0] | position[1] | position[2] | position[3])
    if rules.swap and is_opening:
        turned |= CAN_SWAP
    after = (np.int64(other_low), np.int64(other_high | turned), np.int64(low), np.int64(high))
    return after, won, np.float32(won)


@compiled
def is_legal(rules: HexRules, position: Position, action: int) -> bool:
    flags = U(position[1])
    if action == len(rules.mirrored):
        return bool(flags & CAN_SWAP)
    low, high = U(position[0]) | U(position[2]), flags | U(position[3])
    return not has_cell(low, high, seen_cell(rules, position, action))


@compiled
def observe(rules: HexRules, position: Position, planes: Array) -> None:
    cells, flags = len(rules.mirrored), U(position[1])
    own_seat = np.int64(flags & SECOND != U(0))
    planes[:] = 0
    for side in range(2):
        low, high = U(position[2 * side]), U(position[2 * side + 1]) & CELLS
        edges = rules.edges[own_seat ^ side]
        mark_seen(rules, position, low, high, planes[side * cells :])
        for number in range(2):
            edge = edges[number]
            low_chain, high_chain = linked(rules, low, high, low & edge[0], high & edge[1])
            plane = 2 + 2 * side + number
            mark_seen(rules, position, low_chain, high_chain, planes[plane * cells :])
    if rules.swap:
        planes[6 * cells : 7 * cells] = np.float32(flags & CAN_SWAP != U(0))


@compiled
def mark_seen(
    rules: HexRules, position: Position, low: np.uint64, high: np.uint64, plane: Array
) -> None:
    """Mark a set as the seat to move sees it."""
    while low:
        plane[seen_cell(rules, position, int(first_bit(low)))] = 1
        low &= low - U(1)
    while high:
        plane[seen_cell(rules, position, 64 + int(first_bit(high)))] = 1
        high &= high - U(1)


implement(HexRules, play=play, is_legal=is_legal, observe=observe)
