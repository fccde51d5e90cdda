"""Hex on rhombic boards of up to 11 × 11 cells, with or without the swap rule.

Each cell has up to six neighbors: the four across and along, and those above to the right and below
to the left. X wins by a chain of stones from the top to the bottom, O by one from left to right;
one of them always does. With the swap rule the second seat may, instead of its first stone, take
over the opening: X's stone becomes an O on the cell mirrored at the long diagonal.

      A B C
    1 . X .
     2 O X .         rows are shifted to the right: B2 touches B1, C1, A2, C2, A3 and B3
      3 X . O

Positions are observed and actions numbered as the seat to move sees them, who joins top and bottom:
for the second seat rows and columns are exchanged.

Words: the stones of the seat to move, cells 0 to 63 and the others, then those of the other seat,
each as its own seat sees them. Bit c is cell c in row-major order. A bit of the second word that no
cell has says that the seat to move may take over the opening.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlgames.core.bits import pack_bits
from rlgames.games import board as games_board
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import SymmetricPlanes
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, first_bit

U = np.uint64
MAX_SIZE = 11
CELLS, CAN_SWAP = U((1 << 57) - 1), U(1 << 61)
"""Bits of the second word: cells 64 to 120, and whether the seat to move may swap."""

SWAP = "swap"

NEIGHBORS = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))
"""Steps to the neighbors of a cell, (rows, columns)."""


class HexRules(NamedTuple):
    """neighbors: uint64 [cells, 2], the sets of neighbors. edges: uint64 [2, 2], the top and the
    bottom as sets. mirrored: int64 [cells], the cells with row and column exchanged."""

    start: tuple[int, ...]
    actions: int
    neighbors: Array
    edges: Array
    mirrored: Array
    swap: bool


@compiled
def has_cell(low: np.uint64, high: np.uint64, cell: int) -> bool:
    """Whether a set contains a cell."""
    return bool(((low if cell < 64 else high) >> U(cell & 63)) & U(1))


@compiled
def touches(low: np.uint64, high: np.uint64, edge: Array) -> bool:
    """Whether a set contains a cell of an edge, uint64 [2]."""
    return bool((low & edge[0]) | (high & edge[1]))


@compiled
def with_cell(low: np.uint64, high: np.uint64, cell: int) -> tuple[np.uint64, np.uint64]:
    """A set and a cell."""
    bit = U(1) << U(cell & 63)
    return (low | bit, high) if cell < 64 else (low, high | bit)


@compiled
def linked(
    rules: HexRules, low: np.uint64, high: np.uint64, low_new: np.uint64, high_new: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The stones of a set that chains link to some of them."""
    low_chain, high_chain = U(0), U(0)
    while low_new | high_new:
        if low_new:
            near = rules.neighbors[first_bit(low_new)]
            low_chain |= low_new & (~low_new + U(1))
        else:
            near = rules.neighbors[64 + first_bit(high_new)]
            high_chain |= high_new & (~high_new + U(1))
        low_new = (low_new | (near[0] & low)) & ~low_chain
        high_new = (high_new | (near[1] & high)) & ~high_chain
    return low_chain, high_chain


@compiled
def connects(
    rules: HexRules, low: np.uint64, high: np.uint64, low_new: np.uint64, high_new: np.uint64
) -> bool:
    """Whether chains link the top and the bottom to some stones of a set."""
    top, bottom = rules.edges[0], rules.edges[1]
    if not (touches(low, high, top) and touches(low, high, bottom)):
        return False
    low_chain, high_chain = linked(rules, low, high, low_new, high_new)
    return touches(low_chain, high_chain, top) and touches(low_chain, high_chain, bottom)


@compiled
def play(rules: HexRules, position: Position, action: int) -> Played:
    low, high = U(position[0]), U(position[1]) & CELLS
    other_low, other_high, won, flag = U(position[2]), U(position[3]), False, U(0)
    if action == len(rules.mirrored):
        # The cell mirrored at the diagonal is, for the seat that swaps, the same.
        low, high, other_low, other_high = other_low, other_high, U(0), U(0)
    else:
        if rules.swap and not (low | high | other_low | other_high):
            flag = CAN_SWAP
        low, high = with_cell(low, high, action)
        low_new, high_new = with_cell(U(0), U(0), action)
        won = connects(rules, low, high, low_new, high_new)
    after = (np.int64(other_low), np.int64(other_high | flag), np.int64(low), np.int64(high))
    return after, won, np.float32(won)


@compiled
def is_legal(rules: HexRules, position: Position, action: int) -> bool:
    high = U(position[1])
    if action == len(rules.mirrored):
        return bool(high & CAN_SWAP)
    is_taken = has_cell(U(position[0]), high, action)
    return not (is_taken or has_cell(U(position[2]), U(position[3]), rules.mirrored[action]))


@compiled
def observe(rules: HexRules, position: Position, planes: Array) -> None:
    cells = len(rules.mirrored)
    planes[:] = 0
    for side in range(2):
        low, high = U(position[2 * side]), U(position[2 * side + 1]) & CELLS
        mark_seen(rules, side, low, high, planes[side * cells :])
        for number in range(2):
            edge = rules.edges[number]
            low_chain, high_chain = linked(rules, low, high, low & edge[0], high & edge[1])
            plane = 2 + 2 * side + number
            mark_seen(rules, side, low_chain, high_chain, planes[plane * cells :])
    if rules.swap:
        planes[6 * cells : 7 * cells] = np.float32(U(position[1]) & CAN_SWAP != U(0))


@compiled
def mark_seen(rules: HexRules, side: int, low: np.uint64, high: np.uint64, plane: Array) -> None:
    """Mark a set of the seat to move, or for side=1 of the other, as the seat to move sees it."""
    while low:
        cell = first_bit(low)
        plane[rules.mirrored[cell] if side else cell] = 1
        low &= low - U(1)
    while high:
        cell = 64 + first_bit(high)
        plane[rules.mirrored[cell] if side else cell] = 1
        high &= high - U(1)


