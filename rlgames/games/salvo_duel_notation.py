"""Positions of two-player Salvo and how they are written.

target board         own board
   A B C                A B C
 1 . x .              1 a a .      x hit   o miss   + aimed at in this turn
 2 o . +              2 . o B      a own ship   B own ship, hit
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.fleets import FleetGame
from rlgames.games.game import HIDDEN, State
from rlgames.games.sinkings import Sinkings, SinkingSlots

LETTERS = "abcdefghijklmn"
"""Marks of the ships by number; o is reserved for misses."""


@dataclass(frozen=True)
class SalvoDuelState(State):
    """ships: uint8 [B, 2, N], hidden: each seat's fleet, 0 for sea, otherwise the ship's number.

    own: uint8 [B, N], the fleet of the seat to move. shot: bool [B, 2, N], the cells of the other
    board that each seat has shot at. hit_turn: int16 [B, 2, N], the turn, from 1, in which it hit
    them; 0 for none. aimed: bool [B, N], the cells chosen so far in an unfinished turn. sunk_turn:
    int16 [B, 2, ships], the turns in which each seat sank ships of the other, as in SinkingSlots.
    """

    ships: Tensor
    own: Tensor
    shot: Tensor
    hit_turn: Tensor
    aimed: Tensor
    sunk_turn: Tensor

    @property
    def hit(self) -> Tensor:
        """Bool [B, 2, N]: the cells of the other board that each seat has hit."""
        return self.hit_turn > 0

    @property
    def afloat(self) -> Tensor:
        """Int64 [B, 2]: how many ships each seat has left."""
        return (self.sunk_turn == 0).sum(2).flip(1)


class SalvoDuelNotation(FleetGame[SalvoDuelState]):
    """The boards, the history and the names of actions of a game of two-player Salvo."""

    rows: int
    columns: int
    num_cells: int
    slots: SinkingSlots

    board_titles = ("their sea", "your sea")

    @property
    def how_to_play(self) -> str:
        ships = ", ".join(map(str, sorted(self.fleet.ships, reverse=True)))
        return (
            f"each fleet has ships of {ships}; a turn fires one shot for each ship that you have "
            "afloat, and the results are shown after the last one; sink their fleet first"
        )

    def boards(
        self, state: SalvoDuelState, row: int, reveal: bool = False
    ) -> list[games_board.Board]:
        """The target board and the own board."""
        seat = int(state.current_seat[row])
        shot, hit = state.shot[row].tolist(), state.hit[row].tolist()
        hidden = state.ships[row, 1 - seat].tolist() if reveal else [0] * self.num_cells
        aimed, own = state.aimed[row].tolist(), state.own[row].tolist()
        target_marks = [
            "x" if h else "o" if s else "+" if a else LETTERS[ship - 1] if ship else "."
            for s, h, a, ship in zip(shot[seat], hit[seat], aimed, hidden, strict=True)
        ]
        own_marks = [
            (LETTERS[ship - 1].upper() if s else LETTERS[ship - 1]) if ship else "o" if s else "."
            for s, ship in zip(shot[1 - seat], own, strict=True)
        ]
        return [games_board.split(marks, self.columns) for marks in (target_marks, own_marks)]

    def caption(self, state: SalvoDuelState, row: int) -> str:
        seat, afloat = int(state.current_seat[row]), state.afloat[row].tolist()
        return (
            f"seat {seat + 1}, turn {int(state.turn[row]) + 1}, "
            f"afloat: yours {afloat[seat]}, theirs {afloat[1 - seat]}"
        )

    def history(self, state: SalvoDuelState, row: int) -> str:
        """For each seat, the one to move first: its hits and the ships that it sank."""
        timelines = []
        seat = int(state.current_seat[row])
        for name, number in (("your", seat), ("their", 1 - seat)):
            hits = self.fleet.list_hits(state.hit_turn[row, number], self.board_format.cell_name)
            sunk = self.slots.list_sinkings(state.sunk_turn[row, number])
            timelines.append(games_board.draw_timeline(f"{name} hits", hits))
            timelines.append(games_board.draw_timeline(f"{name} sinkings", sunk))
        return "\n".join(timelines)

    def parse_all(self, texts: Sequence[str]) -> SalvoDuelState:
        return SalvoDuelState.cat([self._parse(text) for text in texts])

    def _parse(self, text: str) -> SalvoDuelState:
        caption, _, rest = text.strip("\n").partition("\n")
        seat, turn, afloat = _parse_caption(caption)
        names = [f"{whose} {what}" for whose in ("your", "their") for what in ("hits", "sinkings")]
        history, boards = games_board.split_timelines(rest, names)
        letters = LETTERS[: len(self.fleet)]
        own_alphabet = ".o" + letters + letters.upper()
        target, own = games_board.read(boards, self.board_format, ".ox+", own_alphabet)
        ships = [letters.index(mark.lower()) + 1 if mark not in ".o" else 0 for mark in own]
        shot = [[mark in "ox" for mark in target], [mark == "o" or mark.isupper() for mark in own]]
        hit = [[mark == "x" for mark in target], [mark.isupper() for mark in own]]
        self._check_boards(ships, hit, afloat)
        order = [0, 1] if seat == 0 else [1, 0]  # the seat to move comes first on paper
        score = [0.0, 0.0]
        if 0 in afloat:
            score = [1.0, -1.0] if afloat[1] == 0 else [-1.0, 1.0]
        hit_turn = [
            self.fleet.parse_hits(history[f"{name} hits"], self.board_format.cell_name)
            for name in ("your", "their")
        ]
        sunk_turn = [self.slots.parse(history[f"{name} sinkings"]) for name in ("your", "their")]
        state = replace(
            self._start(torch.tensor([[ships, ships]], dtype=torch.uint8)),
            done=torch.tensor([0 in afloat]),
            current_seat=torch.tensor([seat]),
            turn=torch.tensor([turn]),
            score=torch.tensor([[score[place] for place in order]]),
            ships=HIDDEN,
            shot=torch.tensor([[shot[place] for place in order]]),
            hit_turn=torch.stack([hit_turn[place] for place in order])[None],
            aimed=torch.tensor([[mark == "+" for mark in target]]),
            sunk_turn=torch.stack([sunk_turn[place] for place in order])[None],
        )
        self._check_history(
            state, [hit[place] for place in order], [afloat[place] for place in order]
        )
        return state

    def _check_history(
        self, state: SalvoDuelState, hit: list[list[bool]], afloat: list[int]
    ) -> None:
        """Raise ValueError if hits and sinkings do not fit the boards, by seat."""
        own = Sinkings(
            self.slots,
            *(field[:, 1 - int(state.current_seat)] for field in (state.hit_turn, state.sunk_turn)),
        )
        if (
            state.hit[0].tolist() != hit
            or state.afloat[0].tolist() != afloat
            or not bool(own.agree(state.own).all())
            or not bool(self.is_valid(state).all())
        ):
            raise ValueError("the hits and sinkings listed above the boards do not fit them")

    def _check_boards(self, ships: list[int], hit: list[list[bool]], afloat: list[int]) -> None:
        """Raise ValueError if the own fleet, the hits and the ships afloat do not fit together.

        ships: the own board. hit, afloat: of the seat to move, then of the other.
        """
        fleet = self.fleet
        if [ships.count(number + 1) for number in range(len(fleet))] != fleet.ships:
            raise ValueError(f"the own fleet is not ships={fleet.ships}")
        hits = sum(hit[0])
        if hits > fleet.ship_cells or (afloat[1] == 0) != (hits == fleet.ship_cells):
            raise ValueError("the hits do not fit the other's ships afloat")
        layout, own_hit = torch.tensor([ships], dtype=torch.uint8), torch.tensor([hit[1]])
        own_afloat = len(fleet) - int(fleet.sunk(layout, own_hit).sum())
        if afloat[0] != own_afloat or not 0 <= afloat[1] <= len(fleet):
            raise ValueError("the number of ships afloat does not fit the boards")

    def _start(self, ships: Tensor) -> SalvoDuelState:
        no_cells = torch.zeros_like(ships, dtype=torch.bool)
        no_turns = torch.zeros_like(ships, dtype=torch.int16)
        return SalvoDuelState.start(
            len(ships),
            2,
            ships.device,
            ships=ships,
            own=ships[:, 0],
            shot=no_cells,
            hit_turn=no_turns,
            aimed=no_cells[:, 0],
            sunk_turn=no_turns[:, :, : len(self.fleet)],
        )


def _parse_caption(caption: str) -> tuple[int, int, list[int]]:
    """Seat and turn, from 0, and the ships afloat of the seat to move and of the other."""
    match = re.fullmatch(
        r"seat ([12]), turn (\d{1,9}), afloat: yours (\d+), theirs (\d+)", caption.strip()
    )
    if not match:
        raise ValueError("the first line should name seat, turn and the ships afloat")
    seat, turn, own, other = (int(word) for word in match.groups())
    if turn < 1:
        raise ValueError("turns are counted from 1")
    return seat - 1, turn - 1, [own, other]


def of_seat(field: Tensor, seat: Tensor) -> Tensor:
    """The part of one seat, int64 [B], of [B, 2, ...]."""
    return field[torch.arange(len(field), device=field.device), seat]
