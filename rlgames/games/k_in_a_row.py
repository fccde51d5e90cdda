"""k in a row, with gravity or without: tic-tac-toe, Connect 4, and boards of other sizes.

Two seats take turns; whoever first has a whole line across, down or aslant wins, and a full board
is drawn. With gravity an action is a column, and the stone falls to its lowest empty cell; without,
it is a cell, in row-major order from the top.

    . . . . . . .
    . . . X . . .      X  the first seat's stones
    . . O X . . .      O  the second seat's
    . O X X . . O
    1 2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.game import ExactSolver, Game, Spec, State
from rlgames.games.subsets import MAX_SET_SIZE
from rlgames.games.symmetry import board_symmetries

MAX_BITS = 62
"""A board has one more row or column of bits, always empty, so that no line runs over the edge."""

MAX_TABLE_BITS = 16
"""Without gravity up to so many cells are bits side by side, and tables tell whether a set of
stones has a line, and how it looks: the smaller they are, the nearer the processor they stay."""


@dataclass(frozen=True)
class KInARowState(State):
    """own: [B], the mover's stones as bits. occupied: [B], all stones. Both are int32 where tables
    tell of them, else int64."""

    own: Tensor
    occupied: Tensor


class KInARow(Game[KInARowState]):
    """rows × columns cells, line stones in a row win, gravity makes stones fall.

    Raises ValueError for a line that does not fit and for more cells than bits.
    """

    def __init__(
        self, rows: int, columns: int, line: int, gravity: bool, name: str = "lines"
    ) -> None:
        if line > max(rows, columns):
            raise ValueError(
                f"line={line} does not fit on a board of {rows}x{columns}; "
                f"the longest that does is {max(rows, columns)}"
            )
        self.rows, self.columns, self.line, self.gravity = rows, columns, line, gravity
        spaced = (rows + 1) * columns if gravity else rows * (columns + 1)
        if spaced > MAX_BITS:
            raise ValueError(
                f"a board of {rows}x{columns} needs {spaced} bits, and {MAX_BITS} is the most"
            )
        # The bit of each cell in row-major order from the top, [rows * columns].
        across, down = torch.arange(columns), torch.arange(rows)[:, None]
        place = (
            across * (rows + 1) + (rows - 1 - down) if gravity else down * (columns + 1) + across
        )
        self._cell = (torch.ones((), dtype=torch.int64) << place).reshape(-1)
        step = rows + 1 if gravity else columns + 1
        self._steps = (1, step, step + 1, step - 1)
        self._won: Tensor | None = None
        self._planes: Tensor | None = None
        if not gravity and rows * columns <= MAX_TABLE_BITS:
            bit = torch.arange(rows * columns)
            stones = (torch.arange(2 ** len(bit))[:, None] >> bit) & 1
            self._won = self._has_line((stones * self._cell).sum(1))
            self._planes = stones.float()
            self._cell = (1 << bit).int()
        self._bits = spaced if self._won is None else rows * columns
        self._board = int(self._cell.sum())
        self._gather = 0
        if gravity:
            self._gathered = rows * columns - 1
            self._bottom = self._cell.view(rows, columns)[-1].clone()
            self._top = self._cell.view(rows, columns)[0].clone()
            self._column = self._cell.view(rows, columns).sum(0)
            self._tops = int(self._top.sum())
            # Column i's top bit, at rows - 1 + i * step, is moved to rows * columns - 1 + i; no
            # two of the products' other bits meet where there are no more columns than step.
            if columns <= min(step, MAX_SET_SIZE):
                self._gather = sum(1 << rows * (columns - 1 - i) for i in range(columns))
        self._move = self._top if gravity else self._cell
        # What is paid where nobody has a line, twice, and where the first or the second seat has.
        # Whole numbers of eight bytes are taken three times as fast as rows of two floats.
        wins = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0], [-1.0, 1.0]])
        self._wins = wins.view(torch.int64)[:, 0]
        self.spec = Spec(
            name=name,
            seats=2,
            actions=columns if gravity else rows * columns,
            observation=(2, rows, columns),
            has_cell_actions=not gravity,
            max_plies=rows * columns,
            max_positions=3.0 ** (rows * columns),
            goal="outcome",
            zero_sum=True,
            num_cell_values=3,
            has_exact_key=gravity or 2 * self._bits <= 63,
        )

    def initial(self, batch: int, rng: torch.Generator) -> KInARowState:
        device = rng.device
        nothing = torch.zeros(batch, dtype=torch.int64, device=device)
        empty = nothing.to(self._cell.dtype)
        return KInARowState(
            done=torch.zeros(batch, dtype=torch.bool, device=device),
            current_seat=nothing,
            turn=nothing,
            score=torch.zeros(batch, 2, device=device),
            own=empty,
            occupied=empty,
        )

    def openings(self, limit: int) -> tuple[KInARowState, Tensor] | None:
        if limit < 1:
            return None
        return self.initial(1, torch.Generator()), torch.ones(1, dtype=torch.float64)

    def legal_action_mask(self, state: KInARowState) -> Tensor:
        taken = torch.where(state.done, 0, state.occupied)
        return (taken[:, None] & self._move) == 0

    def sample_legal_action(self, state: KInARowState, u: Tensor) -> Tensor:
        if self._gather:  # the top bits of all columns, side by side, are the code of full ones
            full = ((state.occupied & self._tops) * self._gather) >> self._gathered
            every = 2**self.columns - 1
            return self.subsets(self.columns, u.device).pick((full & every) ^ every, u)
        if self._won is None:
            return super().sample_legal_action(state, u)
        free = state.occupied ^ self._board  # the bits are the code of the set of empty cells
        return self.subsets(self._bits, u.device).pick(free, u)

    def apply_action(self, state: KInARowState, action: Tensor) -> KInARowState:
        live = ~state.done
        moves = live.long()
        live_bits = -moves.to(self._cell.dtype)  # all bits of a live row, none of a finished one
        if self.gravity:
            stone = self._bottom.index_select(0, action).add_(state.occupied)
            stone &= self._column.index_select(0, action)
        else:
            stone = self._cell.index_select(0, action)
        stone &= live_bits
        won = self._has_line(state.own | stone).logical_and_(live)
        occupied = stone.bitwise_or_(state.occupied)
        live_bits &= state.occupied
        return replace(
            state,
            done=(occupied == self._board).logical_or_(won).logical_or_(state.done),
            current_seat=state.current_seat ^ moves,
            score=self._paid(won, state.current_seat).add_(state.score),
            own=live_bits.bitwise_xor_(state.own),
            occupied=occupied,
            turn=moves.add_(state.turn),
        )

    def _paid(self, won: Tensor, seat: Tensor) -> Tensor:
        """Float32 [B, 2] from bool [B], whether anybody has won, and int64 [B], who."""
        # A sum takes less time than torch.where, whose branches follow no pattern.
        case = torch.add(seat, won.long(), alpha=2)
        return self._wins.index_select(0, case).view(torch.float32).view(-1, 2)

    def observe(self, state: KInARowState) -> Tensor:
        sides = torch.stack([state.own, state.own ^ state.occupied], 1)
        if self._planes is not None:
            planes = self._planes.index_select(0, sides.view(-1))
        else:
            # Clamping numbers to 1 is several times as fast as comparing them with 0.
            planes = (sides[:, :, None] & self._cell).float().clamp_(max=1)
        return planes.view(-1, *self.spec.observation)

    def key(self, state: KInARowState) -> Tensor:
        # With gravity one more bit on each column tells its height: own stones, then that bit.
        if self.gravity:
            return state.own + state.occupied + int(self._bottom.sum())
        return state.own.long() << self._bits | state.occupied

    def state_from_key(self, key: Tensor) -> KInARowState:
        if self.gravity:
            own, occupied = torch.zeros_like(key), torch.zeros_like(key)
            for column in range(self.columns):
                shift = column * (self.rows + 1)
                part = (key >> shift) & (2 ** (self.rows + 1) - 1)
                height = torch.zeros_like(part)
                for row in range(1, self.rows + 1):
                    height += (part >> row) > 0
                own |= (part - (1 << height)) << shift
                occupied |= ((1 << height) - 1) << shift
        else:
            own, occupied = key >> self._bits, key & (2**self._bits - 1)
        return self.of_bits(own, occupied)

    def of_bits(self, own: Tensor, occupied: Tensor) -> KInARowState:
        """Positions with these stones, int64 [B]: the mover's, and all; none has a line yet."""
        own, occupied = own.to(self._cell.dtype), occupied.to(self._cell.dtype)
        turn = self._on(occupied).sum(1)
        return KInARowState(
            done=occupied == self._board,
            current_seat=turn & 1,
            turn=turn,
            score=torch.zeros(len(own), 2, device=own.device),
            own=own,
            occupied=occupied,
        )

    def completes(self, state: KInARowState, stones: Tensor) -> Tensor:
        """Bool [B, A]: legal actions that complete a line of these stones, [B] as in LinesState."""
        occupied = state.occupied[:, None]
        stone = (occupied + self._bottom) & self._column if self.gravity else self._cell
        line = self._has_line(stones[:, None] | stone)
        return line & (occupied & self._move == 0)

    def cells(self, state: KInARowState) -> Tensor:
        """Int64 [B, rows, columns] from the top: 0 empty, 1 the first seat's, 2 the second's."""
        own, taken = self._on(state.own), self._on(state.occupied)
        # A seat's stones: the mover's own, also in a finished row, where mover is the loser.
        seat = torch.where(own, state.current_seat[:, None], 1 - state.current_seat[:, None])
        return ((seat + 1) * taken).view(-1, self.rows, self.columns)

    @property
    def exact_solver(self) -> ExactSolver | None:
        return "alpha_beta" if self.gravity else super().exact_solver

    def is_valid(self, state: KInARowState) -> Tensor:
        stones = self._on(state.occupied).sum(1)
        sound = (
            super().is_valid(state)
            & ((state.own & ~state.occupied) == 0)
            & ((state.occupied & ~self._board) == 0)
            & (state.turn == stones)
            & (state.current_seat == (stones & 1))
            & (state.done | (state.occupied != self._board))
        )
        if self.gravity:  # adding its bottom bit to a pile carries nothing away
            pile = state.occupied[:, None] & self._column
            sound &= ((pile + self._bottom) & pile == 0).all(1)
        return sound

    def public(self, state: KInARowState) -> KInARowState:
        return state

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns, upright=self.gravity)

    def action_symmetries(self) -> Tensor:
        cells = self.symmetries()
        return cells[:, : self.columns] if self.gravity else cells

    def boards(self, state: KInARowState, row: int, reveal: bool = False) -> list[board.Board]:
        cells = self.cells(state[row : row + 1])[0].tolist()
        return [[[".XO"[stone] for stone in line] for line in cells]]

    def action_cells(self, state: KInARowState, row: int) -> Tensor:
        if not self.gravity:
            return torch.eye(self.spec.actions, dtype=torch.bool)
        lowest = (state.occupied[row] + self._bottom) & self._column
        return self._on(lowest)

    @property
    def board_format(self) -> board.BoardFormat:
        numbers = [str(column + 1) for column in range(self.columns)]
        return (
            board.BoardFormat(self.rows, self.columns, below=numbers)
            if self.gravity
            else super().board_format
        )

    def parse_all(self, texts: Sequence[str]) -> KInARowState:
        sides = torch.tensor([self._read(text) for text in texts])  # own stones, the other's
        state = self.of_bits(sides[:, 0], sides[:, 0] | sides[:, 1])
        if bool(self._has_line(sides[:, 0]).any()):
            raise ValueError("the seat to move has a line already")
        won = self._has_line(sides[:, 1])
        score = self._paid(won, 1 - state.current_seat)
        return replace(state, done=state.done | won, score=score)

    def _read(self, text: str) -> tuple[int, int]:
        """The mover's stones and the other's, as bits."""
        (cells,) = board.read(text, self.board_format, ".XO")
        bits = self._cell.tolist()
        first, second = (
            sum(bit for bit, mark in zip(bits, cells, strict=True) if mark == side) for side in "XO"
        )
        count = [cells.count("X"), cells.count("O")]
        if count[0] - count[1] not in (0, 1):
            raise ValueError(f"{count[0]} X and {count[1]} O: the seats did not take turns")
        if self.gravity and self._floating(first | second):
            raise ValueError("a stone floats above an empty cell")
        return (first, second) if count[0] == count[1] else (second, first)

    def _floating(self, occupied: int) -> bool:
        """Whether a column has a gap: adding its bottom bit to a full pile carries it away."""
        pairs = zip(self._bottom.tolist(), self._column.tolist(), strict=True)
        return any(((occupied & column) + bottom) & occupied & column for bottom, column in pairs)

    def action_to_string(self, state: KInARowState, row: int, action: int) -> str:
        if self.gravity:
            return str(action + 1)
        return board.cell_name(action, self.columns)

    def _on(self, bits: Tensor) -> Tensor:
        """Bool [B, rows * columns]: which cells' bits are set, in row-major order from the top."""
        return (bits[:, None] & self._cell) != 0

    def _has_line(self, stones: Tensor) -> Tensor:
        """Bool, shaped like stones: whether they hold a whole line."""
        if self._won is not None:
            return self._won.index_select(0, stones.reshape(-1)).view(stones.shape)
        found: Tensor | None = None
        for step in self._steps:
            run, length = stones, 1  # bits where a run of so many stones begins
            while length < self.line:
                more = min(length, self.line - length)
                run = run & (run >> (step * more))
                length += more
            found = run if found is None else found | run
        assert found is not None
        return found != 0


def tictactoe(board: int, line: int) -> KInARow:
    """game=tictactoe: a square board without gravity."""
    return KInARow(board, board, line, False, "tictactoe")


def connect4(rows: int, columns: int, line: int) -> KInARow:
    """game=connect4: stones fall to the lowest empty cell of a column."""
    return KInARow(rows, columns, line, True, "connect4")
