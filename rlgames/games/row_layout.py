"""Boards of k in a row without gravity that are too large for one number: a number for each row.

Bit c of row r is the cell in column c. Lines down and diagonally are intersections of rows with the
rows below them, which are shifted by a bit per row on diagonals.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.games.bit_layout import BitLayout

MAX_COLUMNS = 30
"""The most columns: a row is an int32."""

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
"""Steps along lines, (rows, columns)."""


class RowLayout(BitLayout):
    """As BitLayout, with sets of stones of shape [..., rows], int32.

    cell_bits: [rows * columns, rows]. all_cells: all bits of one row. Raises ValueError for a board
    with too many columns.
    """

    def __init__(self, rows: int, columns: int, line: int) -> None:
        if columns > MAX_COLUMNS:
            raise ValueError(f"a board has at most {MAX_COLUMNS} columns, not {columns}")
        self.rows, self.columns, self.line = rows, columns, line
        self.num_bits = rows * columns
        self.column_bits = torch.ones((), dtype=torch.int32) << torch.arange(columns).int()
        cells = torch.eye(rows, dtype=torch.int32)[:, None] * self.column_bits[:, None]
        self.cell_bits = cells.reshape(rows * columns, rows)
        self.all_cells = 2**columns - 1

    def no_stones(self, batch: int, device: torch.device) -> Tensor:
        return torch.zeros(batch, self.rows, dtype=torch.int32, device=device)

    def spread(self, number: Tensor) -> Tensor:
        return number[:, None].repeat(1, self.rows)

    def is_empty(self, stones: Tensor) -> Tensor:
        return (stones == 0).all(-1)

    def is_full(self, stones: Tensor) -> Tensor:
        return (stones == self.all_cells).all(-1)

    def stones(self, cells: Tensor) -> Tensor:
        grid = cells.view(-1, self.rows, self.columns)
        return (grid * self.column_bits).sum(2, dtype=torch.int32)

    def contains(self, stones: Tensor) -> Tensor:
        return ((stones[..., None] & self.column_bits) != 0).flatten(-2)

    def planes(self, sides: Tensor) -> Tensor:
        return (sides[..., None] & self.column_bits).float().clamp_(max=1)

    def has_line(self, stones: Tensor) -> Tensor:
        lines = torch.zeros_like(stones)
        for down, right in DIRECTIONS:
            run, length = stones, 1  # the cells at which a run of this length begins
            while length < self.line:
                added = min(length, self.line - length)
                run = run & self._moved(run, added * down, added * right)
                length += added
            lines |= run
        return ~self.is_empty(lines)

    def completing_cells(self, stones: Tensor) -> Tensor:
        """Int32, shaped like stones: the cells that would complete a line of these stones."""
        cells, reach = torch.zeros_like(stones), self.line - 1
        for down, right in DIRECTIONS:
            # The stones at each distance along the line, from -reach to reach.
            near = {
                distance: self._moved(stones, distance * down, distance * right)
                for distance in range(-reach, reach + 1)
            }
            for first in range(-reach, 1):
                line = torch.full_like(stones, self.all_cells)
                for distance in range(first, first + self.line):
                    line = line & near[distance] if distance else line
                cells |= line
        return cells & self.all_cells

    def _moved(self, stones: Tensor, down: int, right: int) -> Tensor:
        """The cells from which one step leads to a stone; the step, in rows and columns."""
        moved = stones >> right if right >= 0 else (stones << -right) & self.all_cells
        if not down:
            return moved
        result, rows = torch.zeros_like(stones), self.rows
        if abs(down) < rows:
            start = max(-down, 0)
            part = moved[..., max(down, 0) : rows + min(down, 0)]
            result[..., start : start + part.shape[-1]] = part
        return result
