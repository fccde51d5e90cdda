"""Two-player Salvo: each side has a hidden fleet and fires as many shots as it has ships afloat, or
as many in every turn: with one, this is the game of Battleship as most people know it.

The seats take turns. The cells of a salvo are chosen one after another and their results are shown
together; then the other side fires. The number of ships that each side has afloat is public.
The first to sink the whole fleet of the other side wins.

    target board         own board
       A B C                A B C
     1 . x .              1 a a .      x hit   o miss   + aimed at in this turn
     2 o . +              2 . o B      a own ship   B own ship, hit
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from rlgames.core.text import counted
from rlgames.games import board_text
from rlgames.games.fleets.game import FleetGame, FleetState, draw_events, parse_events
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.sunk_ships import Seen, ShipSlots, SunkShips
from rlgames.games.game import HIDDEN, Spec
from rlgames.games.numbering import encode_cells
from rlgames.games.state import count_boards
from rlgames.rng import Rng

LETTERS = "abcdefghijklmn"
"""Marks of the ships by number; o is reserved for misses."""


@dataclass(frozen=True)
class SalvoDuelState(FleetState):
    """ships: uint8 [B, 2, N], each seat's fleet.

    own: uint8 [B, N], the fleet of the seat to move. shot: bool [B, 2, N], the cells of the other
    board that each seat has shot at. hit_turn: int16 [B, 2, N], the turn, from 1, when it hit
    them; 0 for none. aimed: bool [B, N], the cells chosen so far in an unfinished turn. sunk_turn:
    int16 [B, 2, ships], the turns when each seat sank ships of the other, as in ShipSlots.
    """

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


class SalvoDuel(FleetGame[SalvoDuelState]):
    """rows × columns cells for each side and the same fleet; ships by length.

    shots: in a turn; None: one for each ship afloat. Raises ValueError for a fleet that cannot be
    placed.
    """

    announces_sunk_ships = True

    def __init__(
        self,
        rows: int,
        columns: int,
        ships: Sequence[int],
        shots: int | None = None,
        name: str = "salvo_duel",
    ) -> None:
        if len(ships) > len(LETTERS):
            raise ValueError(f"{len(ships)} ships are too many; {len(LETTERS)} is the most")
        self.fleet, self.shots = Fleet(rows, columns, list(ships)), shots
        self.slots = ShipSlots(self.fleet.ships, names_length=False)
        self.rows, self.columns, self.num_cells = rows, columns, rows * columns
        self.spec = Spec(
            name=name,
            seats=2,
            actions=self.num_cells,
            observation=(14, rows, columns),
            has_cell_actions=True,
            max_plies=2 * self.num_cells,
            max_positions=count_boards(9, self.num_cells),
            goal="outcome",
            hidden=True,
            max_plies_per_turn=shots or len(ships),
        )

    def legal_action_mask(self, state: SalvoDuelState) -> Tensor:
        free = ~(of_seat(state.shot, state.current_seat) | state.aimed)
        return free | state.done[:, None].expand_as(free).contiguous()

    def apply_action(self, state: SalvoDuelState, action: Tensor) -> SalvoDuelState:
        live = ~state.done
        target = torch.zeros_like(state.aimed).scatter_(1, action[:, None], True)
        aimed = state.aimed | (target & live[:, None])
        unshot = self.num_cells - of_seat(state.shot, state.current_seat).sum(1)
        quota = self._shots(of_seat(state.afloat, state.current_seat)).minimum(unshot)
        fire = live & (aimed.sum(1) >= quota)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()  # [B, 2], who moves
        salvo = (aimed & fire[:, None])[:, None] & seat[:, :, None]
        turn = state.turn + fire
        new_hit = salvo & (state.ships.flip(1) > 0)
        hit_turn = torch.where(new_hit, turn.to(torch.int16)[:, None, None], state.hit_turn)
        other = 1 - state.current_seat
        sunk = self.slots.sunk(
            of_seat(state.ships, other), of_seat(hit_turn, state.current_seat) > 0
        )
        slots = self.slots.record(of_seat(state.sunk_turn, state.current_seat), sunk, turn)
        sunk_turn = torch.where(seat[:, :, None], slots[:, None], state.sunk_turn)
        won = fire & sunk.all(1)
        payoff = seat.float() * 2 - 1
        current_seat = torch.where(fire, other, state.current_seat)
        return replace(
            state,
            done=state.done | won,
            current_seat=current_seat,
            turn=turn,
            score=state.score + payoff * won[:, None],
            own=of_seat(state.ships, current_seat),
            shot=state.shot | salvo,
            hit_turn=hit_turn,
            aimed=aimed & ~fire[:, None],
            sunk_turn=sunk_turn,
        )

    def _shots(self, afloat: Tensor) -> Tensor:
        """Int64 [B]: the shots in a turn of a seat with so many ships afloat, int64 [B]."""
        return afloat if self.shots is None else torch.full_like(afloat, self.shots)

    def observe(self, state: SalvoDuelState) -> Tensor:
        """Planes of the target board: not shot at, missed, hit; of the own board: ships, missed,
        hit; the cells aimed at; three filled ones: the share of the salvo already aimed, and the
        shares of the own and the other fleet afloat. Then, of the target board and of the own one:
        the turn of each hit ÷ the most turns, and the share of the fleet that its turn sank."""
        is_first = (state.current_seat == 0)[:, None, None]
        # Of the seat to move, then of the other: [B, 2, N] and [B, 2, ships].
        shot, hit_turn, sunk_turn = (
            torch.where(is_first, field, field.flip(1))
            for field in (state.shot, state.hit_turn, state.sunk_turn)
        )
        hit = hit_turn > 0
        missed = shot & ~hit
        other_afloat, afloat = (sunk_turn == 0).sum(2).T
        aimed = state.aimed.float()
        aimed_share = aimed.sum(1) / self._shots(afloat).clamp(min=1)
        ships = len(self.fleet)
        values = torch.stack([aimed_share, afloat / ships, other_afloat / ships], 1)
        filled = values[:, :, None].expand(-1, -1, self.num_cells)
        target = [~shot[:, 0], missed[:, 0], hit[:, 0]]
        cells = torch.stack([*target, state.own > 0, missed[:, 1], hit[:, 1]], 1)
        sank = self.slots.per_hit(
            sunk_turn.flatten(0, 1), hit_turn.flatten(0, 1), self.spec.max_plies
        )
        history = torch.stack([hit_turn / self.spec.max_plies, sank.view(hit.shape)], 2)
        planes = [cells.view(torch.uint8).float(), aimed[:, None], filled, history.flatten(1, 2)]
        return torch.cat(planes, 1).view(-1, *self.spec.observation)

    @property
    def target_planes(self) -> list[int]:
        return [0, 1, 2, 6, 7, 8, 9, 10, 11]

    def is_valid(self, state: SalvoDuelState) -> Tensor:
        current_seat = state.current_seat.clamp(0, 1)
        shot = of_seat(state.shot, current_seat)
        can_move = (~(shot | state.aimed)).any(1)
        layouts = state.own[:, None] if state.ships is HIDDEN else state.ships
        valid = (
            super().is_valid(state)
            & (state.done | can_move)
            & (state.shot | ~state.hit).flatten(1).all(1)
            & ((state.hit_turn >= 0) & (state.hit_turn <= state.turn[:, None, None]))
            .flatten(1)
            .all(1)
            & ~(state.aimed & shot).any(1)
            & (layouts <= len(self.fleet)).flatten(1).all(1)
        )
        for seat in range(2):
            valid &= self.slots.are_valid(state.sunk_turn[:, seat], state.hit_turn[:, seat])
        return valid

    def outcome(self, before: SalvoDuelState, action: Tensor, after: SalvoDuelState) -> Tensor:
        seat = before.current_seat
        hits = of_seat(after.hit_turn, seat) != of_seat(before.hit_turn, seat)
        sunk_ships = of_seat(after.sunk_turn, seat) != of_seat(before.sunk_turn, seat)
        return encode_cells(torch.cat([hits, sunk_ships], 1))

    def view_from_seat(self, state: SalvoDuelState, seat: int) -> SalvoDuelState:
        current_seat = torch.full_like(state.current_seat, seat)
        # What is aimed at is hidden until the salvo is fired.
        aimed = state.aimed & (state.current_seat == seat)[:, None]
        own = of_seat(state.ships, current_seat)
        return replace(state, current_seat=current_seat, own=own, aimed=aimed)

    def seen(self, state: SalvoDuelState) -> Seen:
        shot, hit_turn, turns = (
            of_seat(field, state.current_seat)
            for field in (state.shot, state.hit_turn, state.sunk_turn)
        )
        return Seen(shot, hit_turn > 0, SunkShips(self.slots, hit_turn, turns))

    def score_actions(self, cells: Tensor) -> Tensor:
        return cells

    def resample(self, state: SalvoDuelState, rng: Rng) -> SalvoDuelState:
        layouts = self.sample_layouts(state, rng)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()[:, :, None]
        return replace(state, ships=torch.where(seat, state.own[:, None], layouts[:, None]))

    def with_layout(self, state: SalvoDuelState, seat: int, layout: Tensor) -> SalvoDuelState:
        """Initial positions where a seat has this fleet, uint8 [N]."""
        ships = state.ships.clone()
        ships[:, seat] = layout.to(ships.device)
        return self._start(ships)

    def hidden_hits(self, state: SalvoDuelState) -> Tensor:
        return state.ships.flip(1) > 0

    # Text

    board_titles = ("their sea", "your sea")

    @property
    def how_to_play(self) -> str:
        ships = ", ".join(map(str, sorted(self.fleet.ships, reverse=True)))
        turn = "one shot for each ship that you have afloat"
        turn = turn if self.shots is None else counted(self.shots, "shot")
        if self.spec.max_plies_per_turn > 1:
            turn += ", and the results are shown after the last one"
        return f"each fleet has ships of {ships}; a turn fires {turn}; sink their fleet first"

    def boards(
        self, state: SalvoDuelState, row: int, reveal: bool = False
    ) -> list[board_text.Board]:
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
        return [board_text.split(marks, self.columns) for marks in (target_marks, own_marks)]

    def caption(self, state: SalvoDuelState, row: int) -> str:
        seat, afloat = int(state.current_seat[row]), state.afloat[row].tolist()
        return (
            f"seat {seat + 1}, turn {int(state.turn[row]) + 1}, "
            f"afloat: yours {afloat[seat]}, theirs {afloat[1 - seat]}"
        )

    def _events(self) -> dict[str, list[str]]:
        """The lines of the history: by name, what can happen in a turn."""
        events = {"hits": self.cell_names, "sunk": self.slots.names}
        return {f"{who} {what}": events[what] for who in ("your", "their") for what in events}

    def history(self, state: SalvoDuelState, row: int) -> str:
        """For each seat, the one to move first: its hits and the ships that it sank."""
        seat = int(state.current_seat[row])
        turns = [
            field[row, each]
            for each in (seat, 1 - seat)
            for field in (state.hit_turn, state.sunk_turn)
        ]
        lines = zip(self._events().items(), turns, strict=True)
        return "\n".join(draw_events(name, names, each) for (name, names), each in lines)

    def parse_all(self, texts: Sequence[str]) -> SalvoDuelState:
        return SalvoDuelState.cat([self._parse(text) for text in texts])

    def _parse(self, text: str) -> SalvoDuelState:
        caption, _, rest = text.strip("\n").partition("\n")
        seat, turn, afloat = _parse_caption(caption)
        turns, boards = parse_events(rest, self._events())
        letters = LETTERS[: len(self.fleet)]
        own_alphabet = ".o" + letters + letters.upper()
        target, own = board_text.read(boards, self.board_format, ".ox+", own_alphabet)
        ships = [letters.index(mark.lower()) + 1 if mark not in ".o" else 0 for mark in own]
        shot = [[mark in "ox" for mark in target], [mark == "o" or mark.isupper() for mark in own]]
        hit = [[mark == "x" for mark in target], [mark.isupper() for mark in own]]
        if [ships.count(number + 1) for number in range(len(self.fleet))] != self.fleet.ships:
            raise ValueError(f"the own fleet is not ships={self.fleet.ships}")
        score = [0.0, 0.0]
        if 0 in afloat:
            score = [1.0, -1.0] if afloat[1] == 0 else [-1.0, 1.0]
        hit_turn, sunk_turn = ([turns[f"your {n}"], turns[f"their {n}"]] for n in ("hits", "sunk"))
        if seat == 1:  # the seat to move comes first on paper
            for field in (shot, hit, afloat, score, hit_turn, sunk_turn):
                cast(list[Any], field).reverse()
        state = replace(
            self._start(torch.tensor([[ships, ships]], dtype=torch.uint8)),
            done=torch.tensor([0 in afloat]),
            current_seat=torch.tensor([seat]),
            turn=torch.tensor([turn]),
            score=torch.tensor([score]),
            ships=HIDDEN,
            shot=torch.tensor([shot]),
            hit_turn=torch.stack(hit_turn)[None],
            aimed=torch.tensor([[mark == "+" for mark in target]]),
            sunk_turn=torch.stack(sunk_turn)[None],
        )
        self._check_history(state, hit, afloat)
        return state

    def _check_history(
        self, state: SalvoDuelState, hit: list[list[bool]], afloat: list[int]
    ) -> None:
        """Raise ValueError if the boards, the ships afloat, and the hits and sunk ships contradict
        one another. hit, afloat: by seat."""
        seat = int(state.current_seat)
        hit_turn, sunk_turn = state.hit_turn[:, 1 - seat], state.sunk_turn[:, 1 - seat]
        is_all_hit = sum(hit[seat]) >= self.fleet.ship_cells
        if (
            state.hit[0].tolist() != hit
            or state.afloat[0].tolist() != afloat
            or sum(hit[seat]) > self.fleet.ship_cells
            or is_all_hit != (afloat[1 - seat] == 0)
            or not bool(SunkShips(self.slots, hit_turn, sunk_turn).agree(state.own).all())
            or not bool(self.is_valid(state).all())
        ):
            raise ValueError(
                "the boards, and the hits and sunk ships listed above them, contradict one another"
            )

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


def salvo_duel(board: int, ships: list[int], shots: int | None) -> SalvoDuel:
    """game=salvo_duel: a square board for each side."""
    return SalvoDuel(board, board, ships, shots)


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
