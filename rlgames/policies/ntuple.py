"""N-tuple networks: values of boards as sums of table entries, and the same for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.kernels.words import Array
from rlgames.policies import ntuple_lines
from rlgames.policies.ntuple_2048 import CompiledNetwork, Network, Tuple
from rlgames.policies.policy import Policy, ValueFunction

MAX_TABLE_SIZE = 200_000_000

TOO_LARGE = "a board this large needs more than 62 bits"
"""Why kernels do not read a network, as part of a sentence."""

MAX_VALUE = 0.999
"""Of a game of k in a row in progress, as a part of a win. So no move is preferred to a win."""

DEFAULT_SHAPES = ((3, 3), (4, 2))
"""Default tuples: the numbers of cells in a row and in the row below, aligned on the left."""


class Ntuple(ValueFunction):
    """V(board) = Σ over tuples and symmetries of table[tuple][contents of the tuple's cells]

    (Szubert and Jaskowski 2014): each tuple of cells has a table with one value for every content
    of its cells, and it is looked up on the board and on all symmetric boards. If several
    symmetries put a tuple on the same cells, one of these lookups counts: the one with the lowest
    index of the content.

    In k in a row every symmetry that reads other cells, or the same ones in another order, is a
    lookup, and the values after moves of the second seat have separate tables, which follow
    the tables of the first (Thill, Koch and Konen 2012). Wins and draws have the value of their
    reward; other values count as at most MAX_VALUE of a win, and no less than of a loss.

    tuples: the cells of each tuple, numbered from 0 in rows from the top; None: DEFAULT_SHAPES in
        all positions on the board, or the whole board if it has at most six cells; in k in a row
        the random walks of rlgames.policies.ntuple_lines.
    num_cell_values: larger tiles count as the last.
    values: float32 [W], the trained values. tuple_of: int64 [K], the tuple of each lookup.
    Raises ValueError for other games, cells off the board, tables that are too large and a
    num_tuples that has no effect.
    """

    values: Tensor
    trained_buffers = ("values",)

    def __init__(
        self,
        game: Game[Any],
        score_scale: float,
        tuples: list[list[int]] | None,
        num_cell_values: int,
        init_value: float,
        num_tuples: int | None,
    ) -> None:
        super().__init__(score_scale)
        if not isinstance(game, Game2048 | KInARow):
            raise ValueError(
                f"policy=ntuple has tuples of 2048 and k-in-a-row boards, not of {game.spec.name}"
            )
        self.has_lines = isinstance(game, KInARow)
        if isinstance(game, KInARow):
            ntuple_lines.check_rules(game)
        has_walks = self.has_lines and game.rows * game.columns > ntuple_lines.MAX_SINGLE
        if num_tuples is not None and (tuples is not None or not has_walks):
            raise ValueError(
                f"policy.num_tuples={num_tuples} has no effect on a board of at most "
                f"{ntuple_lines.MAX_SINGLE} cells, in 2048 or with policy.tuples=; leave it out"
            )
        symmetries, num_cells = game.symmetries(), game.rows * game.columns
        self.num_cell_values = min(num_cell_values, game.num_cell_values)
        if isinstance(game, KInARow):
            self.num_cell_values = ntuple_lines.cell_values(game, num_cell_values)
            tuples = ntuple_lines.random_walks(game, num_tuples) if tuples is None else tuples
        if tuples is None:
            tuples = default_tuples(game.rows, game.columns, symmetries)
        num_parts = 2 if self.has_lines else 1
        check_tuples(tuples, self.num_cell_values, num_cells, num_parts)
        self.tuples = tuples
        sizes = [self.num_cell_values ** len(cells) for cells in tuples]
        self._make_lookups([symmetries[:, cells] for cells in tuples], num_cells)
        offsets = torch.tensor(sizes).cumsum(0) - torch.tensor(sizes)
        self._offsets = nn.Buffer(offsets[self.tuple_of].int(), persistent=False)
        self.part_size: int = sum(sizes)  # the values of a seat
        self.initial_value = init_value / len(self.tuple_of)
        initial = torch.full((num_parts * self.part_size,), self.initial_value)
        self.register_buffer("values", initial)

    def _make_lookups(self, placements: list[Tensor], num_cells: int) -> None:
        """Set the K lookups of a board: tuple_of, and the strides of their cells.

        A lookup is a tuple on a set of cells. Its orientations are the symmetries that put the
        tuple on these cells, of which some come twice so that all lookups have as many; in k in a
        row each has one. placements: for each tuple int64 [G, n], its cells under each symmetry.
        """
        lookups = [
            (number, strides)
            for number, cells in enumerate(placements)
            for strides in _lookup_strides(cells, self.num_cell_values, num_cells, self.has_lines)
        ]
        lookups.sort(key=lambda lookup: len(lookup[1]))
        orientation = torch.arange(len(lookups[-1][1]))
        all_strides = [strides[orientation % len(strides)] for _, strides in lookups]
        self.tuple_of = torch.tensor([number for number, _ in lookups])
        # Float products are many times as fast as integer ones, and exact up to these sizes.
        max_size = self.num_cell_values ** max(cells.shape[1] for cells in placements)
        dtype = torch.float32 if max_size <= 1 << 24 else torch.float64
        strides = torch.stack(all_strides, 1).flatten(0, 1).T.to(dtype)
        self._strides = nn.Buffer(strides, persistent=False)

    def feature_indices(self, game: Game[Any], afterstate: Any) -> Tensor:
        """Int32 [B, K]: the index of the value of each lookup."""
        if isinstance(game, KInARow):
            cells = ntuple_lines.digits(game, afterstate, self.num_cell_values)
        else:
            assert isinstance(game, Game2048)
            cells = game.tiles(afterstate)
        offsets = self._offsets
        if self.has_lines:
            offsets = offsets + self.part_size * (1 - afterstate.current_seat[:, None].int())
        cells = cells.clamp(max=self.num_cell_values - 1).to(self._strides.dtype)
        by_orientation = (cells @ self._strides).split(len(self.tuple_of), 1)
        # A minimum of columns is ten times as fast as amin.
        return reduce(torch.minimum, by_orientation).int() + offsets

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        indices = self.feature_indices(game, afterstate)
        # Twice as fast as indexing with a matrix.
        value = self.values.index_select(0, indices.reshape(-1)).view(indices.shape).sum(1)
        if not self.has_lines:
            return value
        win, draw = self.payoffs
        seat = 1 - afterstate.current_seat
        final = torch.where(seat == 0, draw, -draw)
        final[afterstate.score.gather(1, seat[:, None])[:, 0] > 0] = win
        return torch.where(afterstate.done, final, value.clamp(-self.max_value, self.max_value))

    @property
    def max_value(self) -> float:
        """The largest value of a game in progress, less than the value of a win."""
        return MAX_VALUE * self.payoffs[0]

    def lookups(self) -> list[tuple[list[int], int]]:
        """In k in a row the cells of each of the K lookups, and where its values begin."""
        lengths = [len(self.tuples[number]) for number in self.tuple_of.tolist()]
        rows = zip(self._strides.T.argsort(), lengths, self._offsets.tolist(), strict=True)
        return [(cells[-length:].tolist(), offset) for cells, length, offset in rows]


def _lookup_strides(
    placements: Tensor, num_cell_values: int, num_cells: int, by_order: bool
) -> list[Tensor]:
    """For each set of cells that a tuple is placed on, float64 [orientations, num_cells]: the
    factor of each cell's value in the index of the contents. placements: int64 [G, n]. by_order:
    each order of the same cells counts as a separate set."""
    if by_order:
        placements = placements.unique(dim=0)
    powers = num_cell_values ** torch.arange(placements.shape[1], dtype=torch.float64)
    strides = torch.zeros(len(placements), num_cells, dtype=torch.float64)
    strides.scatter_(1, placements, powers.expand(placements.shape))
    if by_order:
        return list(strides.split(1))
    _, cell_set = placements.sort(1)[0].unique(dim=0, return_inverse=True)
    return [strides[cell_set == number] for number in range(int(cell_set.max()) + 1)]


def default_tuples(rows: int, columns: int, symmetries: Tensor) -> list[list[int]]:
    """DEFAULT_SHAPES in all positions on a board, without those that are symmetric to others."""
    if rows * columns <= 6:
        return [list(range(rows * columns))]
    tuples: dict[tuple[int, ...], list[int]] = {}
    horizontal = torch.arange(rows * columns).view(rows, columns)
    for grid in (horizontal, horizontal.T):
        for upper, lower in DEFAULT_SHAPES:
            for top in range(grid.shape[0] - 1):
                for left in range(grid.shape[1] - upper + 1):
                    upper_cells = grid[top, left : left + upper]
                    cells = torch.cat([upper_cells, grid[top + 1, left : left + lower]])
                    canonical = min(tuple(sorted(image)) for image in symmetries[:, cells].tolist())
                    tuples.setdefault(canonical, cells.tolist())
    return list(tuples.values()) or [list(range(rows * columns))]


def check_tuples(
    tuples: list[list[int]], num_cell_values: int, num_cells: int, num_parts: int
) -> None:
    """Raises ValueError for cells off the board and for tables that are too large."""
    for cells in tuples:
        if not cells or len(set(cells)) < len(cells) or max(cells) >= num_cells:
            raise ValueError(
                f"policy.tuples: {cells} needs distinct cells from 0 to {num_cells - 1}"
            )
    needed = num_parts * sum(float(num_cell_values) ** len(cells) for cells in tuples)
    if not tuples or needed > MAX_TABLE_SIZE:
        raise ValueError(
            f"{len(tuples)} tuples with policy.num_cell_values={num_cell_values} need "
            f"{needed:.3g} values, and 1 to {MAX_TABLE_SIZE:,} are possible"
        )


def reason_not_packed(game: Game[Any], policy: Policy) -> str:
    """Why kernels cannot read this policy, as part of a sentence; "" if they can."""
    if not isinstance(policy, Ntuple):
        return "it needs policy=ntuple"
    if isinstance(game, KInARow) and game.is_large:
        return TOO_LARGE
    if isinstance(game, Game2048):
        if type(game) is not Game2048:
            return f"it knows the rules of 2048, not of {game.spec.name}"
        if len(game.rules.start) > 1:
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
    described: list[Tuple] = []
    first, radix = 0, policy.num_cell_values
    for cells in policy.tuples:
        positions = [16 * (cell // game.columns) + 4 * (cell % game.columns) for cell in cells]
        views = tuple(tuple(views) for views in _views_by_lookup(game, cells))
        described.append(Tuple(first * stride, len(cells), tuple(_runs(positions)), views))
        first += radix ** len(cells)
    return CompiledNetwork(Network(game.rows, game.columns, radix, stride, tuple(described)))


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
    radix = policy.num_cell_values
    lookups, offsets = zip(*policy.lookups(), strict=True)
    bits = [int(bit).bit_length() - 1 for bit in game.rules.cell_bits.tolist()]
    cell_of_bit = {bit: cell for cell, bit in enumerate(bits)}
    open_digit = 3 if radix == 4 else 0
    starts, changes = np.zeros(65, np.int64), []
    for bit in range(64):
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
    return ntuple_lines.LineNetwork(
        starts=starts,
        lookups=table[:, 0].astype(np.uint64),
        deltas=(stride * table[:, 1:].T).reshape(-1).astype(np.uint64),
        empty=np.array(empty, np.uint64) * np.uint64(stride),
        half=np.uint64(policy.part_size * stride),
        win=np.float32(win),
        draws=np.array([draw, -draw], np.float32),
        largest=np.float32(policy.max_value),
    )
