"""Cells and tuples of n-tuple networks for k in a row."""

from __future__ import annotations

import random

from torch import Tensor

from rlgames.games.k_in_a_row import KInARow, KInARowState

OPEN = 3
"""The value of an empty cell where a stone can fall."""

DEFAULT_NUM_TUPLES, MAX_LENGTH = 70, 8
"""The number and the length of default tuples (Thill, Koch and Konen 2012)."""

MAX_SINGLE = MAX_LENGTH + 1
"""A board of at most this many cells is a single tuple by default."""


def check_rules(game: KInARow) -> None:
    """Raises ValueError for a game derived from k in a row, which may be won in another way."""
    if type(game) is not KInARow:
        raise ValueError(
            f"policy=ntuple knows how k in a row is won, not the rules of {game.spec.name}; "
            "use a network, or policy=table"
        )


def cell_values(game: KInARow, num_cell_values: int) -> int:
    """The number of values of a cell. Raises ValueError for too few to tell stones apart."""
    if num_cell_values < OPEN:
        raise ValueError(
            f"policy.num_cell_values={num_cell_values} does not tell empty cells and the stones of "
            f"two seats apart; use {OPEN} or more"
        )
    return min(num_cell_values, OPEN + 1) if game.gravity else OPEN


def digits(game: KInARow, state: KInARowState, num_cell_values: int) -> Tensor:
    """Int64 [B, cells], in row-major order from the top: 0 empty, 1 and 2 with a stone of the first
    or the second seat, OPEN if there are that many values."""
    cells = game.cells(state).flatten(1)
    if num_cell_values <= OPEN:
        return cells
    return cells + OPEN * game.open_cells(state).flatten(1)


def random_walks(game: KInARow, num_tuples: int | None = None) -> list[list[int]]:
    """Random walks over neighboring cells, the same at each call, as many as num_tuples, or
    DEFAULT_NUM_TUPLES; or all cells of a board with at most nine. Small boards may have fewer."""
    num_cells = game.rows * game.columns
    if num_cells <= MAX_SINGLE:
        return [list(range(num_cells))]
    symmetries, generator = game.symmetries(), random.Random(0)
    tuples: dict[frozenset[int], list[int]] = {}
    num_tuples = num_tuples or DEFAULT_NUM_TUPLES
    for _ in range(100 * num_tuples):
        cells = _walk(game, MAX_LENGTH, generator)
        canonical = min(sorted(view) for view in symmetries[:, cells].tolist())
        tuples.setdefault(frozenset(canonical), canonical)
        if len(tuples) == num_tuples:
            break
    return list(tuples.values())


def _walk(game: KInARow, length: int, generator: random.Random) -> list[int]:
    """Distinct cells that a walk over neighbors meets."""

    def below(limit: int) -> int:
        return int(generator.random() * limit)

    row, column = below(game.rows), below(game.columns)
    cells = {row * game.columns + column}
    while len(cells) < length:
        row = min(max(row + below(3) - 1, 0), game.rows - 1)
        column = min(max(column + below(3) - 1, 0), game.columns - 1)
        cells.add(row * game.columns + column)
    return sorted(cells)
