"""How the tiles of 2048 slide: looked up on boards of up to four rows and columns, else computed.

B boards of N = rows * columns cells, row-major from the top; tiles are exponents, 0 for none.
Actions are 0 to 3: up, right, down, left. Nothing slides on a board that has no move left.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_TABLED_LENGTH = 4
"""Lines of up to so many cells are looked up, and so many of them side by side."""


class ComputedSlides:
    """Boards of any size."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    def to(self, device: torch.device | str) -> None:
        """It holds no tensors."""

    def open(self, tiles: Tensor) -> Tensor:
        """Bool [B, 4]: which actions change the boards, uint8 [B, N]."""
        grid = self._lanes(tiles)
        left, right = _can_slide(grid.transpose(0, 1))
        up, down = _can_slide(grid)
        return torch.stack([up, right, down, left], 1)

    def slide(self, tiles: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Uint8 [B, N], boards after actions, int64 [B]; float32 [B], the score that they made."""
        vertical = _bytes((action & 1) == 0)
        backward = _bytes((action == 1) | (action == 2))
        grid = self._lanes(tiles)
        down, gain_down = _slide_back(grid, backward)
        across, gain_across = _slide_back(grid.transpose(0, 1), backward)
        slid = _choose(vertical, down, across.transpose(0, 1))
        gain = torch.where(vertical != 0, gain_down, gain_across)
        return slid.reshape(len(tiles.T), -1).T, gain

    def _lanes(self, tiles: Tensor) -> Tensor:
        """Uint8 [rows, columns, B]: the batch last, so that cells are worked on in long rows."""
        return tiles.T.contiguous().view(self.rows, self.columns, -1)


class TabledSlides:
    """Boards of at most four rows and columns, with a row in its tables for all that a line of
    cells can hold while exponents are less than marks; larger ones are taken for the largest."""

    def __init__(self, rows: int, columns: int, marks: int) -> None:
        length, cells = max(rows, columns), rows * columns
        self._marks = marks
        count = torch.arange(marks**length)
        content = torch.stack([count // marks**place % marks for place in range(length)], 1)
        line = ComputedSlides(1, length)
        slid, gain = line.slide(content.to(torch.uint8), torch.full_like(count, 3))
        padded = torch.nn.functional.pad(slid, (0, MAX_TABLED_LENGTH - length)).contiguous()
        self._slid = padded.view(torch.int32)[:, 0]  # a line's cells as one number
        self._gain = gain
        self._open = line.open(content.to(torch.uint8))[:, 3].to(torch.uint8)
        # Lines as they are met in the direction of each action, the cell to slide to first.
        grid = torch.arange(cells).view(rows, columns)
        met = (grid.T, grid.flip(1), grid.flip(0).T, grid)
        weight = torch.zeros(cells, 4, MAX_TABLED_LENGTH)
        self._back = torch.zeros(4, cells, dtype=torch.int64)
        for action, lines in enumerate(met):
            for number, line_cells in enumerate(lines.tolist()):
                for place, cell in enumerate(line_cells):
                    weight[cell, action, number] = marks**place
                    self._back[action, cell] = MAX_TABLED_LENGTH * number + place
        self._weight = weight.flatten(1)

    def to(self, device: torch.device | str) -> None:
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))

    def open(self, tiles: Tensor) -> Tensor:
        """As Computed does."""
        code = self._codes(tiles).int().view(-1)
        # The bytes of an action's four lines as one number.
        return self._open.index_select(0, code).view(torch.int32).view(-1, 4) != 0

    def slide(self, tiles: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """As Computed does."""
        codes = self._codes(tiles)
        own = torch.arange(0, len(codes), 4, device=action.device) + action
        code = codes.index_select(0, own).int().view(-1)
        lines = (
            self._slid.index_select(0, code)
            .view(torch.uint8)
            .view(-1, MAX_TABLED_LENGTH * MAX_TABLED_LENGTH)
        )
        gain = self._gain.index_select(0, code).view(-1, MAX_TABLED_LENGTH).sum(1)
        return lines.gather(1, self._back.index_select(0, action)), gain

    def _codes(self, tiles: Tensor) -> Tensor:
        """Float32 [B * 4, LINE]: the lines that each action meets, by their rows in the tables."""
        # Sums of products of floats are exact here, and many times as fast as of whole numbers.
        return (tiles.clamp(max=self._marks - 1).float() @ self._weight).view(-1, MAX_TABLED_LENGTH)


def _bytes(mask: Tensor) -> Tensor:
    """Uint8: all bits set where mask, bool, is true."""
    return mask.to(torch.uint8).neg_()


def _choose(mask: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """torch.where for uint8 and a mask by _bytes; seven times as fast."""
    return other ^ ((one ^ other) & mask)


def _any(lines: Tensor) -> Tensor:
    """Bool [B]: whether anything in bool [n, m, B] is true; any() is ten times as slow."""
    return lines.view(torch.uint8).amax((0, 1)).view(torch.bool)


def _can_slide(lines: Tensor) -> tuple[Tensor, Tensor]:
    """Bool [B] twice: whether tiles can move to the front, and to the back, of any line.

    lines: uint8 [n, m, B], m lines of n cells.
    """
    if len(lines) == 1:
        never = torch.zeros(lines.shape[2], dtype=torch.bool, device=lines.device)
        return never, never
    front, back = lines[:-1], lines[1:]
    full = front != 0
    merge = _any((front == back) & full)
    behind = back != 0
    return _any(behind & ~full) | merge, _any(full & ~behind) | merge


def _slide_back(lines: Tensor, backward: Tensor) -> tuple[Tensor, Tensor]:
    """Slide lines to their front or, where backward is all ones, to their back."""
    lines, gain = _slide(_choose(backward, lines.flip(0), lines))
    return _choose(backward, lines.flip(0), lines), gain


def _slide(lines: Tensor) -> tuple[Tensor, Tensor]:
    """Slide every line to its front: uint8 [n, m, B] again, and the score made, float32 [B]."""
    cells = _close_up(list(lines))
    gain = torch.zeros(lines.shape[1:], dtype=torch.int64, device=lines.device)
    for at in range(len(cells) - 1):
        equal = ((cells[at] == cells[at + 1]) & (cells[at] != 0)).view(torch.uint8)
        cells[at] = cells[at] + equal
        cells[at + 1] = cells[at + 1] * (1 - equal)
        gain = gain + (equal.long() << cells[at])
    return torch.stack(_close_up(cells)), gain.sum(0).float()


def _close_up(cells: list[Tensor]) -> list[Tensor]:
    """Move empty cells behind tiles, keeping the tiles' order."""
    cells = list(cells)
    for end in range(len(cells) - 1, 0, -1):
        for at in range(end):
            step = cells[at + 1] * (cells[at] == 0)
            cells[at], cells[at + 1] = cells[at] + step, cells[at + 1] - step
    return cells