@compiled
def write_cells(rules: HexRules, position: Position, open_value: int, values: Array) -> None:
    for cell in range(len(rules.mirrored)):
        value = np.float32(0)
        if has_cell(U(position[0]), U(position[1]), cell):
            value = np.float32(1)
        elif has_cell(U(position[2]), U(position[3]), rules.mirrored[cell]):
            value = np.float32(2)
        values[cell] = value


@compiled
def set_up(rules: HexRules, cells: Array) -> Played:
    """With the swap rule, a single stone of the other seat can be taken over."""
    low, high, other_low, other_high, others = U(0), U(0), U(0), U(0), 0
    for cell in range(len(cells)):
        if cells[cell] == 1:
            low, high = with_cell(low, high, cell)
        elif cells[cell] == 2:
            other_low, other_high = with_cell(other_low, other_high, rules.mirrored[cell])
            others += 1
    top = rules.edges[0]
    won = connects(rules, other_low, other_high, other_low & top[0], other_high & top[1])
    if rules.swap and others == 1 and not (low | high):
        high |= CAN_SWAP
    position = (np.int64(low), np.int64(high), np.int64(other_low), np.int64(other_high))
    return position, won, np.float32(won)


implement(
    HexRules,
    play=play,
    is_legal=is_legal,
    observe=observe,
    write_cells=write_cells,
    set_up=set_up,
)


def make_rules(board: int, swap: bool) -> HexRules:
    """The rules on a board of this size."""
    cells = np.arange(board * board)
    row, column = np.divmod(cells, board)
    near = np.zeros((len(cells), len(cells)), np.bool_)
    for down, right in NEIGHBORS:
        rows, columns = row + down, column + right
        inside = (rows >= 0) & (rows < board) & (columns >= 0) & (columns < board)
        near[cells[inside], (rows * board + columns)[inside]] = True
    near, edges = (_sets(each) for each in (near, np.stack([row == 0, row == board - 1])))
    return HexRules((0, 0, 0, 0), len(cells) + swap, near, edges, column * board + row, swap)


def _sets(cells: Array) -> Array:
    """Bool [B, N] as uint64 [B, 2]."""
    return pack_bits(np.pad(cells, ((0, 0), (0, 128 - cells.shape[1]))))


class Hex(BoardGame, SymmetricPlanes):
    """board × board cells; actions are the cells as the seat to move sees them and, with the swap
    rule, swapping as the last.

    Raises ValueError for a board of more than 11 × 11 cells.
    """

    has_draws = False

    def __init__(self, board: int, swap: bool, name: str = "hex") -> None:
        if board > MAX_SIZE:
            raise ValueError(f"board={board} is more than {MAX_SIZE}")
        self.size, self.swap, self.num_cells = board, swap, board * board
        self.rules = make_rules(board, swap)
        self.second_view = torch.from_numpy(self.rules.mirrored)
        self.spec = Spec(
            name=name,
            seats=2,
            actions=self.num_cells + swap,
            observation=(6 + swap, board, board),
            has_cell_actions=True,
            max_plies=self.num_cells + swap,
            max_positions=2 * count_boards(3, self.num_cells),
            goal="outcome",
        )

    def turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        # One more turn than stones means that the second seat has swapped.
        stones = (cells > 0).sum(1)
        return stones + ((stones + seat) & 1)

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> BoardState:
        state = super().state_from_cells(cells, seat)
        # To the first seat, a single stone of the other one is left by a swap.
        state.words[:, 1] &= torch.where(seat == 0, int(CELLS), -1)
        return state

    def is_valid(self, state: BoardState) -> Tensor:
        cells, seat = self.cells(state).flatten(1), state.current_seat.clamp(0, 1)
        again = self.state_from_cells(cells, seat)
        return (
            super().is_valid(state)
            & (again.words == state.words).all(1)
            & (state.done | (state.turn == again.turn))
            & self.took_turns(cells, seat)
        )

    def took_turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        """Bool [B]: whether seats that take turns, the first one first, can have placed the stones;
        cells and seat as in state_from_cells."""
        lead = (cells == 1).sum(1) - (cells == 2).sum(1)
        swapped = lead == seat - 1
        has_stone = (cells == 2).any(1)
        return (lead == seat) | (swapped & has_stone & self.swap)

    def symmetries(self) -> Tensor:
        cells = torch.arange(self.num_cells)
        return torch.stack([cells, cells.flip(0)])

    def plane_symmetries(self) -> Tensor:
        planes = torch.arange(self.spec.observation[0])
        turned = planes.clone()
        turned[2:6] = torch.tensor([3, 2, 5, 4])
        return torch.stack([planes, turned])

    # Text

    @property
    def how_to_play(self) -> str:
        swap = "; swap takes over X's first stone, mirrored" if self.swap else ""
        return f"X connects top and bottom, O left and right{swap}"

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        return replace(super().board_format, is_slanted=True)

    def parse_all(self, texts: Sequence[str]) -> BoardState:
        state = super().parse_all(texts)
        if not bool(self.took_turns(self.cells(state).flatten(1), state.current_seat).all()):
            raise ValueError("the seats did not take turns")
        return state

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        if action == self.num_cells:
            return SWAP
        cell = action if state.current_seat[row] == 0 else int(self.rules.mirrored[action])
        return super().action_to_string(state, row, cell)

    def action_cells(self, state: BoardState, row: int) -> Tensor | None:
        cells = super().action_cells(state, row)
        assert cells is not None
        return cells if state.current_seat[row] == 0 else cells[:, self.second_view]
