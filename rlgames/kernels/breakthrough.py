"""The rules of Breakthrough on boards of up to 64 cells, see rules.py.

Words: the pieces of the seat to move and of the other seat, both as the seat to move sees them, who
moves up. Bit c is cell c in row-major order from the top.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled

U = np.uint64
MAX_CELLS = 64


class BreakthroughRules(NamedTuple):
    """targets: int64 [actions], the cell that an action moves to; its own one beyond the edges."""

    start: tuple[int, ...]
    actions: int
    targets: Array
    columns: int


@compiled
def turned(pieces: np.uint64, cells: int) -> np.uint64:
    """The board turned by 180 degrees: its bits in reverse order."""
    low = U(0x5555555555555555)
    pieces = ((pieces >> U(1)) & low) | ((pieces & low) << U(1))
    low = U(0x3333333333333333)
    pieces = ((pieces >> U(2)) & low) | ((pieces & low) << U(2))
    low = U(0x0F0F0F0F0F0F0F0F)
    pieces = ((pieces >> U(4)) & low) | ((pieces & low) << U(4))
    low = U(0x00FF00FF00FF00FF)
    pieces = ((pieces >> U(8)) & low) | ((pieces & low) << U(8))
    low = U(0x0000FFFF0000FFFF)
    pieces = ((pieces >> U(16)) & low) | ((pieces & low) << U(16))
    pieces = (pieces >> U(32)) | (pieces << U(32))
    return pieces >> U(MAX_CELLS - cells)


@compiled
def play(rules: BreakthroughRules, position: Position, action: int) -> Played:
    target, cells = rules.targets[action], rules.actions // 3
    moved = U(1) << U(target)
    own = (U(position[0]) & ~(U(1) << U(action // 3))) | moved
    other = U(position[1]) & ~moved
    won = target < rules.columns or other == U(0)
    after = (np.int64(turned(other, cells)), np.int64(turned(own, cells)))
    return after, won, np.float32(won)


@compiled
def is_legal(rules: BreakthroughRules, position: Position, action: int) -> bool:
    cell, target = action // 3, rules.targets[action]
    own, other = U(position[0]), U(position[1])
    taken = own if action % 3 != 1 else own | other  # captures are diagonal
    is_own = (own >> U(cell)) & U(1)
    return bool(is_own and target != cell and not (taken >> U(target)) & U(1))


@compiled
def observe(rules: BreakthroughRules, position: Position, planes: Array) -> None:
    cells, own, other = rules.actions // 3, U(position[0]), U(position[1])
    for cell in range(cells):
        planes[cell] = np.float32((own >> U(cell)) & U(1))
        planes[cells + cell] = np.float32((other >> U(cell)) & U(1))


implement(BreakthroughRules, play=play, is_legal=is_legal, observe=observe)
