"""Hex on rhombic boards, with or without the swap rule.

Each cell has up to six neighbors: the four across and along, and those above to the right and below
to the left. X wins by a chain of stones from the top to the bottom, O by one from left to right;
one of them always does. With the swap rule the second seat may, instead of its first stone, take
over the opening: X's stone becomes an O on the cell mirrored at the long diagonal.

      A B C
    1 . X .
     2 O X .         rows are shifted to the right: B2 touches B1, C1, A2, C2, A3 and B3
      3 X . O

The stones of a chain carry one label, so a new stone relabels at most three chains.

Positions are observed and actions numbered as the seat to move sees them, who joins top and bottom:
for the second seat rows and columns are exchanged.
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
from rlgames.games.capabilities import Compiled
from rlgames.games.compiled import CompiledRules, pack_cells, unpack_cells
from rlgames.games.game import Spec, State
from rlgames.games.state import count_boards
from rlgames.games.stones import StoneGame

SWAP = "swap"

NEIGHBORS = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))
"""Steps to the neighbors of a cell, (rows, columns), in a circle."""

FIRST_EDGE, SECOND_EDGE = 1, 2
"""Bits of a label: the chain touches the seat's first edge, top or left, or its second one."""

EDGES = FIRST_EDGE | SECOND_EDGE


MAX_COMPILED_SIZE = 11
"""Kernels play on boards of up to this size."""


@dataclass(frozen=True)
class HexState(State):
    """labels: int16 [B, N], 0 for an empty cell, otherwise the label of the stone's chain: four
    times the highest of its cells, counted from 1, plus the edges that it touches; negative for
    chains of the second seat."""

    labels: Tensor


