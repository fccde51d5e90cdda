"""Placing a fleet by hand, ship by ship."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.fleets.layouts import Fleet

NOT_A_LINE = "a ship lies on adjacent cells of one row or column"


class Placement:
    """A fleet on its way to the board. cells: the cells of each ship placed, by its index."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.board_format = board.lettered_format(fleet.rows, fleet.columns)
        self.cells: dict[int, list[int]] = {}

    @property
    def next_length(self) -> int | None:
        """The length of the longest ship yet to be placed, None once all are."""
        lengths = [n for ship, n in enumerate(self.fleet.ships) if ship not in self.cells]
        return max(lengths, default=None)

    def place(self, cells: list[int]) -> None:
        """Place a ship of this length on these cells. Raises ValueError with the reason."""
        rows = sorted({cell // self.fleet.columns for cell in cells})
        columns = sorted({cell % self.fleet.columns for cell in cells})
        is_straight = len(cells) == len(rows) * len(columns) and 1 in (len(rows), len(columns))
        is_whole = rows[-1] - rows[0] < len(rows) and columns[-1] - columns[0] < len(columns)
        if not (is_straight and is_whole):
            raise ValueError(NOT_A_LINE)
        if taken := {*cells} & {cell for ship in self.cells.values() for cell in ship}:
            names = " ".join(map(self.board_format.cell_name, sorted(taken)))
            raise ValueError(f"another ship lies on {names}")
        for ship, length in enumerate(self.fleet.ships):
            if length == len(cells) and ship not in self.cells:
                self.cells[ship] = sorted(cells)
                return
        raise ValueError(f"no ship of {len(cells)} is left to place")

    def open_places(self) -> dict[str, list[int]]:
        """By name, as in A1-A3: the cells of each place for the next ship."""
        length, columns = self.next_length or 0, self.fleet.columns
        taken = {cell for ship in self.cells.values() for cell in ship}
        places = {}
        for first in range(self.fleet.num_cells if length else 0):
            for step, room in ((1, columns - first % columns), (columns, self.fleet.num_cells)):
                cells = [*range(first, first + step * length, step)]
                fits = length <= room and cells[-1] < self.fleet.num_cells
                if fits and not taken & {*cells}:
                    ends = (cells[0], cells[-1])[:length]
                    places["-".join(map(self.board_format.cell_name, ends))] = cells
        return places

    def place_text(self, text: str) -> None:
        """Place a ship by the cells at its ends, as in A1-A4 or A1 A4; one cell for a ship of one.

        Raises ValueError with the reason.
        """
        columns = self.fleet.columns
        names = {self.board_format.cell_name(cell): cell for cell in range(self.fleet.num_cells)}
        ends = [word.upper() for word in re.split(r"[-\s,]+", text.strip()) if word]
        unknown = [word for word in ends if word not in names]
        if unknown or len(ends) not in (1, 2):
            what = f"{unknown[0]!r} is not a cell" if unknown else f"{text!r} is not a ship"
            raise ValueError(f"{what}; write its two ends, as in A1-A{self.next_length or 2}")
        first, last = sorted((names[ends[0]], names[ends[-1]]))
        is_across = first // columns == last // columns
        if not is_across and first % columns != last % columns:
            raise ValueError(NOT_A_LINE)
        self.place([*range(first, last + 1, 1 if is_across else columns)])

    def remove_last(self) -> None:
        """Take back the ship that was placed last, if any."""
        if self.cells:
            self.cells.popitem()

    def draw(self) -> str:
        """The board with the ships that are placed."""
        marks = ["#" if ship else "." for ship in self.layout().tolist()]
        return board.draw([board.split(marks, self.fleet.columns)], self.board_format)

    def layout(self) -> Tensor:
        """Uint8 [N]: the ships placed so far, numbered from 1 as the rules number them.

        Ships of equal length are numbered by their first cell, across before down, as in the lists
        of layouts.
        """
        columns, cells = self.fleet.columns, torch.zeros(self.fleet.num_cells, dtype=torch.uint8)

        def order(ship: list[int]) -> tuple[bool, int]:
            is_down = len(ship) > 1 and ship[1] - ship[0] == columns and columns > 1
            return is_down, ship[0]

        for length in {*self.fleet.ships}:
            ships = [n for n, each in enumerate(self.fleet.ships) if each == length]
            placed = sorted((self.cells[n] for n in ships if n in self.cells), key=order)
            for ship, where in zip(ships, placed, strict=False):
                cells[where] = ship + 1
        return cells
