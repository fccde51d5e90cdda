"""Othello, also called Reversi, on square boards of an even size up to 8×8.

A disc is placed where it brackets a straight run of the other seat's discs, which it flips. Who
has no such cell must pass, and when neither seat has one, the seat with more discs wins.

      A B C D
    1 . . . .
    2 . O X .      X  discs of the first seat
    3 . X O .      O  discs of the second seat
    4 . . . .

A set of cells is one int64, with a byte for each row from the top and a bit for each column. On 8×8
cells the last one is the sign bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.compiled import CompiledRules
from rlgames.games.game import Spec, State
from rlgames.games.state import count_boards
from rlgames.games.stones import StoneGame
from rlgames.games.symmetry import board_symmetries

PASS = "pass"

ROW = 8
"""Bits of a row."""


@dataclass(frozen=True)
class OthelloState(State):
    """own, other: int64 [B], the discs of the seat to move and of the other. moves: int64 [B], the
    cells where the seat to move may place a disc; 0: it must pass, or the game is over."""

    own: Tensor
    other: Tensor
    moves: Tensor


class Othello(StoneGame[OthelloState]):
    """board × board cells; actions are the cells and, as the last one, passing.

    Raises ValueError for an odd board and for one that is not from 4 to 8.
    """

    def __init__(self, board: int, name: str = "othello") -> None:
        if board % 2 or not 4 <= board <= 8:
            raise ValueError(f"board={board} is not an even number from 4 to 8")
        self.size, self.num_cells = board, board * board
        index = torch.arange(self.num_cells)
        row, column = index // board, index % board
        cell_bits = torch.ones((), dtype=torch.int64) << (ROW * row + column)
        # Passing places no disc.
        self.cell_bits = torch.cat([cell_bits, torch.zeros(1, dtype=torch.int64)])
        self.row_cells = (torch.arange(2**ROW)[:, None] >> torch.arange(board) & 1).bool()
        self.row_planes = self.row_cells.float()
        # By direction, int64 [4, 1]: how far neighbors lie apart, and the cells that are a neighbor
        # of some cell, one step forward (to higher bits) and one step backward.
        right, left = column > 0, column < board - 1
        forward = [right, row > 0, right & (row > 0), left & (row > 0)]
        upward = row < board - 1
        backward = [left, upward, left & upward, right & upward]
        self.steps = torch.tensor([1, ROW, ROW + 1, ROW - 1])[:, None]
        self.forward, self.backward = (
            torch.stack([(cell_bits * mask).sum() for mask in masks])[:, None]
            for masks in (forward, backward)
        )
        self.spec = Spec(
            name=name,
            seats=2,
            actions=self.num_cells + 1,
            observation=(2, board, board),
            has_cell_actions=True,
            # A disc follows every pass.
            max_plies=2 * (self.num_cells - 4),
            max_positions=2 * count_boards(3, self.num_cells),
            goal="outcome",
        )

    def initial(self, batch: int, rng: torch.Generator) -> OthelloState:
        middle, size = self.size // 2, self.size
        own = [middle * size + middle - 1, (middle - 1) * size + middle]
        other = [(middle - 1) * size + middle - 1, middle * size + middle]
        first, second = (self.cell_bits[cells].sum().repeat(batch) for cells in (own, other))
        return self.make_state(first, second, torch.zeros_like(first)).to(rng.device)

    def make_state(self, own: Tensor, other: Tensor, seat: Tensor) -> OthelloState:
        """Positions from the discs of the seat to move, of the other and that seat, int64 [B].

        The turn is the lowest number that fits the discs and the seat.
        """
        moves = self.legal_cells(own, other)
        num_placed = self.contains(own | other).sum(1) - 4
        state = OthelloState(
            done=(moves | self.legal_cells(other, own)) == 0,
            current_seat=seat,
            turn=num_placed + ((num_placed + seat) & 1),
            score=torch.zeros(len(own), 2, device=own.device),
            own=own,
            other=other,
            moves=moves,
        )
        return replace(state, score=self.final_score(state) * state.done[:, None])

    # Moves

    def legal_action_mask(self, state: OthelloState) -> Tensor:
        cells = self.contains(torch.where(state.done, -1, state.moves))
        return torch.cat([cells, (state.moves == 0)[:, None]], 1)

    def apply_action(self, state: OthelloState, action: Tensor) -> OthelloState:
        live = (~state.done).long()
        disc = self.cell_bits.index_select(0, action) & -live
        flipped = self.flips(disc, state.own, state.other)
        own, other = state.other ^ flipped, state.own | disc | flipped
        moves = self.legal_cells(own, other)
        over = state.done.clone()
        stuck = (moves == 0).nonzero()[:, 0]
        over[stuck] = self.legal_cells(other[stuck], own[stuck]) == 0
        after = replace(
            state,
            done=state.done | over,
            current_seat=state.current_seat ^ live,
            turn=state.turn + live,
            own=torch.where(state.done, state.own, own),
            other=torch.where(state.done, state.other, other),
            moves=moves * live,
        )
        ended = (over & ~state.done).nonzero()[:, 0]
        score = state.score.index_copy(0, ended, self.final_score(after[ended]))
        return replace(after, score=score)

    def legal_cells(self, own: Tensor, other: Tensor) -> Tensor:
        """Int64 [B]: the cells where a disc flips others."""
        forward, backward = self._runs(own, other)
        cells = _union((forward << self.steps) & self.forward)
        cells |= _union((backward >> self.steps) & self.backward)
        return cells & ~(own | other)

    def flips(self, disc: Tensor, own: Tensor, other: Tensor) -> Tensor:
        """Int64 [B]: the discs of the other seat that a disc, [B], flips; 0 where it is 0."""
        forward, backward = self._runs(disc, other)
        forward_end = (forward << self.steps) & self.forward & own
        backward_end = (backward >> self.steps) & self.backward & own
        return _union(forward * (forward_end != 0)) | _union(backward * (backward_end != 0))

    def _runs(self, start: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """Int64 [4, B], forward and backward by direction: the runs of other discs, at most six of
        them, that follow some cell of start."""
        steps, inner = self.steps, other & self.forward
        forward = (start << steps) & inner
        forward |= (forward << steps) & inner
        pairs = (inner << steps) & inner
        forward |= (forward << 2 * steps) & pairs
        forward |= (forward << 2 * steps) & pairs
        inner = other & self.backward
        backward = (start >> steps) & inner
        backward |= (backward >> steps) & inner
        pairs = (inner >> steps) & inner
        backward |= (backward >> 2 * steps) & pairs
        backward |= (backward >> 2 * steps) & pairs
        return forward, backward

    def final_score(self, state: OthelloState) -> Tensor:
        """Float32 [B, 2] of finished positions: 1 and -1 for more and fewer discs, or 0."""
        first = self.lead(state).sign().float() * (1 - 2 * state.current_seat)
        return torch.stack([first, -first], 1)

    def lead(self, state: OthelloState) -> Tensor:
        """Int64 [B]: how many more discs the seat to move has."""
        return self.contains(state.own).sum(1) - self.contains(state.other).sum(1)

    def compiled_rules(self) -> CompiledOthello:
        return CompiledOthello(self)

    # Positions

    def contains(self, cells: Tensor) -> Tensor:
        """Bool [B, N]: which cells are in a set, int64 [B]."""
        return self.row_cells.index_select(0, self._rows(cells)).view(-1, self.num_cells)

    def _rows(self, cells: Tensor) -> Tensor:
        """Int32 [B * rows]: the bytes of sets, int64 [B]."""
        return cells.view(torch.uint8).view(-1, ROW)[:, : self.size].reshape(-1).int()

    def observe(self, state: OthelloState) -> Tensor:
        sides = torch.stack([state.own, state.other], 1).view(-1)
        planes = self.row_planes.index_select(0, self._rows(sides))
        return planes.view(-1, *self.spec.observation)

    def cells(self, state: OthelloState) -> Tensor:
        own, other = self.contains(state.own).long(), self.contains(state.other).long()
        seat = state.current_seat[:, None]
        return (own * (1 + seat) + other * (2 - seat)).view(-1, self.size, self.size)

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> OthelloState:
        bits = self.cell_bits[: self.num_cells]
        first, second = ((cells == value).long() @ bits for value in (1, 2))
        is_first = seat == 0
        own, other = torch.where(is_first, first, second), torch.where(is_first, second, first)
        return self.make_state(own, other, seat)

    def depth(self, state: OthelloState) -> Tensor:
        # After a pass the same discs lie on the board, and there is a move.
        return 2 * self.contains(state.own | state.other).sum(1) + (state.moves != 0)

    def is_valid(self, state: OthelloState) -> Tensor:
        own, other = state.own, state.other
        outside = ~self.cell_bits.sum()
        moves = self.legal_cells(own, other)
        can_continue = (moves | self.legal_cells(other, own)) != 0
        return (
            super().is_valid(state)
            & ((own & other) == 0)
            & (((own | other) & outside) == 0)
            & (state.done | ((state.moves == moves) & can_continue))
        )

    def symmetries(self) -> Tensor:
        return board_symmetries(self.size, self.size)

    # Text

    how_to_play = (
        "a disc flips the other's discs between it and another of yours, in every direction; "
        "who has most wins"
    )

    def parse_all(self, texts: Sequence[str]) -> OthelloState:
        state = super().parse_all(texts)
        if bool((state.turn < 0).any()):
            raise ValueError("a game starts with four discs")
        return state

    def action_to_string(self, state: OthelloState, row: int, action: int) -> str:
        return PASS if action == self.num_cells else super().action_to_string(state, row, action)


class CompiledOthello(CompiledRules[OthelloState]):
    """Words: own, other, moves."""

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.othello import OthelloRules

        game = self.game
        tensors = game.cell_bits[:-1], game.steps, game.forward, game.backward
        arrays = (tensor.cpu().flatten().numpy().view(np.uint64) for tensor in tensors)
        return OthelloRules(self.words_of(game.example_state()), game.spec.actions, *arrays)

    def pack(self, state: OthelloState) -> Tensor:
        return torch.stack([state.own, state.other, state.moves], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> OthelloState:
        own, other, moves = words.unbind(1)
        return OthelloState(**fields, own=own, other=other, moves=moves)


def _union(cells: Tensor) -> Tensor:
    """Int64 [B]: the union of four sets, [4, B]."""
    first, second, third, fourth = cells.unbind()
    return first | second | third | fourth
