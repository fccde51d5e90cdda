"""The bits of a board of k in a row.

A set of stones is one number with a bit for each cell. A line is then found by shifting the number
and intersecting it with itself. Spare bits, which are always 0, keep lines from running over the
edge of the board. The bits of a board of 2 rows and 3 columns:

    with gravity        without            without, up to 16 cells (looked up in tables)
     2  5  8  spare
     1  4  7             0  1  2 | 3        0  1  2
     0  3  6             4  5  6 | 7        3  4  5
                               spare

With gravity a column's stones are its lowest bits. So adding the column's bottom bit carries over
them into the lowest empty cell, or into the spare bit if the column is full.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.games.state import Tables
from rlgames.games.subsets import MAX_SET_SIZE

MAX_BITS = 62
"""The most bits of a board, spare ones included."""

MAX_TABLE_BITS = 16
"""Up to this many cells without gravity, tables hold lines and observations of all sets of stones.
Smaller tables stay closer to the processor."""


class BitLayout(Tables):
    """The bits of a board, as drawn above.

    num_bits: with spare ones, if any. cell_bits: [rows * columns], the bit of each cell in
    row-major order from the top. all_cells: their sum. line_steps: the distances between the bits
    of neighbors in a line. has_line_table: bool [2^cells], plane_table: float32 [2^cells, cells],
    or None. With gravity, by column: bottom_bits, top_bits, column_masks, int64 [columns];
    bottom_row, top_row: the sums of the former.
    Raises ValueError for a board that needs too many bits.
    """

    has_line_table: Tensor | None = None
    plane_table: Tensor | None = None
    bottom_bits: Tensor
    top_bits: Tensor
    column_masks: Tensor

    def __init__(self, rows: int, columns: int, line: int, gravity: bool) -> None:
        self.line, self.columns = line, columns
        stride = rows + 1 if gravity else columns + 1  # bits per column, or per row
        self.num_bits = stride * (columns if gravity else rows)
        if self.num_bits > MAX_BITS:
            raise ValueError(
                f"a board of {rows}x{columns} needs {self.num_bits} bits, "
                f"and {MAX_BITS} is the most"
            )
        column, row = torch.arange(columns), torch.arange(rows)[:, None]
        place = column * stride + (rows - 1 - row) if gravity else row * stride + column
        self.cell_bits = (torch.ones((), dtype=torch.int64) << place).reshape(-1)
        self.line_steps = (1, stride, stride + 1, stride - 1)
        if gravity:
            self._add_columns(rows, stride)
        elif rows * columns <= MAX_TABLE_BITS:
            self._add_tables(rows * columns)
        self.all_cells = int(self.cell_bits.sum())

    def _add_columns(self, rows: int, stride: int) -> None:
        grid = self.cell_bits.view(rows, self.columns)
        self.bottom_bits, self.top_bits = grid[-1].clone(), grid[0].clone()
        self.column_masks = grid.sum(0)
        self.bottom_row, self.top_row = int(grid[-1].sum()), int(grid[0].sum())
        # Multiplying by gather_factor moves the top bit of column c, rows - 1 + c * stride, to
        # gather_shift + c. With at most stride columns no other products get in the way.
        self.gather_factor, self.gather_shift = 0, rows * self.columns - 1
        if self.columns <= min(stride, MAX_SET_SIZE):
            self.gather_factor = sum(1 << rows * c for c in range(self.columns))

    def _add_tables(self, cells: int) -> None:
        bit = torch.arange(cells)
        stones = (torch.arange(2**cells)[:, None] >> bit) & 1
        self.has_line_table = self.has_line((stones * self.cell_bits).sum(1))
        self.plane_table = stones.float()
        self.cell_bits, self.num_bits = (1 << bit).int(), cells

    # Sets of stones have the shape [B], one number for each game; RowLayout changes that.

    def no_stones(self, batch: int, device: torch.device) -> Tensor:
        """The empty sets of B games."""
        return torch.zeros(batch, dtype=self.cell_bits.dtype, device=device)

    def spread(self, number: Tensor) -> Tensor:
        """A number for each game, [B], shaped like sets of stones."""
        return number

    def is_empty(self, stones: Tensor) -> Tensor:
        """Bool [B]: whether the set is empty."""
        return stones == 0

    def is_full(self, stones: Tensor) -> Tensor:
        """Bool [B]: whether there is a stone on every cell."""
        return stones == self.all_cells

    def stones(self, cells: Tensor) -> Tensor:
        """The sets with these cells, bool [B, rows * columns] in row-major order from the top."""
        return (cells * self.cell_bits).sum(1, dtype=self.cell_bits.dtype)

    def has_line(self, stones: Tensor) -> Tensor:
        """Bool, shaped like stones: whether they contain a whole line."""
        if self.has_line_table is not None:
            return self.has_line_table.index_select(0, stones.reshape(-1)).view(stones.shape)
        lines: Tensor | None = None
        for step in self.line_steps:
            run, length = stones, 1  # the bits at which a run of this length begins
            while length < self.line:
                added = min(length, self.line - length)
                run = run & (run >> (step * added))
                length += added
            lines = run if lines is None else lines | run
        assert lines is not None
        return lines != 0

    def contains(self, stones: Tensor) -> Tensor:
        """Bool [B, rows * columns]: the cells of stones [B], in row-major order from the top."""
        return (stones[:, None] & self.cell_bits) != 0

    def planes(self, sides: Tensor) -> Tensor:
        """Float32 [..., rows * columns], 1 at the stones of sides, [B, 2]."""
        if self.plane_table is not None:
            return self.plane_table.index_select(0, sides.view(-1))
        # Clamping numbers to 1 is several times as fast as comparing them with 0.
        return (sides[:, :, None] & self.cell_bits).float().clamp_(max=1)

    def open_columns(self, occupied: Tensor) -> Tensor:
        """Int64 [B]: with bit c set where column c is not full; needs gather_factor."""
        full = ((occupied & self.top_row) * self.gather_factor) >> self.gather_shift
        every = 2**self.columns - 1
        return (full & every) ^ every

    def lowest_empty_cells(self, occupied: Tensor) -> Tensor:
        """Int64 [..., columns]: the bit where a stone falls, 0 in a full column."""
        return (occupied[..., None] + self.bottom_bits) & self.column_masks
