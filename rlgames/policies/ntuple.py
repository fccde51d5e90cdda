"""Values of 2048 boards as sums over n-tuples of cells, alike for turned and mirrored boards."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048
from rlgames.policies.policy import AfterstateValues

MAX_TABLE_SIZE = 200_000_000

MAX_CONTENTS = 2**53
"""Of one tuple: so far floats tell whole numbers apart."""

DEFAULT_SHAPES = ((3, 3), (4, 2))
"""Tuples used where none are named: so many cells in a row and in the row below, from the left."""


class Ntuple(AfterstateValues):
    """Each tuple of cells has a table with a value for all that these cells can hold; a board is
    worth the sum of what it finds in every table, wherever the board's symmetries lay the tuple
    (Szubert and Jaskowski 2014). Where several lay it on the same cells, these are looked up once,
    from the side from which the number of what they hold is least.

    tuples: cells of each tuple, counted from 0 in rows from the top; None: all ways that SHAPES
        lie on the board, or the whole board where it has no more than six cells. num_cell_values:
        how many exponents are told apart; larger tiles count as the largest. start: the value of a
        board that was never met. entries: the most values that a tuple's table has; where it could
        hold more contents, those that are learnt get one each as they are met (see Met); None: no
        limit.
    Raises ValueError for other games than 2048, cells that are not there and tables too large.
    """

    def __init__(
        self,
        game: Game[Any],
        score_scale: float,
        tuples: list[list[int]] | None,
        num_cell_values: int,
        init_value: float,
        table_size: int | None = None,
    ) -> None:
        super().__init__(score_scale)
        if not isinstance(game, Game2048):
            raise ValueError(f"policy=ntuple looks at boards of 2048, not of {game.spec.name}")
        symmetries = game.symmetries()
        tuples = default_tuples(game.rows, game.columns, symmetries) if tuples is None else tuples
        self.num_cell_values = min(num_cell_values, game.spec.num_cell_values)
        _check(tuples, self.num_cell_values, table_size, game.num_cells)
        contents = [self.num_cell_values ** len(cells) for cells in tuples]
        large = {n for n, size in enumerate(contents) if table_size and size > table_size}
        tables = {str(number): HashedTable(table_size or 0) for number in sorted(large)}
        self.met = nn.ModuleDict(tables)
        sizes = torch.tensor(
            [self._met(n).nowhere + 1 if n in large else each for n, each in enumerate(contents)]
        )
        first = sizes.cumsum(0) - sizes
        self._steps: Tensor
        self._first: Tensor
        # By how many sides see the same cells: of each look, its tuple and the steps of its sides.
        looks: dict[int, list[tuple[int, Tensor]]] = {}
        for number, cells in enumerate(tuples):
            for sides in _looks(symmetries[:, cells], self.num_cell_values, game.num_cells):
                looks.setdefault(len(sides), []).append((number, sides))
        ordered = sorted(looks.items())
        self._looks = [(sides, len(found)) for sides, found in ordered]
        steps = [torch.stack([s for _, s in found], 1).flatten(0, 1) for _, found in ordered]
        tuple_of = torch.tensor([number for _, found in ordered for number, _ in found])
        self.tuple_of = tuple_of
        # Products of floats are many times as fast as sums of whole numbers, and exact so far.
        exact = torch.float32 if max(contents) <= 1 << 24 else torch.float64
        self.register_buffer("_steps", torch.cat(steps).T.to(exact), persistent=False)
        self.register_buffer("_first", first[tuple_of].int(), persistent=False)
        self._share = init_value / len(tuple_of)
        self.register_buffer("values", torch.full((int(sizes.sum()),), self._share))
        columns = enumerate(tuple_of.tolist())
        self._large = [(column, number) for column, number in columns if number in large]

    def feature_indices(self, game: Game[Any], afterstate: Any) -> Tensor:
        """Int32 [B, K]: a place for each of the ways that each tuple lies on the board."""
        contents = self._contents(afterstate)
        places = contents.int()
        for column, number in self._large:
            places[:, column] = self._met(number).slots(contents[:, column].long())
        return places + self._first

    def allocate(
        self, game: Game[Any], afterstate: Any, frozen: Collection[int] = ()
    ) -> tuple[Tensor, Tensor]:
        contents = self._contents(afterstate)
        places = contents.int()
        begun = [torch.empty(0, dtype=torch.int64, device=places.device)]
        for column, number in self._large:
            met, content = self._met(number), contents[:, column].long()
            if number in frozen:
                places[:, column] = met.slots(content)
            else:
                places[:, column], new = met.allocate(content)
                begun.append(self._first[column] + new)
        anew = torch.cat(begun)
        self.values.index_fill_(0, anew, self._share)
        return places + self._first, anew

    def _met(self, number: int) -> HashedTable:
        met = self.met[str(number)]
        assert isinstance(met, HashedTable)
        return met

    def _contents(self, afterstate: Any) -> Tensor:
        """Float32 or float64 [B, K]: the number of what the cells hold at each look."""
        tiles = afterstate.tiles.clamp(max=self.num_cell_values - 1).to(self._steps.dtype)
        of_sides = (tiles @ self._steps).split([sides * looks for sides, looks in self._looks], 1)
        # A minimum of columns is ten times as fast as amin.
        least = [
            reduce(torch.minimum, found.split(looks, 1))
            for found, (_, looks) in zip(of_sides, self._looks, strict=True)
        ]
        return torch.cat(least, 1)


SLOTS_PER_BUCKET = 4
"""Places of a bucket: few contents find theirs taken, and one line of the cache has them all."""


class HashedTable(nn.Module):
    """Places for contents that are too many to have one each before they are met: a hash table.

    A content has one of the slots of its bucket from when it is first learnt, and until then the
    place after all of them, nowhere. Where its bucket is full it takes another's slot over.

    keys: int64 [buckets, SLOTS], 1 more than the content that has each place, 0 for a free one.
    """

    def __init__(self, entries: int) -> None:
        super().__init__()
        buckets = max(1, entries // SLOTS_PER_BUCKET)
        self.nowhere = buckets * SLOTS_PER_BUCKET
        self.keys: Tensor
        self._numbers: Tensor
        self.register_buffer("keys", torch.zeros(buckets, SLOTS_PER_BUCKET, dtype=torch.int64))
        self.register_buffer("_numbers", torch.arange(1.0, SLOTS_PER_BUCKET + 1), persistent=False)

    def slots(self, content: Tensor) -> Tensor:
        """Int64 [B]: the places of contents, int64 [B]."""
        bucket = self._bucket(content)
        mine = self.keys.index_select(0, bucket) == content[:, None] + 1
        slot = (mine.float() @ self._numbers).long()  # from 1; 0 where there is none
        return torch.where(slot > 0, bucket * SLOTS_PER_BUCKET + slot - 1, self.nowhere)

    def allocate(self, content: Tensor) -> tuple[Tensor, Tensor]:
        """Places of contents, int64 [B], that are about to be learnt, and those that are new."""
        rows = (self.slots(content) == self.nowhere).nonzero()[:, 0]
        asking, keys = content.index_select(0, rows).unique(), self.keys.view(-1)
        new = [asking[:0]]
        # Of several that ask for one slot one gets it, and the others ask again.
        for turn in range(2 * SLOTS_PER_BUCKET):
            bucket = self._bucket(asking)
            free = self.keys.index_select(0, bucket) == 0
            slot = torch.where(
                free.any(1), free.byte().argmax(1), (asking + turn) % SLOTS_PER_BUCKET
            )
            place = bucket * SLOTS_PER_BUCKET + slot
            keys.scatter_(0, place, asking + 1)
            new.append(place)
            asking = asking[keys[place] != asking + 1]
            if not len(asking):
                break
        places = self.slots(content)
        # Those that lost theirs to others of this claim share it: nowhere is for nobody to learn.
        other = self._bucket(content) * SLOTS_PER_BUCKET + content % SLOTS_PER_BUCKET
        return torch.where(places == self.nowhere, other, places), torch.cat(new)

    def _bucket(self, content: Tensor) -> Tensor:
        # The product's upper bits depend on all of the content (Fibonacci hashing).
        return ((content * -7046029254386353131) >> 24) % len(self.keys)


def _looks(views: Tensor, num_cell_values: int, cells: int) -> list[Tensor]:
    """For each set of cells that a tuple lies on, what every cell's exponent is multiplied by from
    each side that sees it, float64 [sides, cells]; views: int64 [G, n]."""
    exponents = torch.arange(views.shape[1], dtype=torch.float64)
    weight = (num_cell_values**exponents).expand(views.shape)
    steps = torch.zeros(len(views), cells, dtype=torch.float64).scatter_(1, views, weight)
    _, look = views.sort(1)[0].unique(dim=0, return_inverse=True)
    return [steps[look == number] for number in range(int(look.max()) + 1)]


def default_tuples(rows: int, columns: int, symmetries: Tensor) -> list[list[int]]:
    """All ways that SHAPES lie on a board, but one of those that its symmetries make alike."""
    if rows * columns <= 6:
        return [list(range(rows * columns))]
    found: dict[tuple[int, ...], list[int]] = {}
    across = torch.arange(rows * columns).view(rows, columns)
    for grid in (across, across.T):
        for upper, lower in DEFAULT_SHAPES:
            for top in range(grid.shape[0] - 1):
                for left in range(grid.shape[1] - upper + 1):
                    two = grid[top, left : left + upper], grid[top + 1, left : left + lower]
                    cells = torch.cat(two)
                    alike = min(tuple(sorted(view)) for view in symmetries[:, cells].tolist())
                    found.setdefault(alike, cells.tolist())
    return list(found.values()) or [list(range(rows * columns))]


def _check(
    tuples: list[list[int]], num_cell_values: int, table_size: int | None, cells: int
) -> None:
    """Raises ValueError where a tuple is not on the board or the tables would be too large."""
    for each in tuples:
        if not each or len(set(each)) < len(each) or max(each) >= cells:
            raise ValueError(
                f"policy.tuples: {each} should name cells from 0 to {cells - 1}, each of them once"
            )
        if float(num_cell_values) ** len(each) > MAX_CONTENTS:
            longest = int(53 / math.log2(num_cell_values))
            raise ValueError(
                f"policy.tuples: the {len(each)} cells of {each} can hold more than 2^53 contents; "
                f"with policy.num_cell_values={num_cell_values} at most {longest} cells do not"
            )
    sizes = [float(num_cell_values) ** len(each) for each in tuples]
    needed = sum(min(size, table_size or math.inf) for size in sizes)
    if not tuples or needed > MAX_TABLE_SIZE:
        raise ValueError(
            f"{len(tuples)} tuples with policy.num_cell_values={num_cell_values} need "
            f"{needed:.3g} values, and 1 to {MAX_TABLE_SIZE:,} can be; "
            "policy.table_size=1000000 gives them to what is met"
        )
