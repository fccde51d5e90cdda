"""Breakthrough, a race of pieces that move forward only, on boards of any size.

A piece moves one cell straight or diagonally forward, to an empty cell, and captures a piece of the
other seat diagonally only. The seat that reaches the last row, or captures all pieces, wins.

    4 O O O O
    3 . . . .      X  pieces of the first seat, which move up
    2 . . . .      O  pieces of the second seat, which move down
    1 X X X X
      a b c d

Positions are stored, observed and numbered as the seat to move sees them, who moves up: for the
second seat the board is turned by 180 degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.capabilities import Compiled
from rlgames.games.compiled import (
    CompiledRules,
    pack_cells,
    unpack_cells,
)
from rlgames.games.game import Spec, State
from rlgames.games.state import count_boards
from rlgames.games.stones import StoneGame, check_game_over
from rlgames.games.symmetry import board_symmetries

LEFT, STRAIGHT, RIGHT = range(3)
"""Where a piece moves forward, as its seat sees it."""

MAX_COMPILED_CELLS = 64
"""Kernels play on boards of up to this many cells."""

CAPTURE = "x"
"""Between the two cells in the name of a capture."""


@dataclass(frozen=True)
class BreakthroughState(State):
    """own, other: bool [B, N], the pieces of the seat to move and of the other, as it sees them."""

    own: Tensor
    other: Tensor


class Breakthrough(StoneGame[BreakthroughState]):
    """rows × columns cells, home_rows rows of pieces for each seat.

    Action 3 * c + d moves the piece on cell c in direction d, both as the seat to move sees them.
    Raises ValueError where home_rows do not fit.
    """

    def __init__(self, rows: int, columns: int, home_rows: int, name: str = "breakthrough") -> None:
        if 2 * home_rows > rows:
            raise ValueError(f"home_rows={home_rows} is more than half of rows={rows}")
        self.rows, self.columns, self.num_cells = rows, columns, rows * columns
        cell = torch.arange(self.num_cells)
        row, column = cell // columns, cell % columns
        target_column = column[:, None] + torch.arange(-1, 2)
        inside = (row > 0)[:, None] & (target_column >= 0) & (target_column < columns)
        targets = torch.where(inside, (row[:, None] - 1) * columns + target_column, cell[:, None])
        # Int64 [A]: the cell that an action moves to; its own one beyond the edges.
        self.targets = targets.reshape(-1)
        self.is_home = row >= rows - home_rows
        # Int64 [N]: rows from each cell to the last one, the top.
        self.remaining_rows = row
        starts = sorted((rows - 1 - row[self.is_home]).tolist(), reverse=True)
        # Int64: the most rows by which a number of pieces can lie above the lowest at the start.
        self.head_starts = torch.tensor([0, *accumulate(starts)])
        self.start_depth = 2 * int(row[self.is_home].sum())
        self.spec = Spec(
            name=name,
            seats=2,
            actions=3 * self.num_cells,
            observation=(2, rows, columns),
            has_cell_actions=False,
            # No piece but the last one to move enters the last row.
            max_plies=self.start_depth - 2 * home_rows * columns + 1,
            max_positions=2 * count_boards(3, self.num_cells),
            goal="outcome",
        )
        if self.num_cells > MAX_COMPILED_CELLS:
            self.lacks[Compiled] = f"its board has more than {MAX_COMPILED_CELLS} cells"

    def initial(self, batch: int, rng: torch.Generator) -> BreakthroughState:
        own = self.is_home.to(rng.device).repeat(batch, 1)
        return BreakthroughState.start(batch, 2, rng.device, own=own, other=own.flip(1))

    # Moves

    def legal_action_mask(self, state: BreakthroughState) -> Tensor:
        shape = (-1, self.rows, self.columns)
        own, other = state.own.view(shape), state.other.view(shape)
        diagonal, straight = ~own[:, :-1], ~(own | other)[:, :-1]
        legal = own.new_zeros(*own.shape, 3)
        legal[:, 1:, 1:, LEFT] = own[:, 1:, 1:] & diagonal[:, :, :-1]
        legal[:, 1:, :, STRAIGHT] = own[:, 1:] & straight
        legal[:, 1:, :-1, RIGHT] = own[:, 1:, :-1] & diagonal[:, :, 1:]
        return legal.flatten(1) | state.done[:, None]

    def apply_action(self, state: BreakthroughState, action: Tensor) -> BreakthroughState:
        live, seat = ~state.done, state.current_seat
        cell, target = action // 3, self.targets.index_select(0, action)
        own = state.own.scatter(1, cell[:, None], False).scatter(1, target[:, None], True)
        other = state.other.scatter(1, target[:, None], False)
        won = live & ((target < self.columns) | ~other.any(1))
        first = (1.0 - 2.0 * seat) * won
        return BreakthroughState(
            done=state.done | won,
            current_seat=seat ^ live.long(),
            turn=state.turn + live,
            score=state.score + torch.stack([first, -first], 1),
            own=torch.where(live[:, None], other.flip(1), state.own),
            other=torch.where(live[:, None], own.flip(1), state.other),
        )

    def compiled_rules(self) -> CompiledBreakthrough:
        return CompiledBreakthrough(self)

    # Positions

    def observe(self, state: BreakthroughState) -> Tensor:
        # Bytes are converted to floats several times as fast as bools.
        planes = torch.stack([state.own, state.other], 1).view(torch.uint8)
        return planes.float().view(-1, *self.spec.observation)

    def cells(self, state: BreakthroughState) -> Tensor:
        """Int64 [B, rows, columns] as the first seat sees them, from the top: 0 empty, 1 of the
        first seat, 2 of the second."""
        is_first = (state.current_seat == 0)[:, None]
        first = torch.where(is_first, state.own, state.other.flip(1))
        second = torch.where(is_first, state.other, state.own.flip(1))
        return (first.long() + 2 * second).view(-1, self.rows, self.columns)

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> BreakthroughState:
        """Live positions."""
        first, second, is_first = cells == 1, cells == 2, (seat == 0)[:, None]
        own = torch.where(is_first, first, second.flip(1))
        other = torch.where(is_first, second, first.flip(1))
        moved = self.rows_moved(own) + self.rows_moved(other.flip(1))
        turn = moved + ((moved + seat) & 1)
        fields = {"current_seat": seat, "turn": turn, "own": own, "other": other}
        return BreakthroughState.start(len(own), 2, own.device, **fields)

    def rows_moved(self, pieces: Tensor) -> Tensor:
        """Int64 [B]: by how many rows the pieces of a seat have moved at least; bool [B, N] as it
        sees them, no more of them than at the start."""
        count = pieces.sum(1)
        advance = count * (self.rows - 1) - self.rows_to_go(pieces)
        return (advance - self.head_starts.index_select(0, count)).clamp(min=0)

    def rows_to_go(self, pieces: Tensor) -> Tensor:
        """Int64 [B]: the rows from all pieces of a seat, bool [B, N] as it sees them, to the last
        one."""
        return (pieces * self.remaining_rows).sum(1)

    def depth(self, state: BreakthroughState) -> Tensor:
        # A move and a capture each leave fewer rows to go.
        to_go = self.rows_to_go(state.own) + self.rows_to_go(state.other.flip(1))
        return self.start_depth - to_go

    def is_valid(self, state: BreakthroughState) -> Tensor:
        own, other = state.own, state.other.flip(1)
        num_own, num_other = own.sum(1), other.sum(1)
        num_home = int(self.is_home.sum())
        arrived = (own | other)[:, : self.columns].any(1)
        moves_left = self.rows_to_go(own) + self.rows_to_go(other) - num_own - num_other + 1
        can_continue = (
            (num_own > 0)
            & (num_other > 0)
            & ~arrived
            & (state.turn + moves_left <= self.spec.max_plies)
        )
        return (
            super().is_valid(state)
            & ~(own & state.other).any(1)
            & (num_own <= num_home)
            & (num_other <= num_home)
            & (state.done | can_continue)
        )

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns, upright=True)

    def action_symmetries(self) -> Tensor:
        cells = self.symmetries()
        actions = 3 * cells[:, :, None] + torch.arange(3)
        is_mirrored = cells[:, :1, None] != 0
        return torch.where(is_mirrored, actions.flip(2), actions).flatten(1)

    # Text

    how_to_play = (
        "X moves up, O down, straight or diagonally; captures are diagonal; who reaches the last "
        "row wins"
    )

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        labels = games_board.lettered_format(self.rows, self.columns)
        letters = [letter.lower() for letter in labels.above]
        return replace(labels, left=labels.left[::-1], above=[], below=letters)

    def parse_all(self, texts: Sequence[str]) -> BreakthroughState:
        cells, to_move = self.read_stones(texts)
        first, second = cells == 1, cells == 2
        num_home = int(self.is_home.sum())
        if bool((first.sum(1) > num_home).any() | (second.sum(1) > num_home).any()):
            raise ValueError(f"a seat has no more than {num_home} pieces")
        first_won = first[:, : self.columns].any(1) | ~second.any(1)
        second_won = second[:, -self.columns :].any(1) | ~first.any(1)
        if bool((first_won & second_won).any()):
            raise ValueError("only one seat can win")
        done = first_won | second_won
        check_game_over(to_move, done)
        # The winner has moved last.
        seat = torch.where(done, first_won.long(), to_move % 2)
        state = self.state_from_cells(cells, seat)
        score = first_won.float() - second_won.float()
        state = replace(state, done=done, score=torch.stack([score, -score], 1))
        if not bool(self.is_valid(state).all()):
            raise ValueError("the seats did not take turns")
        return state

    def action_to_string(self, state: BreakthroughState, row: int, action: int) -> str:
        cell, target = action // 3, int(self.targets[action])
        between = CAPTURE if bool(state.other[row, target]) else ""
        last = self.num_cells - 1
        seen = [last - each if int(state.current_seat[row]) else each for each in (cell, target)]
        return between.join(map(self.board_format.cell_name, seen))

    def plain_name(self, name: str) -> str:
        """Moves and captures may also be written a2-a3, a2xb3, a2b3 or, as in OpenSpiel, a2b3*."""
        return name.strip().lower().replace("-", "").replace("*", "").replace(CAPTURE, "")


class CompiledBreakthrough(CompiledRules[BreakthroughState]):
    """Words: own, other."""

    has_draws = False

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.breakthrough import BreakthroughRules

        game = self.game
        start, targets = self.words_of(game.example_state()), game.targets.cpu().numpy()
        return BreakthroughRules(start, game.spec.actions, targets, game.columns)

    def pack(self, state: BreakthroughState) -> Tensor:
        return torch.cat([pack_cells(state.own), pack_cells(state.other)], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> BreakthroughState:
        own, other = (unpack_cells(each, self.game.num_cells) for each in words.split(1, 1))
        return BreakthroughState(**fields, own=own, other=other)