class Hex(StoneGame[HexState]):
    """board × board cells; actions are the cells as the seat to move sees them and, with the swap
    rule, swapping as the last."""

    def __init__(self, board: int, swap: bool, name: str = "hex") -> None:
        self.size, self.swap, self.num_cells = board, swap, board * board
        cell = torch.arange(self.num_cells)
        row, column = cell // board, cell % board
        near = [(row + down, column + right) for down, right in NEIGHBORS]
        rows, columns = (torch.stack(each, 1) for each in zip(*near, strict=True))
        inside = (rows >= 0) & (rows < board) & (columns >= 0) & (columns < board)
        # Int64 [N, 6], with the cell itself, which is empty when it is played, for those outside.
        self.neighbors = torch.where(inside, rows * board + columns, cell[:, None])
        self.mirrored = column * board + row
        # Int64 [2, N]: by seat, the cell that it sees as each cell, and the other way around.
        self.seen_cells = torch.stack([cell, self.mirrored])
        # Int16 [2, N]: the label of a lone stone of each seat, without its sign.
        edges = [
            FIRST_EDGE * (place == 0) + SECOND_EDGE * (place == board - 1)
            for place in (row, column)
        ]
        self.lone_labels = (4 * (cell + 1) + torch.stack(edges)).short()
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
        if board > MAX_COMPILED_SIZE:
            self.lacks[Compiled] = f"its sides have more than {MAX_COMPILED_SIZE} cells"

    def initial(self, batch: int, rng: torch.Generator) -> HexState:
        labels = torch.zeros(batch, self.num_cells, dtype=torch.int16, device=rng.device)
        return HexState.start(batch, 2, rng.device, labels=labels)

    # Moves

    def legal_action_mask(self, state: HexState) -> Tensor:
        is_empty = self._seen((state.labels == 0) | state.done[:, None], state.current_seat)
        if not self.swap:
            return is_empty
        return torch.cat([is_empty, (self.can_swap(state) | state.done)[:, None]], 1)

    def _seen(self, board: Tensor, seat: Tensor) -> Tensor:
        """The values of all cells, [B, N], in the order in which the seats, int64 [B], see them; of
        what a seat sees, the inverse."""
        return board.gather(1, self.seen_cells.index_select(0, seat))

    def can_swap(self, state: HexState) -> Tensor:
        """Bool [B]: whether the second seat may take over the opening."""
        return (state.turn == 1) & (state.current_seat == 1) & ~state.done & self.swap

    def apply_action(self, state: HexState, action: Tensor) -> HexState:
        live, seat = ~state.done, state.current_seat
        swaps = live & (action == self.num_cells)
        places = live & ~swaps
        cell = self.seen_cells.view(-1).index_select(0, seat * self.num_cells + action * places)
        labels, label = self._place(state.labels, seat, cell, places)
        rows = swaps.nonzero()[:, 0]
        if len(rows):
            cell = self.mirrored[labels[rows].long().abs().argmax(1)]
            taken = torch.zeros_like(labels[rows])
            taken.scatter_(1, cell[:, None], -self.lone_labels[1, cell][:, None])
            labels[rows] = taken
        won = ((label & EDGES) == EDGES) & places
        return HexState(
            done=state.done | won,
            current_seat=seat ^ live.long(),
            turn=state.turn + live,
            score=state.score + self._payoff(won, seat),
            labels=labels,
        )

    def _place(
        self, labels: Tensor, seat: Tensor, cell: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """New labels [B, N] and the label of the new stones' chains, int16 [B], without its sign.

        cell, seat: int64 [B], the empty cells and whose stones they get. places: bool [B], whether
        anything is placed.
        """
        sign = (1 - 2 * seat).short()
        near = labels.gather(1, self.neighbors.index_select(0, cell)) * sign[:, None]
        # Neighbors that follow each other in the circle touch, so each pair has one label of the
        # seat at most; numbers of other chains are negative.
        pairs = near.view(-1, 3, 2).amax(2)
        lone = self.lone_labels.view(-1).index_select(0, seat * self.num_cells + cell)
        chains = torch.where(pairs > 0, pairs, lone[:, None])
        edges = ((chains & FIRST_EDGE).amax(1) | (chains & SECOND_EDGE).amax(1)) | (lone & EDGES)
        label = (chains.amax(1).maximum(lone) & ~EDGES) | edges
        signed = torch.where(places[:, None], chains * sign[:, None], -1)
        joins = labels == signed[:, :1]
        for number in (1, 2):
            joins |= labels == signed[:, number : number + 1]
        new = (label * sign)[:, None]
        labels = torch.where(joins, new, labels)
        old = labels.gather(1, cell[:, None])
        return labels.scatter_(1, cell[:, None], torch.where(places[:, None], new, old)), label

    def _payoff(self, won: Tensor, seat: Tensor) -> Tensor:
        """Float32 [B, 2]: 1 for the seat that has won and -1 for the other; 0 where none has."""
        first = (1.0 - 2.0 * seat) * won
        return torch.stack([first, -first], 1)

    def compiled_rules(self) -> CompiledHex:
        return CompiledHex(self)

    # Positions

    def observe(self, state: HexState) -> Tensor:
        sign = (1 - 2 * state.current_seat).short()[:, None]
        relative = self._seen(state.labels * sign, state.current_seat)
        own, other = relative > 0, relative < 0
        first, second = (relative.abs() & edge > 0 for edge in (FIRST_EDGE, SECOND_EDGE))
        planes = [own, other, own & first, own & second, other & first, other & second]
        if self.swap:
            planes.append(self.can_swap(state)[:, None].expand_as(relative))
        # Bytes are converted to floats several times as fast as bools.
        stacked = torch.stack(planes, 1).view(torch.uint8)
        return stacked.float().view(-1, *self.spec.observation)

    def view_from_seat(self, state: HexState, seat: int) -> HexState:
        return replace(state, current_seat=torch.full_like(state.current_seat, seat))

    def cells(self, state: HexState) -> Tensor:
        cells = (state.labels > 0).long() + 2 * (state.labels < 0)
        return cells.view(-1, self.size, self.size)

    def state_from_cells(self, cells: Tensor, seat: Tensor) -> HexState:
        # One more turn than stones means that the second seat has swapped.
        labels = torch.zeros_like(cells, dtype=torch.int16)
        winner = torch.full_like(seat, -1)
        for cell, stone in enumerate(cells.unbind(1)):
            owner = (stone - 1).clamp(min=0)
            place = torch.full_like(stone, cell)
            labels, label = self._place(labels, owner, place, stone > 0)
            winner = torch.where((stone > 0) & ((label & EDGES) == EDGES), owner, winner)
        stones = (cells > 0).sum(1)
        won = winner >= 0
        return HexState(
            done=won,
            current_seat=seat,
            turn=stones + ((stones + seat) & 1),
            score=self._payoff(won, winner),
            labels=labels,
        )

    def is_valid(self, state: HexState) -> Tensor:
        cells = self.cells(state).flatten(1)
        rebuilt = self.state_from_cells(cells, state.current_seat)
        return (
            super().is_valid(state)
            & (state.labels == rebuilt.labels).all(1)
            & (state.done | ((state.turn == rebuilt.turn) & ~rebuilt.done))
            & self.took_turns(cells, state.current_seat)
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

    def parse_all(self, texts: Sequence[str]) -> HexState:
        state = super().parse_all(texts)
        cells = self.cells(state).flatten(1)
        # The winner has moved last.
        loser = (state.score[:, 1] > 0).long() ^ 1
        seat = torch.where(state.done, loser, state.current_seat)
        if not bool(self.took_turns(cells, seat).all()):
            raise ValueError("the seats did not take turns")
        stones = (cells > 0).sum(1)
        return replace(state, current_seat=seat, turn=stones + ((stones + seat) & 1))

    def action_to_string(self, state: HexState, row: int, action: int) -> str:
        if action == self.num_cells:
            return SWAP
        return super().action_to_string(
            state, row, int(self.seen_cells[state.current_seat[row], action])
        )

    def action_cells(self, state: HexState, row: int) -> Tensor | None:
        cells = super().action_cells(state, row)
        assert cells is not None
        return cells[:, self.seen_cells[state.current_seat[row]].cpu()]


class CompiledHex(CompiledRules[HexState]):
    """Words: two of own stones with flags, two of the other seat's."""

    has_draws = False

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.hex import HexRules

        game = self.game
        cells, neighbors = torch.arange(game.num_cells), game.neighbors.cpu()
        near = torch.zeros(game.num_cells, game.num_cells, dtype=torch.bool)
        near[cells[:, None], neighbors] = True
        near[cells, cells] = False
        row, column = cells // game.size, cells % game.size
        edges = torch.stack([place == end for place in (row, column) for end in (0, game.size - 1)])
        return HexRules(
            start=self.words_of(game.example_state()),
            actions=game.spec.actions,
            neighbors=self._sets(near).numpy().view(np.uint64),
            edges=self._sets(edges).numpy().view(np.uint64).reshape(2, 2, 2),
            mirrored=game.mirrored.cpu().numpy(),
            swap=game.swap,
        )

    def _sets(self, cells: Tensor) -> Tensor:
        """Bool [B, N] as int64 [B, 2]."""
        words = pack_cells(cells)
        return torch.nn.functional.pad(words, (0, 2 - words.shape[1]))

    def pack(self, state: HexState) -> Tensor:
        from rlgames.kernels.hex import CAN_SWAP, SECOND

        relative = state.labels * (1 - 2 * state.current_seat).short()[:, None]
        own, other = self._sets(relative > 0), self._sets(relative < 0)
        own[:, 1] |= state.current_seat * int(SECOND)
        own[:, 1] |= self.game.can_swap(state) * int(CAN_SWAP)
        return torch.cat([own, other], 1)

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> HexState:
        own, other = (unpack_cells(each, self.game.num_cells) for each in words.split(2, 1))
        seat = fields["current_seat"][:, None]
        cells = own * (1 + seat) + other * (2 - seat)
        labels = self.game.state_from_cells(cells, seat[:, 0]).labels
        return HexState(**fields, labels=labels)
