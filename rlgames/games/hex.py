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

Words: the stones of the seat to move, cells 0 to 63 and the others, then the other seat's, each
as its own seat sees them. Bit c is cell c in row-major order. A bit of the second word that no
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
from rlgames.games import board_text
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Symmetric
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import (
    NO_CELLS,
    Array,
    Cells,
    cells_at,
    common,
    compiled,
    first_bit,
    has_cell,
    is_empty,
    take_first,
    with_cell,
    without,
)

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
def stones_of(position: Position, side: int) -> Cells:
    """The stones of the seat to move, or for side=1 of the other, as their own seat sees them."""
    return U(position[2 * side]), U(position[2 * side + 1]) & CELLS


@compiled
def is_linked(rules: HexRules, cells: Cells) -> bool:
    """Whether a set has cells at the top and at the bottom."""
    has_top = not is_empty(common(cells, cells_at(rules.edges, 0)))
    return has_top and not is_empty(common(cells, cells_at(rules.edges, 1)))


@compiled
def linked(rules: HexRules, stones: Cells, new: Cells) -> Cells:
    """The stones of a set that chains link to some of them."""
    chain = NO_CELLS
    while not is_empty(new):
        cell, others = take_first(new)
        chain = with_cell(chain, cell)
        near = common(cells_at(rules.neighbors, cell), stones)
        new = without((others[0] | near[0], others[1] | near[1]), chain)
    return chain


@compiled
def connects(rules: HexRules, stones: Cells, new: Cells) -> bool:
    """Whether chains link the top and the bottom to some stones of a set."""
    return is_linked(rules, stones) and is_linked(rules, linked(rules, stones, new))


@compiled
def play(rules: HexRules, position: Position, action: int) -> Played:
    own, other, won, flag = stones_of(position, 0), stones_of(position, 1), False, U(0)
    if action == len(rules.mirrored):
        # The cell mirrored at the diagonal is, for the seat that swaps, the same.
        own, other = other, NO_CELLS
    else:
        if rules.swap and is_empty(own) and is_empty(other):
            flag = CAN_SWAP
        own = with_cell(own, action)
        won = connects(rules, own, with_cell(NO_CELLS, action))
    after = (np.int64(other[0]), np.int64(other[1] | flag), np.int64(own[0]), np.int64(own[1]))
    return after, won, np.float32(won)


@compiled
def is_legal(rules: HexRules, position: Position, action: int) -> bool:
    if action == len(rules.mirrored):
        return bool(U(position[1]) & CAN_SWAP)
    is_taken = has_cell(stones_of(position, 0), action)
    return not (is_taken or has_cell(stones_of(position, 1), rules.mirrored[action]))


@compiled
def observe(rules: HexRules, position: Position, planes: Array) -> None:
    cells = len(rules.mirrored)
    planes[:] = 0
    for side in range(2):
        stones = stones_of(position, side)
        mark_seen(rules, side, stones, planes[side * cells :])
        for number in range(2):
            chain = linked(rules, stones, common(stones, cells_at(rules.edges, number)))
            plane = 2 + 2 * side + number
            mark_seen(rules, side, chain, planes[plane * cells :])
    if rules.swap:
        planes[6 * cells : 7 * cells] = np.float32(U(position[1]) & CAN_SWAP != U(0))


@compiled
def mark_seen(rules: HexRules, side: int, cells: Cells, plane: Array) -> None:
    """Mark a set of the seat to move, or for side=1 of the other, as the seat to move sees it."""
    for word in range(2):
        bits = cells[word]
        while bits:
            cell = 64 * word + first_bit(bits)
            plane[rules.mirrored[cell] if side else cell] = 1
            bits &= bits - U(1)


@compiled
def write_cells(rules: HexRules, position: Position, open_value: int, values: Array) -> None:
    for cell in range(len(rules.mirrored)):
        value = np.float32(has_cell(stones_of(position, 0), cell))
        if has_cell(stones_of(position, 1), rules.mirrored[cell]):
            value = np.float32(2)
        values[cell] = value


@compiled
def set_up(rules: HexRules, cells: Array) -> Played:
    """With the swap rule, a single stone of the other seat can be taken over."""
    own, other, others, flag = NO_CELLS, NO_CELLS, 0, U(0)
    for cell in range(len(cells)):
        if cells[cell] == 1:
            own = with_cell(own, cell)
        elif cells[cell] == 2:
            other = with_cell(other, rules.mirrored[cell])
            others += 1
    won = connects(rules, other, common(other, cells_at(rules.edges, 0)))
    if rules.swap and others == 1 and is_empty(own):
        flag = CAN_SWAP
    position = (np.int64(own[0]), np.int64(own[1] | flag), np.int64(other[0]), np.int64(other[1]))
    return position, won, np.float32(won)


implement(HexRules, play, is_legal, observe, write_cells, set_up)


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


class Hex(BoardGame, Symmetric):
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

    def winning_cells(self, state: BoardState, row: int) -> list[int]:
        cells = self.cells(state[row : row + 1])[0]
        for owner, seen in ((1, cells), (2, cells.T)):  # each as its seat sees them
            chain = {(r, c) for r, c in (seen == owner).nonzero().tolist()}
            for edge in (0, len(cells) - 1):  # what is linked to one edge, and of it to the other
                stones, new = chain, {stone for stone in chain if stone[0] == edge}
                chain = set()
                while new:
                    r, c = new.pop()
                    chain.add((r, c))
                    near = {(r, c - 1), (r, c + 1), (r - 1, c), (r + 1, c)}
                    new |= ((near | {(r - 1, c + 1), (r + 1, c - 1)}) & stones) - chain
            if chain:
                numbers = torch.arange(self.num_cells).reshape(len(cells), -1)
                return sorted(int((numbers if owner == 1 else numbers.T)[at]) for at in chain)
        return []

    @property
    def how_to_play(self) -> str:
        swap = "; swap takes over X's first stone, mirrored" if self.swap else ""
        return f"X connects top and bottom, O left and right{swap}"

    @cached_property
    def board_format(self) -> board_text.BoardFormat:
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
