"""k in a row, with or without gravity: tic-tac-toe, Connect 4, Gomoku, and boards of other sizes.

Two seats take turns. The first to have a whole line across, down or diagonally wins; a full board
is a draw. With gravity an action is a column, and the stone falls to its lowest empty cell; without
it an action is a cell, in row-major order from the top.

    . . . . . . .
    . . . X . . .      X  stones of the first seat
    . . O X . . .      O  stones of the second seat
    . O X X . . O
    1 2 3 4 5 6 7

A set of stones is one number, with a bit for each cell; rlgames/games/bit_layout.py draws the bits.
On large boards without gravity it is a number for each row, see rlgames/games/row_layout.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.bit_layout import MAX_BITS, BitLayout
from rlgames.games.capabilities import ExactKey
from rlgames.games.compiled import CompiledRules, pack_cells, unpack_cells
from rlgames.games.game import Spec, State
from rlgames.games.row_layout import RowLayout
from rlgames.games.state import count_boards
from rlgames.games.stones import StoneGame
from rlgames.games.subsets import all_subsets
from rlgames.games.symmetry import board_symmetries


@dataclass(frozen=True)
class KInARowState(State):
    """own: [B], the stones of the seat to move as bits. occupied: [B], all stones. Both are int32
    if the layout has tables, else int64; or int32 [B, rows], if it has a number for each row."""

    own: Tensor
    occupied: Tensor


class KInARow(StoneGame[KInARowState]):
    """rows × columns cells, line stones in a row win, gravity makes stones fall.

    Raises ValueError for a line that does not fit and for a board that needs too many bits.
    """

    def __init__(
        self, rows: int, columns: int, line: int, gravity: bool, name: str = "lines"
    ) -> None:
        longest = max(rows, columns)
        if line > longest:
            raise ValueError(
                f"line={line} does not fit on a board of {rows}x{columns}; "
                f"the longest that does is {longest}"
            )
        self.rows, self.columns, self.line, self.gravity = rows, columns, line, gravity
        self.has_rows = not gravity and rows * (columns + 1) > MAX_BITS
        self.layout = (
            RowLayout(rows, columns, line)
            if self.has_rows
            else BitLayout(rows, columns, line, gravity)
        )
        # An action is legal while this bit is empty.
        self._action_bits = self.layout.top_bits if gravity else self.layout.cell_bits
        # Rows: no line (twice), a line of the first seat, of the second. An int64 holds the two
        # floats of a row, as taking one number is three times as fast as taking two.
        payoffs = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0], [-1.0, 1.0]])
        self._payoffs = payoffs.view(torch.int64)[:, 0]
        if not gravity and 2 * self.layout.num_bits > 63:
            self.lacks[ExactKey] = "two sets of its cells do not fit in 63 bits"
        self.spec = Spec(
            name=name,
            seats=2,
            actions=columns if gravity else rows * columns,
            observation=(2, rows, columns),
            has_cell_actions=not gravity,
            max_plies=rows * columns,
            max_positions=count_boards(3, rows * columns),
            goal="outcome",
        )

    def initial(self, batch: int, rng: torch.Generator) -> KInARowState:
        no_stones = self.layout.no_stones(batch, rng.device)
        return KInARowState.start(batch, 2, rng.device, own=no_stones, occupied=no_stones)

    def legal_action_mask(self, state: KInARowState) -> Tensor:
        if self.has_rows:
            return ~self.layout.contains(state.occupied) | state.done[:, None]
        occupied = torch.where(state.done, 0, state.occupied)
        return (occupied[:, None] & self._action_bits) == 0

    def sample_legal_action(self, state: KInARowState, u: Tensor) -> Tensor:
        layout = self.layout
        if self.gravity and layout.gather_factor:
            open_columns = layout.open_columns(state.occupied)
            return all_subsets(self.columns, u.device).pick(open_columns, u)
        if layout.plane_table is None:  # too many cells for a table of all sets
            return super().sample_legal_action(state, u)
        empty = state.occupied ^ layout.all_cells
        return all_subsets(layout.num_bits, u.device).pick(empty, u)

    def apply_action(self, state: KInARowState, action: Tensor) -> KInARowState:
        layout = self.layout
        live = ~state.done
        moves = live.long()
        # All bits of a live row, none of a finished one.
        live_bits = layout.spread(-moves.to(layout.cell_bits.dtype))
        if self.gravity:
            stone = layout.bottom_bits.index_select(0, action).add_(state.occupied)
            stone &= layout.column_masks.index_select(0, action)
        else:
            stone = layout.cell_bits.index_select(0, action)
        stone &= live_bits
        won = layout.has_line(state.own | stone).logical_and_(live)
        occupied = stone.bitwise_or_(state.occupied)
        live_bits &= state.occupied
        return replace(
            state,
            done=layout.is_full(occupied).logical_or_(won).logical_or_(state.done),
            current_seat=state.current_seat ^ moves,
            score=self._payoff(won, state.current_seat).add_(state.score),
            own=live_bits.bitwise_xor_(state.own),
            occupied=occupied,
            turn=moves.add_(state.turn),
        )

    def _payoff(self, won: Tensor, seat: Tensor) -> Tensor:
        """Float32 [B, 2] from bool [B], whether there is a line, and int64 [B], whose."""
        # A sum is faster than torch.where, whose branches follow no pattern.
        index = torch.add(seat, won.long(), alpha=2)
        return self._payoffs.index_select(0, index).view(torch.float32).view(-1, 2)

    def compiled_rules(self) -> CompiledRules[KInARowState]:
        return CompiledLargeKInARow(self) if self.has_rows else CompiledKInARow(self)

    def observe(self, state: KInARowState) -> Tensor:
        sides = torch.stack([state.own, state.own ^ state.occupied], 1)
        return self.layout.planes(sides).view(-1, *self.spec.observation)

    def key(self, state: KInARowState) -> Tensor:
        # With gravity one more bit on top of each column marks its height.
        if self.gravity:
            return state.own + state.occupied + self.layout.bottom_row
        return state.own.long() << self.layout.num_bits | state.occupied

    def state_from_key(self, key: Tensor) -> KInARowState:
        if not self.gravity:
            bits = self.layout.num_bits
            return self.state_from_stones(key >> bits, key & (2**bits - 1))
        shift = (self.rows + 1) * torch.arange(self.columns, device=key.device)
        column_key = (key[:, None] >> shift) & (2 ** (self.rows + 1) - 1)
        height = torch.zeros_like(column_key)
        for row in range(1, self.rows + 1):
            height += (column_key >> row) > 0
        own = (column_key - (1 << height)) << shift
        occupied = ((1 << height) - 1) << shift
        return self.state_from_stones(own.sum(1), occupied.sum(1))

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> KInARowState:
        """Positions without a line."""
        own, other = (self.layout.stones(cells == 1 + each[:, None]) for each in (seat, 1 - seat))
        return self.state_from_stones(own, own | other)

    def state_from_stones(self, own: Tensor, occupied: Tensor) -> KInARowState:
        """Positions without a line from the stones of the seat to move, and all stones."""
        dtype = self.layout.cell_bits.dtype
        own, occupied = own.to(dtype), occupied.to(dtype)
        turn = self.layout.contains(occupied).sum(1)
        return KInARowState(
            done=self.layout.is_full(occupied),
            current_seat=turn & 1,
            turn=turn,
            score=torch.zeros(len(own), 2, device=own.device),
            own=own,
            occupied=occupied,
        )

    def completing_actions(self, state: KInARowState, stones: Tensor) -> Tensor:
        """Bool [B, A]: the legal actions that complete a line of these stones, [B]."""
        layout, occupied = self.layout, state.occupied
        if isinstance(layout, RowLayout):
            return layout.contains(layout.completing_cells(stones) & ~occupied)
        stone = layout.lowest_empty_cells(occupied) if self.gravity else layout.cell_bits
        has_line = layout.has_line(stones[:, None] | stone)
        return has_line & (occupied[:, None] & self._action_bits == 0)

    def cells(self, state: KInARowState) -> Tensor:
        own, taken = self.layout.contains(state.own), self.layout.contains(state.occupied)
        # Also in a finished row, own are the stones of the seat to move.
        seat = torch.where(own, state.current_seat[:, None], 1 - state.current_seat[:, None])
        return ((seat + 1) * taken).view(-1, self.rows, self.columns)

    def relative_cells(self, state: KInARowState) -> Tensor:
        """Int64 [B, rows, columns]: 0 empty, 1 of the seat to move, 2 of the other."""
        own, taken = self.layout.contains(state.own), self.layout.contains(state.occupied)
        return (2 * taken.long() - own.long()).view(-1, self.rows, self.columns)

    def open_cells(self, state: KInARowState) -> Tensor:
        cells = self.legal_action_mask(state)
        if self.gravity:
            cells = self.layout.contains(self.layout.lowest_empty_cells(state.occupied).sum(1))
        return (cells & ~state.done[:, None]).view(-1, self.rows, self.columns)

    def is_valid(self, state: KInARowState) -> Tensor:
        layout = self.layout
        stones = layout.contains(state.occupied).sum(1)
        valid = (
            super().is_valid(state)
            & layout.is_empty(state.own & ~state.occupied)
            & layout.is_empty(state.occupied & ~layout.all_cells)
            & (state.turn == stones)
            & (state.current_seat == (stones & 1))
            & (state.done | ~layout.is_full(state.occupied))
        )
        if self.gravity:  # in a column without gaps the bottom bit carries over all stones
            column = state.occupied[:, None] & layout.column_masks
            valid &= ((column + layout.bottom_bits) & column == 0).all(1)
        return valid

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns, upright=self.gravity)

    def action_symmetries(self) -> Tensor:
        cells = self.symmetries()
        return cells[:, : self.columns] if self.gravity else cells

    shows_mover = False

    @property
    def how_to_play(self) -> str:
        place = (
            "a stone falls to the lowest empty cell of its column" if self.gravity else "X starts"
        )
        return f"{self.line} in a row win, across, down or diagonally; {place}"

    def action_cells(self, state: KInARowState, row: int) -> Tensor | None:
        if not self.gravity:
            return super().action_cells(state, row)
        return self.layout.contains(self.layout.lowest_empty_cells(state.occupied[row]))

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        if not self.gravity:
            return super().board_format
        numbers = [str(column + 1) for column in range(self.columns)]
        return games_board.BoardFormat(self.rows, self.columns, below=numbers)

    def parse_all(self, texts: Sequence[str]) -> KInARowState:
        stones, seat = self.read_stones(texts)
        if self.gravity:
            is_empty = (stones == 0).view(-1, self.rows, self.columns)
            if bool((is_empty[:, 1:] & ~is_empty[:, :-1]).any()):
                raise ValueError("a stone floats above an empty cell")
        state = self.state_from_cells(stones, seat)
        if bool(self.layout.has_line(state.own).any()):
            raise ValueError("the seat to move has a line already")
        won = self.layout.has_line(state.own ^ state.occupied)
        score = self._payoff(won, 1 - state.current_seat)
        return replace(state, done=state.done | won, score=score)

    def action_to_string(self, state: KInARowState, row: int, action: int) -> str:
        form = self.board_format
        if not self.gravity:
            return form.cell_name(action)
        if not form.left:
            return form.below[action]
        column = self.layout.contains(self.layout.lowest_empty_cells(state.occupied[row]))[action]
        return form.cell_name(int(column.long().argmax()))


def tictactoe(board: int, line: int) -> KInARow:
    """game=tictactoe: a square board without gravity."""
    return KInARow(board, board, line, False, "tictactoe")


def connect4(rows: int, columns: int, line: int) -> KInARow:
    """game=connect4: stones fall to the lowest empty cell of a column."""
    return KInARow(rows, columns, line, True, "connect4")


def gomoku(board: int, line: int) -> KInARow:
    """game=gomoku: a square board without gravity, a large one if need be."""
    return KInARow(board, board, line, False, "gomoku")


class CompiledKInARow(CompiledRules[KInARowState]):
    """Words: own, occupied; of boards of at most 62 bits."""

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.k_in_a_row import LineRules
        from rlgames.kernels.lines import line_argument

        game, layout = self.game, self.game.layout
        table = layout.has_line_table
        length = game.rows if game.gravity else game.columns  # cells between spare bits
        columns = game.columns if game.gravity else 0
        # Cells near the center belong to more lines: solvers search them first.
        center_first = sorted(range(columns), key=lambda column: abs(2 * column - columns + 1))
        pile = (1 << game.rows) - 1
        return LineRules(
            start=(0, 0),
            actions=game.spec.actions,
            cell_bits=layout.cell_bits.cpu().numpy().astype(np.int64),
            board=layout.all_cells,
            line_table=np.zeros(0, np.bool_) if table is None else table.cpu().numpy(),
            line=line_argument(length, game.line),
            stride=length + 1,
            columns=columns,
            bottom=sum(1 << column * (length + 1) for column in range(columns)),
            piles=np.array([pile << each * (length + 1) for each in center_first], np.int64),
        )

    def pack(self, state: KInARowState) -> Tensor:
        return torch.stack([state.own.long(), state.occupied.long()], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> KInARowState:
        own, occupied = words.to(self.game.layout.cell_bits.dtype).unbind(1)
        return KInARowState(**fields, own=own, occupied=occupied)


class CompiledLargeKInARow(CompiledRules[KInARowState]):
    """Words: own, occupied, each as many as 64 cells take."""

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.k_in_a_row import LargeLineRules

        game = self.game
        board = pack_cells(torch.ones(1, game.spec.actions, dtype=torch.bool))[0].tolist()
        start = (0,) * (2 * len(board))
        return LargeLineRules(
            start, game.spec.actions, game.rows, game.columns, game.line, tuple(board)
        )

    def pack(self, state: KInARowState) -> Tensor:
        sets = (self.game.layout.contains(stones) for stones in (state.own, state.occupied))
        return torch.cat([pack_cells(each) for each in sets], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> KInARowState:
        game = self.game
        sets = (unpack_cells(each, game.spec.actions) for each in words.chunk(2, 1))
        own, occupied = (game.layout.stones(each) for each in sets)
        return KInARowState(**fields, own=own, occupied=occupied)
