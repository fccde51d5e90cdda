"""Breakthrough, a race of pieces that move forward only, on boards of up to 64 cells.

A piece moves one cell straight or diagonally forward, to an empty cell, and captures a piece of the
other seat diagonally only. The seat that reaches the last row, or captures all pieces, wins.

    4 O O O O
    3 . . . .      X  pieces of the first seat, which move up
    2 . . . .      O  pieces of the second seat, which move down
    1 X X X X
      a b c d

Words: the pieces of the seat to move and of the other seat, both as the seat to move sees them, who
moves up: for the second seat the board is turned by 180 degrees. Bit c is cell c in row-major order
from the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlgames.games import board_text
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Symmetric
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries
from rlgames.kernels.rules import Played, Position, implement, set_up
from rlgames.kernels.words import Array, compiled

U = np.uint64
MAX_CELLS = 64

CAPTURE = "x"
"""Between the two cells in the name of a capture."""


class BreakthroughRules(NamedTuple):
    """targets: int64 [actions], the cell that an action moves to; its own one beyond the edges.
    left: the cells of the first column."""

    start: tuple[int, ...]
    actions: int
    targets: Array
    columns: int
    left: int


@compiled
def turned(pieces: np.uint64, cells: int) -> np.uint64:
    """The board turned by 180 degrees: its bits in reverse order."""
    low = U(0x5555555555555555)
    pieces = ((pieces >> U(1)) & low) | ((pieces & low) << U(1))
    low = U(0x3333333333333333)
    pieces = ((pieces >> U(2)) & low) | ((pieces & low) << U(2))
    low = U(0x0F0F0F0F0F0F0F0F)
    pieces = ((pieces >> U(4)) & low) | ((pieces & low) << U(4))
    low = U(0x00FF00FF00FF00FF)
    pieces = ((pieces >> U(8)) & low) | ((pieces & low) << U(8))
    low = U(0x0000FFFF0000FFFF)
    pieces = ((pieces >> U(16)) & low) | ((pieces & low) << U(16))
    pieces = (pieces >> U(32)) | (pieces << U(32))
    return pieces >> U(MAX_CELLS - cells)


@compiled
def play(rules: BreakthroughRules, position: Position, action: int) -> Played:
    target, cells = rules.targets[action], rules.actions // 3
    moved = U(1) << U(target)
    own = (U(position[0]) & ~(U(1) << U(action // 3))) | moved
    other = U(position[1]) & ~moved
    won = target < rules.columns or other == U(0)
    after = (np.int64(turned(other, cells)), np.int64(turned(own, cells)))
    return after, won, np.float32(won)


@compiled
def is_legal(rules: BreakthroughRules, position: Position, action: int) -> bool:
    cell, target = action // 3, rules.targets[action]
    own, other = U(position[0]), U(position[1])
    taken = own if action % 3 != 1 else own | other  # captures are diagonal
    is_own = (own >> U(cell)) & U(1)
    return bool(is_own and target != cell and not (taken >> U(target)) & U(1))


@compiled
def mobility(rules: BreakthroughRules, position: Position) -> int:
    count = 0
    for action in range(rules.actions):
        count += is_legal(rules, position, action)
    return count


@compiled
def mirrored(rules: BreakthroughRules, pieces: np.uint64) -> np.uint64:
    """The board with left and right exchanged."""
    result, last = U(0), rules.columns - 1
    for column in range(rules.columns):
        result |= ((pieces >> U(column)) & U(rules.left)) << U(last - column)
    return result


@compiled
def canonical(rules: BreakthroughRules, position: Position) -> Position:
    own = np.int64(mirrored(rules, U(position[0])))
    if own > position[0]:
        return position
    other = np.int64(mirrored(rules, U(position[1])))
    return (own, min(other, position[1])) if own == position[0] else (own, other)


@compiled
def observe(rules: BreakthroughRules, position: Position, planes: Array) -> None:
    cells, own, other = rules.actions // 3, U(position[0]), U(position[1])
    for cell in range(cells):
        planes[cell] = np.float32((own >> U(cell)) & U(1))
        planes[cells + cell] = np.float32((other >> U(cell)) & U(1))


@compiled
def judged(rules: BreakthroughRules, position: Position) -> Played:
    arrived = U(position[1]) >> U(rules.actions // 3 - rules.columns)
    won = position[0] == 0 or arrived != U(0)
    return position, won, np.float32(won)


implement(BreakthroughRules, play, is_legal, mobility, canonical, observe, judged)


def make_rules(rows: int, columns: int, home_rows: int) -> BreakthroughRules:
    """The rules on a board of this size."""
    cell = np.arange(rows * columns)
    row, column = np.divmod(cell, columns)
    target_column = column[:, None] + np.arange(-1, 2)
    inside = (row > 0)[:, None] & (target_column >= 0) & (target_column < columns)
    targets = np.where(inside, (row[:, None] - 1) * columns + target_column, cell[:, None])
    is_home = row >= rows - home_rows
    cells = np.where(is_home, 1, np.where(is_home[::-1], 2, 0))
    left = sum(1 << first for first in range(0, len(cell), columns))
    rules = BreakthroughRules((0, 0), 3 * len(cell), targets.reshape(-1), columns, left)
    return rules._replace(start=set_up(rules, cells)[0])


class Breakthrough(BoardGame, Symmetric):
    """rows × columns cells, home_rows rows of pieces for each seat.

    Action 3 * c + d moves the piece on cell c left, straight or right, as the seat to move sees it.
    Raises ValueError for too many home_rows, and for boards that are too large.
    """

    has_draws = False
    how_to_play = (
        "X moves up, O down, straight or diagonally; captures are diagonal; who reaches the last "
        "row wins"
    )

    def __init__(self, rows: int, columns: int, home_rows: int, name: str = "breakthrough") -> None:
        cells = rows * columns
        if 2 * home_rows > rows:
            raise ValueError(f"home_rows={home_rows} is more than half of rows={rows}")
        if cells > MAX_CELLS:
            raise ValueError(
                f"a board of {rows}x{columns} has {cells} cells, and {MAX_CELLS} is the most"
            )
        self.rows, self.columns = rows, columns
        self.rules = make_rules(rows, columns, home_rows)
        self.second_view = torch.arange(cells).flip(0)
        # Int64 [N]: rows from each cell to the last one, the top.
        self.remaining_rows = torch.arange(cells) // columns
        home = self.remaining_rows[cells - home_rows * columns :]
        # Int64: how far a number of pieces can be ahead of the lowest at the start, in rows.
        self.head_starts = torch.tensor([0, *accumulate((rows - 1 - home).tolist())])
        self.start_depth = 2 * int(home.sum())
        self.spec = Spec(
            name=name,
            seats=2,
            actions=3 * cells,
            observation=(2, rows, columns),
            has_cell_actions=False,
            # No piece but the last one to move enters the last row.
            max_plies=self.start_depth - 2 * len(home) + 1,
            max_positions=2 * count_boards(3, cells),
            goal="outcome",
        )

    # Positions

    def pieces(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Int64 [B, 2]: the number of pieces of each seat, and the rows from all of them to the
        last one. cells: int64 [B, N]."""
        sides = torch.stack([cells == 1, (cells == 2).flip(1)], 1)
        return sides.sum(2), (sides * self.remaining_rows).sum(2)

    def turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        count, to_go = self.pieces(cells)
        head_start = self.head_starts[count.clamp(max=len(self.head_starts) - 1)]
        moved = (count * (self.rows - 1) - to_go - head_start).clamp(min=0).sum(1)
        return moved + ((moved + seat) & 1)

    def depth(self, state: BoardState) -> Tensor:
        # A move and a capture each leave fewer rows to go.
        _, to_go = self.pieces(self.cells(state).flatten(1))
        return self.start_depth - to_go.sum(1)

    def is_valid(self, state: BoardState) -> Tensor:
        count, to_go = self.pieces(self.cells(state).flatten(1))
        moves_left = (to_go - count).sum(1) + 1
        can_continue = state.turn + moves_left <= self.spec.max_plies
        has_pieces = (count < len(self.head_starts)).all(1)
        return super().is_valid(state) & has_pieces & (state.done | can_continue)

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns, upright=True)

    def action_symmetries(self) -> Tensor:
        cells = self.symmetries()
        actions = 3 * cells[:, :, None] + torch.arange(3)
        is_mirrored = cells[:, :1, None] != 0
        return torch.where(is_mirrored, actions.flip(2), actions).flatten(1)

    # Text

    @cached_property
    def board_format(self) -> board_text.BoardFormat:
        labels = board_text.lettered_format(self.rows, self.columns)
        letters = [letter.lower() for letter in labels.above]
        return replace(labels, left=labels.left[::-1], above=[], below=letters)

    def parse_all(self, texts: Sequence[str]) -> BoardState:
        state = super().parse_all(texts)
        if not bool(self.is_valid(state).all()):
            raise ValueError("the seats did not take turns")
        return state

    def check_parsed(self, cells: Tensor, state: BoardState, other: BoardState) -> None:
        most = len(self.head_starts) - 1
        if bool((self.pieces(cells)[0] > most).any()):
            raise ValueError(f"a seat has no more than {most} pieces")
        super().check_parsed(cells, state, other)

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        cell, target = action // 3, int(self.rules.targets[action])
        between = CAPTURE if (int(state.words[row, 1]) >> target) & 1 else ""
        last = len(self.remaining_rows) - 1
        seen = [last - each if int(state.current_seat[row]) else each for each in (cell, target)]
        return between.join(map(self.board_format.cell_name, seen))

    def plain_name(self, name: str) -> str:
        """Moves and captures may also be written a2-a3, a2xb3, a2b3 or, as in OpenSpiel, a2b3*."""
        return name.strip().lower().replace("-", "").replace("*", "").replace(CAPTURE, "")
