"""Salvo for two: each side has a hidden fleet and fires as many shots as it has ships afloat.

The seats take turns. The cells of a salvo are aimed at one after another and their results are
shown together; then the other side fires. The number of shots fired tells how many ships a side
still has. Whoever sinks the whole fleet of the other wins.

    the other's sea      one's own sea
       A B C                A B C
     1 . x .              1 a a .      x hit   o miss   + aimed at in this turn
     2 o . +              2 . o B      a own ship   B the same, hit
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.battleship import SAMPLES, cells_code, sunk_ships
from rlgames.games.fleets import Posterior, enumerate_layouts, sample_layouts
from rlgames.games.game import HIDDEN, Game, Spec, State, num_fillings

LETTERS = "abcdefghijklmn"
"""Ships by number; o is left for misses."""


@dataclass(frozen=True)
class SalvoDuelState(State):
    """ships: uint8 [B, 2, N], hidden: each seat's fleet, 0 for sea, otherwise the ship's number.

    own: uint8 [B, N], the mover's fleet. shot, hit: bool [B, 2, N], what each seat has shot at on
    the other's sea. aimed: bool [B, N], the mover's aims in the unfinished turn. afloat: int64
    [B, 2], how many ships each seat has left.
    """

    ships: Tensor
    own: Tensor
    shot: Tensor
    hit: Tensor
    aimed: Tensor
    afloat: Tensor


class SalvoDuel(Game[SalvoDuelState]):
    """rows × columns cells for each side, with the same fleet; ships by length.

    Raises ValueError for a fleet that cannot be placed.
    """

    def __init__(
        self, rows: int, columns: int, ships: Sequence[int], name: str = "salvo_duel"
    ) -> None:
        cells = rows * columns
        if not ships:
            raise ValueError("ships=[] names no ship; give at least one length, as in ships=[3]")
        if len(ships) > len(LETTERS):
            raise ValueError(f"{len(ships)} ships are too many; {len(LETTERS)} is the most")
        if max(ships) > max(rows, columns):
            raise ValueError(
                f"a ship of {max(ships)} does not fit on a board of {rows}x{columns}; "
                f"the longest that does is {max(rows, columns)}"
            )
        if sum(ships) > cells:
            raise ValueError(f"ships={list(ships)} fill {sum(ships)} cells; the board has {cells}")
        self.rows, self.columns, self.num_cells = rows, columns, cells
        self.fleet = list(ships)
        self._lengths = torch.tensor(self.fleet)
        self._layouts = enumerate_layouts(rows, columns, self.fleet)
        if self._layouts is None:
            sample_layouts(rows, columns, self.fleet, 1, torch.Generator().manual_seed(0))
        elif not len(self._layouts):
            raise ValueError(f"ships={self.fleet} cannot be placed on {rows}x{columns} cells")
        self.spec = Spec(
            name=name,
            seats=2,
            actions=cells,
            observation=(10, rows, columns),
            has_cell_actions=True,
            max_plies=2 * cells,
            max_positions=num_fillings(9, cells),
            goal="outcome",
            hidden=True,
            zero_sum=True,
            max_plies_per_turn=len(ships),
        )

    def initial(self, batch: int, rng: torch.Generator) -> SalvoDuelState:
        if self._layouts is None:
            fleets = sample_layouts(self.rows, self.columns, self.fleet, 2 * batch, rng)
        else:
            row = torch.randint(len(self._layouts), (2 * batch,), generator=rng, device=rng.device)
            fleets = self._layouts[row]
        return self._start(fleets.view(batch, 2, self.num_cells))

    def openings(self, limit: int) -> tuple[SalvoDuelState, Tensor] | None:
        if self._layouts is None or len(self._layouts) ** 2 > limit:
            return None
        count = len(self._layouts)
        first = self._layouts.repeat_interleave(count, 0)
        second = self._layouts.repeat(count, 1)
        probability = torch.full((count * count,), 1 / count**2, dtype=torch.float64)
        return self._start(torch.stack([first, second], 1)), probability

    def legal_action_mask(self, state: SalvoDuelState) -> Tensor:
        free = ~(_of(state.shot, state.current_seat) | state.aimed)
        return free | state.done[:, None].expand_as(free).contiguous()

    def apply_action(self, state: SalvoDuelState, action: Tensor) -> SalvoDuelState:
        live = ~state.done
        target = torch.zeros_like(state.aimed).scatter_(1, action[:, None], True)
        aimed = state.aimed | (target & live[:, None])
        left = self.num_cells - _of(state.shot, state.current_seat).sum(1)
        quota = _of(state.afloat, state.current_seat).minimum(left)
        fire = live & (aimed.sum(1) >= quota)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()  # [B, 2], the mover's row
        salvo = (aimed & fire[:, None])[:, None] & seat[:, :, None]
        shot = state.shot | salvo
        hit = state.hit | (salvo & (state.ships.flip(1) > 0))
        other = 1 - state.current_seat
        lost = sunk_ships(_of(state.ships, other), _of(hit, state.current_seat), self._lengths).sum(
            1
        )
        afloat = torch.where(seat, state.afloat, (len(self.fleet) - lost)[:, None])
        afloat = torch.where(fire[:, None], afloat, state.afloat)
        won = fire & (_of(afloat, other) == 0)
        sides = seat.float() * 2 - 1
        current_seat = torch.where(fire, other, state.current_seat)
        return replace(
            state,
            done=state.done | won,
            current_seat=current_seat,
            turn=state.turn + fire,
            score=state.score + sides * won[:, None],
            own=_of(state.ships, current_seat),
            shot=shot,
            hit=hit,
            aimed=aimed & ~fire[:, None],
            afloat=afloat,
        )

    def observe(self, state: SalvoDuelState) -> Tensor:
        """Planes: the other's sea unknown, missed, hit; aimed at and the share of the salvo that is
        aimed; one's own ships, where they were missed and hit; both sides' ships afloat."""
        shot, hit = _of(state.shot, state.current_seat), _of(state.hit, state.current_seat)
        other = 1 - state.current_seat
        against, struck = _of(state.shot, other), _of(state.hit, other)
        aimed = state.aimed.float()
        mine, theirs = _of(state.afloat, state.current_seat), _of(state.afloat, other)
        share = aimed.sum(1) / mine.clamp(min=1)
        values = torch.stack([share, mine / len(self.fleet), theirs / len(self.fleet)], 1)
        filled = values[:, :, None].expand(-1, -1, self.num_cells)
        cells = torch.stack([~shot, shot & ~hit, hit, state.own > 0, against & ~struck, struck], 1)
        planes = torch.cat([cells.view(torch.uint8).float(), aimed[:, None], filled], 1)
        return planes.view(-1, *self.spec.observation)

    def is_valid(self, state: SalvoDuelState) -> Tensor:
        sound = super().is_valid(state)
        current_seat = state.current_seat.clamp(0, 1)
        afloat = ((state.afloat >= 0) & (state.afloat <= len(self.fleet))).all(1)
        free = ~(_of(state.shot, current_seat) | state.aimed)
        fleets = state.own[:, None] if state.ships is HIDDEN else state.ships
        return (
            (sound & afloat & (state.done | free.any(1)))
            & ~(state.hit & ~state.shot).flatten(1).any(1)
            & ~(state.aimed & _of(state.shot, current_seat)).any(1)
            & (fleets <= len(self.fleet)).flatten(1).all(1)
        )

    def outcome(self, before: SalvoDuelState, action: Tensor, after: SalvoDuelState) -> Tensor:
        new = _of(after.hit, before.current_seat) & ~_of(before.hit, before.current_seat)
        sunk = (before.afloat - after.afloat).sum(1)
        return cells_code(new) ^ (sunk << 58)

    def public(self, state: SalvoDuelState) -> SalvoDuelState:
        return replace(state, ships=HIDDEN)

    def sea(self, state: SalvoDuelState) -> tuple[Tensor, Tensor]:
        """Bool [B, N] twice: where the mover has shot at, and where that hit."""
        return _of(state.shot, state.current_seat), _of(state.hit, state.current_seat)

    def view_from_seat(self, state: SalvoDuelState, seat: int) -> SalvoDuelState:
        current_seat = torch.full_like(state.current_seat, seat)
        return replace(state, current_seat=current_seat, own=_of(state.ships, current_seat))

    def score_actions(self, cells: Tensor) -> Tensor:
        """Float32 [B, A]: what each action is worth, where cells, float [B, N], are worth that."""
        return cells

    @cached_property
    def posterior(self) -> Posterior:
        """What can be told of a fleet from shots and hits; on the CPU."""
        listed = None if self._layouts is None else self._layouts.cpu()
        return Posterior(self.rows, self.columns, self.fleet, listed)

    def resample(self, state: SalvoDuelState, rng: torch.Generator) -> SalvoDuelState:
        current_seat = state.current_seat.cpu()
        shot, hit = _of(state.shot.cpu(), current_seat), _of(state.hit.cpu(), current_seat)
        lost = len(self.fleet) - _of(state.afloat.cpu(), 1 - current_seat)

        def agrees(row: Tensor, ships: Tensor) -> Tensor:
            return sunk_ships(ships, hit[row], self._lengths.cpu()).sum(1) == lost[row]

        drawn = self.posterior.sample(shot, hit, SAMPLES, rng, agrees).to(state.own.device)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()[:, :, None]
        return replace(state, ships=torch.where(seat, state.own[:, None], drawn[:, None]))

    def hidden_hits(self, state: SalvoDuelState) -> Tensor:
        return state.ships.flip(1) > 0

    def boards(self, state: SalvoDuelState, row: int, reveal: bool = False) -> list[board.Board]:
        """The other's sea, and one's own."""
        seat = int(state.current_seat[row])
        shot, hit = state.shot[row].tolist(), state.hit[row].tolist()
        theirs = state.ships[row, 1 - seat].tolist() if reveal else [0] * self.num_cells
        aimed, own = state.aimed[row].tolist(), state.own[row].tolist()
        there = [
            "x" if h else "o" if s else "+" if a else LETTERS[ship - 1] if ship else "."
            for s, h, a, ship in zip(shot[seat], hit[seat], aimed, theirs, strict=True)
        ]
        here = [
            (LETTERS[ship - 1].upper() if s else LETTERS[ship - 1]) if ship else "o" if s else "."
            for s, ship in zip(shot[1 - seat], own, strict=True)
        ]
        return [board.split(marks, self.columns) for marks in (there, here)]

    def caption(self, state: SalvoDuelState, row: int) -> str:
        seat, afloat = int(state.current_seat[row]), state.afloat[row].tolist()
        return (
            f"seat {seat + 1}, turn {int(state.turn[row]) + 1}, "
            f"afloat: yours {afloat[seat]}, theirs {afloat[1 - seat]}"
        )

    def parse_all(self, texts: Sequence[str]) -> SalvoDuelState:
        return SalvoDuelState.cat([self._parse(text) for text in texts])

    def _parse(self, text: str) -> SalvoDuelState:
        head, _, rest = text.strip("\n").partition("\n")
        found = re.fullmatch(
            r"seat ([12]), turn (\d{1,9}), afloat: yours (\d+), theirs (\d+)", head.strip()
        )
        if not found:
            raise ValueError("the first line should tell seat, turn and the ships afloat")
        seat, turn, mine, theirs = (int(word) for word in found.groups())
        if turn < 1:
            raise ValueError("turns are counted from 1")
        letters = LETTERS[: len(self.fleet)]
        there, here = board.read(rest, self.board_format, ".ox+", ".o" + letters + letters.upper())
        own = [letters.index(mark.lower()) + 1 if mark not in ".o" else 0 for mark in here]
        if [own.count(ship + 1) for ship in range(len(self.fleet))] != self.fleet:
            raise ValueError(f"the own fleet is not ships={self.fleet}")
        shot = [[mark in "ox" for mark in there], [mark == "o" or mark.isupper() for mark in here]]
        hit = [[mark == "x" for mark in there], [mark.isupper() for mark in here]]
        if sum(hit[0]) > sum(self.fleet) or (theirs == 0) != (sum(hit[0]) == sum(self.fleet)):
            raise ValueError("the hits do not fit the other's ships afloat")
        order = [0, 1] if seat == 1 else [1, 0]
        afloat = [mine, theirs]
        struck = sunk_ships(
            torch.tensor([own], dtype=torch.uint8), torch.tensor([hit[1]]), self._lengths
        )
        if mine != len(self.fleet) - int(struck.sum()) or not 0 <= theirs <= len(self.fleet):
            raise ValueError("the number of ships afloat does not fit the boards")
        fleets = torch.tensor([[own, own]], dtype=torch.uint8)
        start = self._start(fleets)
        over = 0 in afloat
        score = [0.0, 0.0] if not over else [1.0, -1.0] if theirs == 0 else [-1.0, 1.0]
        return replace(
            start,
            done=torch.tensor([over]),
            current_seat=torch.tensor([seat - 1]),
            turn=torch.tensor([turn - 1]),
            score=torch.tensor([[score[place] for place in order]]),
            ships=HIDDEN,
            shot=torch.tensor([[shot[place] for place in order]]),
            hit=torch.tensor([[hit[place] for place in order]]),
            aimed=torch.tensor([[mark == "+" for mark in there]]),
            afloat=torch.tensor([[afloat[place] for place in order]]),
        )

    def action_to_string(self, state: SalvoDuelState, row: int, action: int) -> str:
        return board.cell_name(action, self.columns)

    def _start(self, ships: Tensor) -> SalvoDuelState:
        batch, device = len(ships), ships.device
        nothing = torch.zeros(ships.shape, dtype=torch.bool, device=device)
        zero = torch.zeros(batch, dtype=torch.int64, device=device)
        return SalvoDuelState(
            done=zero.bool(),
            current_seat=zero,
            turn=zero,
            score=torch.zeros(batch, 2, device=device),
            ships=ships,
            own=ships[:, 0],
            shot=nothing,
            hit=nothing,
            aimed=nothing[:, 0],
            afloat=torch.full((batch, 2), len(self.fleet), device=device),
        )


def _of(field: Tensor, seat: Tensor) -> Tensor:
    """One seat's part of [B, 2, ...], by seat, int64 [B]."""
    return field[torch.arange(len(field), device=field.device), seat]


def salvo_duel(board: int, ships: list[int]) -> SalvoDuel:
    """game=salvo_duel: a square board for each side."""
    return SalvoDuel(board, board, ships)
