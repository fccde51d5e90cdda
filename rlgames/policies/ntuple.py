"""Values of 2048 boards as sums over n-tuples of cells, alike for turned and mirrored boards."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.games.slide import Slide
from rlgames.policies.policy import AfterstateValues

MOST_ENTRIES = 200_000_000

SHAPES = ((3, 3), (4, 2))
"""Tuples used where none are named: so many cells in a row and in the row below, from the left."""


class Ntuple(AfterstateValues):
    """Each tuple of cells has a table with a value for all that these cells can hold; a board is
    worth the sum of what it finds in every table, looking at it from each side of each of the
    board's symmetries (Szubert and Jaskowski 2014). What the whole board holds is looked up once,
    from the side from which its number is least.

    tuples: cells of each tuple, counted from 0 in rows from the top; None: all ways that SHAPES
        lie on the board, or the whole board where it has no more than six cells. marks: how many
        exponents are told apart; larger tiles count as the largest. start: the value of a board
        that was never met. entries: the most values that a tuple's table has; where it could hold
        more contents they share them, content n having value n mod entries; None: no limit.
    Raises ValueError for other games than 2048, cells that are not there and tables too large.
    """

    def __init__(
        self,
        game: Game[Any],
        gains: float,
        tuples: list[list[int]] | None,
        marks: int,
        start: float,
        entries: int | None = None,
    ) -> None:
        super().__init__(gains)
        if not isinstance(game, Slide):
            raise ValueError(f"policy=ntuple looks at boards of 2048, not of {game.spec.name}")
        symmetries = game.symmetries()
        tuples = default_tuples(game.rows, game.columns, symmetries) if tuples is None else tuples
        self.marks = min(marks, game.spec.marks)
        _check(tuples, self.marks, entries, game.num_cells)
        views = [symmetries[:, cells].tolist() for cells in tuples]
        # For every tuple and symmetry, what each cell's exponent is multiplied by.
        steps = torch.zeros(len(tuples), len(symmetries), game.num_cells, dtype=torch.float64)
        for number, of_tuple in enumerate(views):
            for side, cells in enumerate(of_tuple):
                for place, cell in enumerate(cells):
                    steps[number, side, cell] = self.marks**place
        contents = [self.marks ** len(cells) for cells in tuples]
        sizes = torch.tensor([min(each, entries or each) for each in contents])
        first = sizes.cumsum(0) - sizes
        self._shared = max(contents) > int(sizes.max())
        self._whole = torch.tensor([len(cells) == game.num_cells for cells in tuples])
        self._steps: Tensor
        self._sizes: Tensor
        self._first: Tensor
        # Products of floats are many times as fast as sums of whole numbers, and exact so far.
        exact = torch.float32 if max(contents) <= 1 << 24 else torch.float64
        self.register_buffer("_steps", steps.flatten(0, 1).T.to(exact), persistent=False)
        for name, each in (("_sizes", sizes), ("_first", first)):
            sides = each[None, :, None].expand(1, -1, len(symmetries))
            self.register_buffer(name, self._looked_up(sides)[0], persistent=False)
        share = start / len(self._first)
        self.register_buffer("values", torch.full((int(sizes.sum()),), share))

    def places(self, game: Game[Any], afterstate: Any) -> Tensor:
        """Int64 [B, K], K = tuples × symmetries, but 1 for a tuple of the whole board."""
        tiles = afterstate.tiles.clamp(max=self.marks - 1).to(self._steps.dtype)
        contents = (tiles @ self._steps).view(len(tiles), len(self._whole), -1)
        places = self._looked_up(contents).long()
        if self._shared:
            places %= self._sizes
        return places + self._first

    def _looked_up(self, contents: Tensor) -> Tensor:
        """[B, K]: of the contents of each tuple from each side, [B, T, G], those with values."""
        if not self._whole.any():
            return contents.flatten(1)
        parts, whole = contents[:, ~self._whole], contents[:, self._whole]
        return torch.cat([parts.flatten(1), whole.amin(2)], 1)


def default_tuples(rows: int, columns: int, symmetries: Tensor) -> list[list[int]]:
    """All ways that SHAPES lie on a board, but one of those that its symmetries make alike."""
    if rows * columns <= 6:
        return [list(range(rows * columns))]
    found: dict[tuple[int, ...], list[int]] = {}
    across = torch.arange(rows * columns).view(rows, columns)
    for grid in (across, across.T):
        for upper, lower in SHAPES:
            for top in range(grid.shape[0] - 1):
                for left in range(grid.shape[1] - upper + 1):
                    two = grid[top, left : left + upper], grid[top + 1, left : left + lower]
                    cells = torch.cat(two)
                    alike = min(tuple(sorted(view)) for view in symmetries[:, cells].tolist())
                    found.setdefault(alike, cells.tolist())
    return list(found.values()) or [list(range(rows * columns))]


def _check(tuples: list[list[int]], marks: int, entries: int | None, cells: int) -> None:
    """Raises ValueError where a tuple is not on the board or the tables would be too large."""
    for each in tuples:
        if not each or len(set(each)) < len(each) or max(each) >= cells:
            raise ValueError(
                f"policy.tuples: {each} should name cells from 0 to {cells - 1}, each of them once"
            )
    needed = sum(min(float(marks) ** len(each), entries or math.inf) for each in tuples)
    if not tuples or needed > MOST_ENTRIES:
        raise ValueError(
            f"{len(tuples)} tuples with policy.marks={marks} need {needed:.3g} values, and 1 to "
            f"{MOST_ENTRIES:,} can be; with policy.entries=1000000 large tuples share theirs"
        )
