"""How the tiles of 2048 slide: looked up on boards of up to four rows and columns, else computed.

B boards of N = rows * columns cells, row-major from the top; tiles are exponents, 0 for empty
cells. Actions are 0 to 3: up, right, down, left.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from rlgames.games.state import Tables

MAX_TABLED_LENGTH = 4
"""The most cells of a line, and lines of a board, that are looked up."""


class ComputedSlides(Tables):
    """Slides boards of any size."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    def legal_actions(self, tiles: Tensor) -> Tensor:
        """Bool [B, 4]: which actions change the boards, uint8 [B, N]."""
        grid = self._lanes(tiles)
        left, right = _can_slide(grid.transpose(0, 1))
        up, down = _can_slide(grid)
        return torch.stack([up, right, down, left], 1)

    def slide(self, tiles: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Uint8 [B, N], the boards after actions, int64 [B]; float32 [B], the score they made."""
        is_vertical = _byte_mask((action & 1) == 0)
        is_reversed = _byte_mask((action == 1) | (action == 2))
        grid = self._lanes(tiles)
        vertical, vertical_score = _slide_either_way(grid, is_reversed)
        across, across_score = _slide_either_way(grid.transpose(0, 1), is_reversed)
        slid = _where(is_vertical, vertical, across.transpose(0, 1))
        score = torch.where(is_vertical != 0, vertical_score, across_score)
        return slid.reshape(len(tiles.T), -1).T, score

    def _lanes(self, tiles: Tensor) -> Tensor:
        """Uint8 [rows, columns, B]: the batch last, for operations on long contiguous rows."""
        return tiles.T.contiguous().view(self.rows, self.columns, -1)


class TabledSlides(Tables):
    """Slides boards of at most four rows and columns by tables of all lines of cells.

    A line's row in the tables is its code: its exponents as digits of base cell_values, the cell to
    slide to first. Exponents of cell_values and more count as the largest digit.
    """

    def __init__(self, rows: int, columns: int, cell_values: int) -> None:
        length, cells = max(rows, columns), rows * columns
        self._cell_values = cell_values
        codes = torch.arange(cell_values**length)
        digits = [codes // cell_values**place % cell_values for place in range(length)]
        content = torch.stack(digits, 1).to(torch.uint8)
        line = ComputedSlides(1, length)
        slid, self._score = line.slide(content, torch.full_like(codes, 3))
        padded = torch.nn.functional.pad(slid, (0, MAX_TABLED_LENGTH - length)).contiguous()
        self._slid = padded.view(torch.int32)[:, 0]  # the four bytes of a line as one number
        self._can_slide = line.legal_actions(content)[:, 3].to(torch.uint8)
        # The lines of each action, with the cell to slide to first.
        grid = torch.arange(cells).view(rows, columns)
        lines_of_actions = (grid.T, grid.flip(1), grid.flip(0).T, grid)
        weight = torch.zeros(cells, 4, MAX_TABLED_LENGTH)
        self._place = torch.zeros(4, cells, dtype=torch.int64)  # of each cell in the lines
        for action, lines in enumerate(lines_of_actions):
            for number, line_cells in enumerate(lines.tolist()):
                for place, cell in enumerate(line_cells):
                    weight[cell, action, number] = cell_values**place
                    self._place[action, cell] = MAX_TABLED_LENGTH * number + place
        self._weight = weight.flatten(1)

    def legal_actions(self, tiles: Tensor) -> Tensor:
        """As in ComputedSlides."""
        code = self._codes(tiles).int().view(-1)
        # The bytes of an action's four lines as one number.
        return self._can_slide.index_select(0, code).view(torch.int32).view(-1, 4) != 0

    def slide(self, tiles: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """As in ComputedSlides."""
        codes = self._codes(tiles)
        row = torch.arange(0, len(codes), 4, device=action.device) + action
        code = codes.index_select(0, row).int().view(-1)
        lines = (
            self._slid.index_select(0, code)
            .view(torch.uint8)
            .view(-1, MAX_TABLED_LENGTH * MAX_TABLED_LENGTH)
        )
        score = self._score.index_select(0, code).view(-1, MAX_TABLED_LENGTH).sum(1)
        return lines.gather(1, self._place.index_select(0, action)), score

    def _codes(self, tiles: Tensor) -> Tensor:
        """Float32 [B * 4, MAX_TABLED_LENGTH]: the codes of the lines of each action."""
        # A matrix product of floats is exact here, and many times as fast as one of integers.
        digits = tiles.clamp(max=self._cell_values - 1).float()
        return (digits @ self._weight).view(-1, MAX_TABLED_LENGTH)


@cache
def packed_slides(length: int, max_exponent: int) -> Tensor:
    """Int64 [65536], by the bits of a line of at most four cells, with four bits each: bits 0 to 15
    are the line slid to its front, bits 16 to 31 to its back, and the rest the points of either.

    Larger exponents than max_exponent count as this one.
    """
    shifts = 4 * torch.arange(length)
    codes = torch.arange(1 << (4 * length))
    content, line = (codes[:, None] >> shifts & 15).to(torch.uint8), ComputedSlides(1, length)
    table = torch.zeros(1 << (4 * MAX_TABLED_LENGTH), dtype=torch.int64)
    for action, shift in ((3, 0), (1, 16)):
        slid, score = line.slide(content, torch.full_like(codes, action))
        packed = (slid.clamp(max=max_exponent).long() << shifts).sum(1)
        table[: len(codes)] |= packed << shift | score.long() << 32
    return table


def _byte_mask(mask: Tensor) -> Tensor:
    """Uint8: all bits set where mask, bool, is true."""
    return mask.to(torch.uint8).neg_()


def _where(byte_mask: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """torch.where for uint8; seven times as fast."""
    return other ^ ((one ^ other) & byte_mask)


def _any(lines: Tensor) -> Tensor:
    """Bool [B]: whether anything in bool [n, m, B] is true; ten times as fast as any()."""
    return lines.view(torch.uint8).amax((0, 1)).view(torch.bool)


def _can_slide(lines: Tensor) -> tuple[Tensor, Tensor]:
    """Bool [B] twice: whether tiles can move to the front, and to the back, of any line.

    lines: uint8 [n, m, B], m lines of n cells.
    """
    if len(lines) == 1:
        never = torch.zeros(lines.shape[2], dtype=torch.bool, device=lines.device)
        return never, never
    front, back = lines[:-1], lines[1:]
    has_front, has_back = front != 0, back != 0
    can_merge = _any((front == back) & has_front)
    return _any(has_back & ~has_front) | can_merge, _any(has_front & ~has_back) | can_merge


def _slide_either_way(lines: Tensor, is_reversed: Tensor) -> tuple[Tensor, Tensor]:
    """Slide lines to their front or, where the byte mask is_reversed is set, to their back."""
    lines, score = _slide(_where(is_reversed, lines.flip(0), lines))
    return _where(is_reversed, lines.flip(0), lines), score


def _slide(lines: Tensor) -> tuple[Tensor, Tensor]:
    """Slide every line to its front: uint8 [n, m, B], and the score made, float32 [B]."""
    cells = _close_gaps(list(lines))
    score = torch.zeros(lines.shape[1:], dtype=torch.int64, device=lines.device)
    for at in range(len(cells) - 1):
        equal = ((cells[at] == cells[at + 1]) & (cells[at] != 0)).view(torch.uint8)
        cells[at] = cells[at] + equal
        cells[at + 1] = cells[at + 1] * (1 - equal)
        score = score + (equal.long() << cells[at])
    return torch.stack(_close_gaps(cells)), score.sum(0).float()


def _close_gaps(cells: list[Tensor]) -> list[Tensor]:
    """Move empty cells behind the tiles, whose order stays the same."""
    cells = list(cells)
    for end in range(len(cells) - 1, 0, -1):
        for at in range(end):
            moved = cells[at + 1] * (cells[at] == 0)
            cells[at], cells[at + 1] = cells[at] + moved, cells[at + 1] - moved
    return cells
