"""A case of the documents, battleship with one shot a turn, as plain arrays.

It needs numpy only, as the peers' environment imports it, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CASES: dict[int, tuple[int, tuple[int, ...]]] = {1: (4, (4,)), 2: (5, (4, 2))}
"""By number: the board's side and the ships."""

OPTIMA = {1: 6.0, 2: 12.1182}
"""Turns of the exact optimum."""


def layouts(side: int, ships: tuple[int, ...]) -> Array:
    """Bool [L, side²]: all ways in which the ships can lie, none on another, all equally likely."""
    results = []
    for placed in itertools.product(*(lines(side, ship) for ship in ships)):
        if len(set().union(*placed)) == sum(ships):
            board = np.zeros(side * side, bool)
            board[list(set().union(*placed))] = True
            results.append(board)
    return np.stack(results)


def lines(side: int, ship: int) -> list[set[int]]:
    """The cells of each line so long."""
    across = [
        {side * row + column + cell for cell in range(ship)}
        for row in range(side)
        for column in range(side - ship + 1)
    ]
    down = [{side * (cell % side) + cell // side for cell in line} for line in across]
    return across + (down if ship > 1 else [])


def greedy_turns(fleets: Array, scores: Callable[[Array], Array]) -> float:
    """Mean turns over all layouts [L, n] of whoever shoots at the cell of the highest score.

    scores: boards float32 [L, n], -1 where nobody shot, else 0 or 1, to float [L, n]; cells that
    were shot at are left out here.
    """
    boards = np.full(fleets.shape, -1, np.float32)
    row, turns = np.arange(len(fleets)), np.zeros(len(fleets), np.int64)
    while True:
        live = (boards == 1).sum(1) < fleets.sum(1)
        if not live.any():
            return float(turns.mean())
        cell = np.where(boards == -1, scores(boards), -np.inf).argmax(1)
        boards[row[live], cell[live]] = fleets[row[live], cell[live]]
        turns += live
