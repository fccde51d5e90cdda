"""Salvo for two: each side has a hidden fleet and fires as many shots as it has ships afloat.

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

import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.fleets import SAMPLES, Fleet, FleetGame, encode_cells, sunk_ships
from rlgames.games.game import HIDDEN, Spec, State
from rlgames.games.state import count_boards

LETTERS = "abcdefghijklmn"
"""Marks of the ships by number; o is reserved for misses."""


@dataclass(frozen=True)
class SalvoDuelState(State):
    """ships: uint8 [B, 2, N], hidden: each seat's fleet, 0 for sea, otherwise the ship's number.

    own: uint8 [B, N], the fleet of the seat to move. shot, hit: bool [B, 2, N], the cells of the
    other board that each seat has shot at and hit. aimed: bool [B, N], the cells chosen so far in
    an unfinished turn. afloat: int64 [B, 2], how many ships each seat has left.
    """

    ships: Tensor
    own: Tensor
    shot: Tensor
    hit: Tensor
    aimed: Tensor
    afloat: Tensor


class SalvoDuel(FleetGame[SalvoDuelState]):
    """rows × columns cells for each side and the same fleet; ships by length.

    Raises ValueError for a fleet that cannot be placed.
    """

    def __init__(
        self, rows: int, columns: int, ships: Sequence[int], name: str = "salvo_duel"
    ) -> None:
        if len(ships) > len(LETTERS):
            raise ValueError(f"{len(ships)} ships are too many; {len(LETTERS)} is the most")
        self.fleet = Fleet(rows, columns, list(ships))
        self.rows, self.columns, self.num_cells = rows, columns, rows * columns
        self.spec = Spec(
            name=name,
            seats=2,
            actions=self.num_cells,
            observation=(10, rows, columns),
            has_cell_actions=True,
            max_plies=2 * self.num_cells,
            max_positions=count_boards(9, self.num_cells),
            goal="outcome",
            hidden=True,
            zero_sum=True,
            max_plies_per_turn=len(ships),
        )

    def initial(self, batch: int, rng: torch.Generator) -> SalvoDuelState:
        layouts = self.fleet.sample(2 * batch, rng)
        return self._start(layouts.view(batch, 2, self.num_cells))

    def openings(self, limit: int) -> tuple[SalvoDuelState, Tensor] | None:
        layouts = self.fleet.layouts
        if layouts is None or len(layouts) ** 2 > limit:
            return None
        count = len(layouts)
        first = layouts.repeat_interleave(count, 0)
        second = layouts.repeat(count, 1)
        probability = torch.full((count * count,), 1 / count**2, dtype=torch.float64)
        return self._start(torch.stack([first, second], 1)), probability

    def legal_action_mask(self, state: SalvoDuelState) -> Tensor:
        free = ~(_of(state.shot, state.current_seat) | state.aimed)
        return free | state.done[:, None].expand_as(free).contiguous()

    def apply_action(self, state: SalvoDuelState, action: Tensor) -> SalvoDuelState:
        live = ~state.done
        target = torch.zeros_like(state.aimed).scatter_(1, action[:, None], True)
        aimed = state.aimed | (target & live[:, None])
        unshot = self.num_cells - _of(state.shot, state.current_seat).sum(1)
        quota = _of(state.afloat, state.current_seat).minimum(unshot)
        fire = live & (aimed.sum(1) >= quota)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()  # [B, 2], who moves
        salvo = (aimed & fire[:, None])[:, None] & seat[:, :, None]
        shot = state.shot | salvo
        hit = state.hit | (salvo & (state.ships.flip(1) > 0))
        other = 1 - state.current_seat
        target_fleet, hits = _of(state.ships, other), _of(hit, state.current_seat)
        lost = self.fleet.sunk(target_fleet, hits).sum(1)
        afloat = torch.where(seat, state.afloat, (len(self.fleet) - lost)[:, None])
        afloat = torch.where(fire[:, None], afloat, state.afloat)
        won = fire & (_of(afloat, other) == 0)
        payoff = seat.float() * 2 - 1
        current_seat = torch.where(fire, other, state.current_seat)
        return replace(
            state,
            done=state.done | won,
            current_seat=current_seat,
            turn=state.turn + fire,
            score=state.score + payoff * won[:, None],
            own=_of(state.ships, current_seat),
            shot=shot,
            hit=hit,
            aimed=aimed & ~fire[:, None],
            afloat=afloat,
        )

    def observe(self, state: SalvoDuelState) -> Tensor:
        """Planes of the target board: not shot at, missed, hit; of the own board: ships, missed,
        hit; the cells aimed at; three filled ones: the share of the salvo already aimed, and the
        shares of the own and the other fleet afloat."""
        other = 1 - state.current_seat
        shot, hit = _of(state.shot, state.current_seat), _of(state.hit, state.current_seat)
        own_shot, own_hit = _of(state.shot, other), _of(state.hit, other)
        afloat, other_afloat = _of(state.afloat, state.current_seat), _of(state.afloat, other)
        aimed = state.aimed.float()
        aimed_share = aimed.sum(1) / afloat.clamp(min=1)
        ships = len(self.fleet)
        values = torch.stack([aimed_share, afloat / ships, other_afloat / ships], 1)
        filled = values[:, :, None].expand(-1, -1, self.num_cells)
        cells = torch.stack(
            [~shot, shot & ~hit, hit, state.own > 0, own_shot & ~own_hit, own_hit], 1
        )
        planes = torch.cat([cells.view(torch.uint8).float(), aimed[:, None], filled], 1)
        return planes.view(-1, *self.spec.observation)

    def is_valid(self, state: SalvoDuelState) -> Tensor:
        current_seat = state.current_seat.clamp(0, 1)
        shot = _of(state.shot, current_seat)
        can_move = (~(shot | state.aimed)).any(1)
        layouts = state.own[:, None] if state.ships is HIDDEN else state.ships
        return (
            super().is_valid(state)
            & (state.done | can_move)
            & ((state.afloat >= 0) & (state.afloat <= len(self.fleet))).all(1)
            & ~(state.hit & ~state.shot).flatten(1).any(1)
            & ~(state.aimed & shot).any(1)
            & (layouts <= len(self.fleet)).flatten(1).all(1)
        )

    def outcome(self, before: SalvoDuelState, action: Tensor, after: SalvoDuelState) -> Tensor:
        new = _of(after.hit, before.current_seat) & ~_of(before.hit, before.current_seat)
        sunk = (before.afloat - after.afloat).sum(1)
        return encode_cells(new) ^ (sunk << 58)

    def public(self, state: SalvoDuelState) -> SalvoDuelState:
        return replace(state, ships=HIDDEN)

    def shots_and_hits(self, state: SalvoDuelState) -> tuple[Tensor, Tensor]:
        return _of(state.shot, state.current_seat), _of(state.hit, state.current_seat)

    def view_from_seat(self, state: SalvoDuelState, seat: int) -> SalvoDuelState:
        current_seat = torch.full_like(state.current_seat, seat)
        return replace(state, current_seat=current_seat, own=_of(state.ships, current_seat))

    def score_actions(self, cells: Tensor) -> Tensor:
        return cells

    def resample(self, state: SalvoDuelState, rng: torch.Generator) -> SalvoDuelState:
        current_seat = state.current_seat.cpu()
        shot, hit = _of(state.shot.cpu(), current_seat), _of(state.hit.cpu(), current_seat)
        lost = len(self.fleet) - _of(state.afloat.cpu(), 1 - current_seat)
        lengths = self.fleet.lengths.cpu()

        def agrees(row: Tensor, layouts: Tensor) -> Tensor:
            return sunk_ships(layouts, hit[row], lengths).sum(1) == lost[row]

        layouts = self.posterior.sample(shot, hit, SAMPLES, rng, agrees).to(state.own.device)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()[:, :, None]
        return replace(state, ships=torch.where(seat, state.own[:, None], layouts[:, None]))

    def hidden_hits(self, state: SalvoDuelState) -> Tensor:
        return state.ships.flip(1) > 0

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

    def parse_all(self, texts: Sequence[str]) -> SalvoDuelState:
        return SalvoDuelState.cat([self._parse(text) for text in texts])

    def _parse(self, text: str) -> SalvoDuelState:
        caption, _, boards = text.strip("\n").partition("\n")
        seat, turn, afloat = _parse_caption(caption)
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
        return replace(
            self._start(torch.tensor([[ships, ships]], dtype=torch.uint8)),
            done=torch.tensor([0 in afloat]),
            current_seat=torch.tensor([seat]),
            turn=torch.tensor([turn]),
            score=torch.tensor([[score[place] for place in order]]),
            ships=HIDDEN,
            shot=torch.tensor([[shot[place] for place in order]]),
            hit=torch.tensor([[hit[place] for place in order]]),
            aimed=torch.tensor([[mark == "+" for mark in target]]),
            afloat=torch.tensor([[afloat[place] for place in order]]),
        )

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

    def action_to_string(self, state: SalvoDuelState, row: int, action: int) -> str:
        return games_board.cell_name(action, self.columns)

    def _start(self, ships: Tensor) -> SalvoDuelState:
        batch, device = len(ships), ships.device
        no_cells = torch.zeros(ships.shape, dtype=torch.bool, device=device)
        zero = torch.zeros(batch, dtype=torch.int64, device=device)
        return SalvoDuelState(
            done=zero.bool(),
            current_seat=zero,
            turn=zero,
            score=torch.zeros(batch, 2, device=device),
            ships=ships,
            own=ships[:, 0],
            shot=no_cells,
            hit=no_cells,
            aimed=no_cells[:, 0],
            afloat=torch.full((batch, 2), len(self.fleet), device=device),
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


def _of(field: Tensor, seat: Tensor) -> Tensor:
    """The part of one seat, int64 [B], of [B, 2, ...]."""
    return field[torch.arange(len(field), device=field.device), seat]


def salvo_duel(board: int, ships: list[int]) -> SalvoDuel:
    """game=salvo_duel: a square board for each side."""
    return SalvoDuel(board, board, ships)
