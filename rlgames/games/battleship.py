"""Battleship on a line or a rectangle, one shot or a salvo per turn; the other side does not shoot.

Ships are straight and do not overlap. They may touch, and by default a sunk ship is not announced.
Every layout of the fleet is equally likely.

    . . . .      .  not shot at
    . x x .      x  hit
    o . . .      o  miss
    . + . .      +  aimed at in this turn, result not known yet
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rlgames.games import board_text
from rlgames.games.capabilities import (
    Capability,
    ExactKey,
    HiddenHits,
    KnownRandomPlay,
    ListedWorlds,
)
from rlgames.games.fleets.game import FleetGame, FleetState, draw_events, parse_events
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.posterior import MAX_ENUMERATED_LAYOUTS
from rlgames.games.fleets.salvos import Salvos, is_sequential, random_turns
from rlgames.games.fleets.sunk_ships import Seen, ShipSlots, SunkShips
from rlgames.games.game import HIDDEN, Spec
from rlgames.games.numbering import TOO_MANY_POSITIONS, encode_cells, encode_digits, fits_in_key
from rlgames.games.state import count_boards
from rlgames.rng import Rng

TURNS = {"hits": "hit_turn", "sunk": "sunk_turn"}
"""The lines of a history, and the fields that they list."""

TWO_FLEETS = "rlgames play game=salvo_duel board=10 ships=[5,4,3,3,2] shots=1 opponent=density"
"""The command that plays it."""


@dataclass(frozen=True)
class BattleshipState(FleetState):
    """N cells in row-major order. score counts the ship cells hit, by the end of each turn.

    ships: uint8 [B, N]. shot, hit: bool [B, N], the cells whose result has been shown. aimed: bool
    [B, N], the cells chosen so far in an unfinished turn. hit_turn: int16 [B, N], when each
    cell was hit, a turn from 1, or 0; [B, 0] if no rule refers to it. sunk_turn: int16 [B,
    ships], the announced sunk ships, as in ShipSlots; [B, 0] where none are announced.
    """

    shot: Tensor
    hit: Tensor
    aimed: Tensor
    hit_turn: Tensor
    sunk_turn: Tensor


class Battleship(FleetGame[BattleshipState], ExactKey, KnownRandomPlay, ListedWorlds):
    """rows × columns cells, ships by length, shots cells per turn.

    aim: "joint" makes one action of each set of cells; "sequential" chooses the cells of a turn
        one after another and shows their results at its end; "auto" is joint up to 512 sets,
        where it learns better per game, and sequential beyond.
    encoding: "signed" shows one plane of -1 not shot at, 0 miss, +1 hit (equation 1 of Landy's
        article), "planes" one plane each for not shot at, miss and hit, "posterior" adds the
        probability of a ship over all layouts that agree. Sequential salvos add a plane of the
        cells aimed at and one filled with the share of the turn's shots already aimed.
    show: what else is observed: "sizes", the length of each ship ÷ the longest side; "sunk", at the
        end of each turn, the lengths of the ships that it sank; "first_hit", the hits of the first
        turn that hit anything. All are planes. Those of "sunk" are: filled for each ship that is
        sunk; the turn of each hit ÷ the most turns; and for each length, at the hits of a turn,
        the share of such ships that it sank. Ships of equal length stay indistinguishable.
    Raises ValueError, with the reason, for an impossible fleet or too many actions.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        ships: list[int],
        shots: int = 1,
        aim: str = "auto",
        encoding: str = "planes",
        show: Sequence[str] = (),
        name: str = "battleship",
    ) -> None:
        self.fleet = Fleet(rows, columns, list(ships))
        self.rows, self.columns = rows, columns
        self.num_cells, self.ship_cells = self.fleet.num_cells, self.fleet.ship_cells
        self.shots, self.encoding, self.show = shots, encoding, tuple(show)
        self.announces_sunk_ships = "sunk" in show
        self.slots = ShipSlots(self.fleet.ships, names_length=True)
        self.max_turns = math.ceil(self.num_cells / shots)
        self.sequential = is_sequential(aim, self.num_cells, shots)
        self.salvos = Salvos(self.num_cells, 1 if self.sequential else shots)
        self._relative_lengths = self.slots.lengths.float() / max(rows, columns)
        if encoding == "posterior" and not self.posterior.exact:
            raise ValueError("encoding=posterior needs all layouts, and there are too many")
        self.spec = self._make_spec(name)

    def _make_spec(self, name: str) -> Spec:
        planes = {"signed": 1, "planes": 3, "posterior": 4}[self.encoding]
        planes += 2 if self.sequential else 0
        planes += len(self.fleet) * ("sizes" in self.show)
        planes += (len(self.fleet) + 1 + self.slots.num_groups) * ("sunk" in self.show)
        planes += "first_hit" in self.show
        return Spec(
            name=name,
            seats=1,
            actions=len(self.salvos),
            observation=(planes, self.rows, self.columns),
            has_cell_actions=self.sequential or self.shots == 1,
            max_plies=self.num_cells if self.sequential else self.max_turns,
            max_positions=count_boards(3, self.num_cells),
            goal="turns",
            hidden=True,
            max_plies_per_turn=self.shots if self.sequential else 1,
            observation_range=(-1.0 if self.encoding == "signed" else 0.0, 1.0),
        )

    def lacks(self, capability: type[Capability]) -> str:
        layouts = self.fleet.layouts
        if capability is ExactKey and not fits_in_key(self._key_bases()):
            return TOO_MANY_POSITIONS
        if capability is ListedWorlds and (
            layouts is None or len(layouts) > MAX_ENUMERATED_LAYOUTS
        ):
            return "the layouts of its fleet are too many to list"
        if capability is HiddenHits and not self.sequential and self.shots > 1:
            return "with aim=joint an action is several cells, not a hit or a miss"
        return ""

    def legal_action_mask(self, state: BattleshipState) -> Tensor:
        free = ~(state.shot | state.aimed) if self.sequential else ~state.shot
        if self.sequential or self.shots == 1:
            return free | state.done[:, None].expand_as(free).contiguous()
        # With fewer free cells than shots, a set is legal if it contains all of them.
        required = free.sum(1, keepdim=True).clamp(max=self.shots)
        return (free.float() @ self.salvos.cells_t == required) | state.done[:, None]

    def apply_action(self, state: BattleshipState, action: Tensor) -> BattleshipState:
        live = ~state.done
        # Finished rows have no target.
        target = self.salvos.cells_or_none.index_select(
            0, torch.where(live, action, self.spec.actions)
        )
        if self.sequential:
            aimed = state.aimed | target
            count = aimed.sum(1)
            unshot = self.num_cells - state.shot.sum(1)
            fire = live & ((count == self.shots) | (count == unshot))
            target = aimed & fire[:, None]
            aimed = aimed & ~fire[:, None]
        else:
            aimed, fire = state.aimed, live
        # minimum of uint8 is many times as fast as comparisons and broadcasts of bool.
        new = torch.minimum(state.ships, target.view(torch.uint8)).view(torch.bool)
        hit = state.hit | new
        score = hit.sum(1)
        turn = state.turn + fire
        hit_turn, sunk_turn = state.hit_turn, state.sunk_turn
        if self._keeps_hit_turns:
            is_new = new & ~state.hit
            hit_turn = torch.where(is_new, turn.to(torch.int16)[:, None], hit_turn)
        if "sunk" in self.show:
            sunk_turn = self.slots.record(sunk_turn, self.slots.sunk(state.ships, hit), turn)
        return replace(
            state,
            shot=state.shot | target,
            hit=hit,
            aimed=aimed,
            done=score == self.ship_cells,
            turn=turn,
            score=score[:, None].float(),
            hit_turn=hit_turn,
            sunk_turn=sunk_turn,
        )

    def observe(self, state: BattleshipState) -> Tensor:
        if self.encoding == "signed":
            planes = [(state.shot.view(torch.int8) + state.hit.view(torch.int8) - 1).float()]
        else:
            marks = torch.cat([~state.shot, state.shot ^ state.hit, state.hit], 1)
            planes = [marks.view(torch.uint8).float()]
        if self.encoding == "posterior":
            planes.append(self.occupancy(state))
        if self.sequential:
            aimed = state.aimed.float()
            share = aimed.sum(1, keepdim=True) / self.shots
            planes += [aimed, share.expand_as(aimed)]
        if "sizes" in self.show:
            planes.append(self._fill(self._relative_lengths.expand(len(state), -1)))
        if "sunk" in self.show:
            planes.append(self._fill((state.sunk_turn > 0).float()))
            planes.append(state.hit_turn / self.max_turns)
            planes.append(
                self.slots.per_hit(state.sunk_turn, state.hit_turn, self.max_turns).flatten(1)
            )
        if "first_hit" in self.show:
            planes.append(self._is_first_hit(state).float())
        observation = planes[0] if len(planes) == 1 else torch.cat(planes, 1)
        return observation.view(-1, *self.spec.observation)

    def _fill(self, value: Tensor) -> Tensor:
        """Float32 [B, F * N]: a plane filled with each of the values [B, F]."""
        return value[:, :, None].expand(-1, -1, self.num_cells).flatten(1)

    def is_valid(self, state: BattleshipState) -> Tensor:
        shots, hits, aimed = (field.sum(1) for field in (state.shot, state.hit, state.aimed))
        unshot = self.num_cells - shots
        valid = (
            super().is_valid(state)
            & ~(state.hit & ~state.shot).any(1)
            & ~(state.aimed & state.shot).any(1)
            & ((aimed == 0) | (aimed < unshot.clamp(max=self.shots)))
            & (self.ship_cells - hits <= unshot)
            & (state.done == (hits == self.ship_cells))
        )
        if self._keeps_hit_turns:
            valid &= ((state.hit_turn > 0) == state.hit).all(1)
            valid &= ((state.hit_turn >= 0) & (state.hit_turn <= state.turn[:, None])).all(1)
        if "sunk" in self.show:
            valid &= self.slots.are_valid(state.sunk_turn, state.hit_turn)
        if state.ships is HIDDEN:
            return valid & (hits <= self.ship_cells)
        hits_are_right = (state.hit == state.shot & (state.ships > 0)).all(1)
        is_whole = self.slots.sunk(state.ships, torch.ones_like(state.hit)).all(1)
        valid &= is_whole & ((state.ships > 0).sum(1) == self.ship_cells) & hits_are_right
        sunk_ships = self.seen(state).sunk_ships
        return valid if sunk_ships is None else valid & sunk_ships.agree(state.ships)

    def outcome(self, before: BattleshipState, action: Tensor, after: BattleshipState) -> Tensor:
        hits = after.hit & ~before.hit
        return encode_cells(torch.cat([hits, after.sunk_turn != before.sunk_turn], 1))

    def _key_bases(self) -> list[int]:
        """The number of values of each digit of key: one digit per cell, and one per sunk ship."""
        hits = self.max_turns if "sunk" in self.show else 1 + ("first_hit" in self.show)
        cell = 2 + hits + self.sequential
        sunk_ships = [self.max_turns + 1] * (len(self.fleet) * ("sunk" in self.show))
        return [cell] * self.num_cells + sunk_ships

    def key(self, state: BattleshipState) -> Tensor:
        """A digit per cell: not shot at, miss, hit (and the turn, if it matters), aimed at;
        and the turns when announced ships sank."""
        cell = state.shot.long() + state.hit
        bases = self._key_bases()
        if "sunk" in self.show:
            cell = torch.where(state.hit, 1 + state.hit_turn, cell)
        elif "first_hit" in self.show:
            cell = cell + (state.hit & ~self._is_first_hit(state))
        cell = cell + (bases[0] - 1) * state.aimed
        return encode_digits(torch.cat([cell, state.sunk_turn], 1), bases)

    def _is_first_hit(self, state: BattleshipState) -> Tensor:
        """Bool [B, N]: the hits of the first turn that hit anything."""
        turn = torch.where(state.hit, state.hit_turn, self.max_turns + 1)
        return state.hit & (turn == turn.amin(1, keepdim=True))

    def seen(self, state: BattleshipState) -> Seen:
        sunk_ships = SunkShips(self.slots, state.hit_turn, state.sunk_turn)
        return Seen(state.shot, state.hit, sunk_ships if self.announces_sunk_ships else None)

    def score_actions(self, cells: Tensor) -> Tensor:
        return cells @ self.salvos.cells_t

    def action_at(self, state: BattleshipState, cells: Tensor) -> Tensor:
        """Int64 [B]: the legal action that aims at the most of these cells, bool [B, N]."""
        count = self.score_actions(cells.float())
        return count.masked_fill(~self.legal_action_mask(state), -1.0).argmax(1)

    def expected_random_score_delta(self, state: BattleshipState, plies: bool) -> Tensor:
        unshot = (self.num_cells - state.shot.sum(1)).float()
        not_hit = self.ship_cells - state.score[:, 0]
        shots = 1.0 if plies else unshot.clamp(max=self.shots)
        return not_hit / unshot.clamp(min=1) * shots

    def expected_random_turns(self) -> float:
        return random_turns(self.num_cells, self.ship_cells, self.shots)

    def random_turns_std(self) -> float:
        square = random_turns(self.num_cells, self.ship_cells, self.shots, 2)
        return math.sqrt(square - self.expected_random_turns() ** 2)

    def action_symmetries(self) -> Tensor:
        return self.salvos.symmetries(self.symmetries())

    def resample(self, state: BattleshipState, rng: Rng) -> BattleshipState:
        return replace(state, ships=self.sample_layouts(state, rng))

    def worlds(self, state: BattleshipState) -> tuple[Tensor, BattleshipState]:
        layouts = self.fleet.layouts
        assert layouts is not None
        row, layout = self.agreeing_layouts(state).to(state.done.device).nonzero(as_tuple=True)
        return row, replace(state[row], ships=layouts[layout])

    def hidden_hits(self, state: BattleshipState) -> Tensor:
        return (state.ships > 0)[:, None]

    # Text

    @property
    def how_to_play(self) -> str:
        ships = ", ".join(map(str, sorted(self.fleet.ships, reverse=True)))
        count = "one cell" if self.shots == 1 else f"{self.shots} cells"
        rules = f"sink the hidden fleet, ships of {ships}, in few turns; each turn shoots at"
        return f"{rules} {count}; the usual game of two fleets: {TWO_FLEETS}"

    def boards(
        self, state: BattleshipState, row: int, reveal: bool = False
    ) -> list[board_text.Board]:
        shot, hit, aimed = (field[row].tolist() for field in (state.shot, state.hit, state.aimed))
        ships = (state.ships[row] > 0).tolist() if reveal else [False] * self.num_cells
        marks = [
            "x" if h else "o" if s else "+" if a else "#" if ship else "."
            for s, h, a, ship in zip(shot, hit, aimed, ships, strict=True)
        ]
        return [board_text.split(marks, self.columns)]

    def action_cells(self, state: BattleshipState, row: int) -> Tensor:
        return self.salvos.cells & ~state.shot[row]

    @cached_property
    def board_format(self) -> board_text.BoardFormat:
        return board_text.BoardFormat(1, self.columns) if self.rows == 1 else super().board_format

    def _events(self) -> dict[str, list[str]]:
        """The lines of the history: by name, what can happen in a turn."""
        lines = {"hits": self.cell_names} if self._keeps_hit_turns else {}
        return lines | ({"sunk": self.slots.names} if "sunk" in self.show else {})

    def history(self, state: BattleshipState, row: int) -> str:
        return "\n".join(
            draw_events(name, names, getattr(state, TURNS[name])[row])
            for name, names in self._events().items()
        )

    def parse_all(self, texts: Sequence[str]) -> BattleshipState:
        parsed = [parse_events(text, self._events()) for text in texts]
        cells = torch.tensor(
            [[".ox+".index(mark) for mark in self._parse_marks(board)] for _, board in parsed]
        )
        hit = cells == 2
        shot = hit | (cells == 1)
        sea = torch.zeros(len(texts), self.num_cells, dtype=torch.uint8)
        turns = {TURNS[n]: torch.stack([each[n] for each, _ in parsed]) for n in self._events()}
        state = replace(
            self._start(sea),
            ships=HIDDEN,
            shot=shot,
            hit=hit,
            aimed=cells == 3,
            done=hit.sum(1) == self.ship_cells,
            turn=(shot.sum(1) + self.shots - 1) // self.shots,
            score=hit.sum(1, keepdim=True).float(),
            **turns,
        )
        if turns and not bool(self.is_valid(state).all()):
            raise ValueError("the hits and sunk ships listed above a board contradict it")
        return state

    def _parse_marks(self, text: str) -> list[str]:
        """The marks of the cells. Raises ValueError if no game can have as many of each."""
        (marks,) = board_text.read(text, self.board_format, ".ox+")
        hits, aimed = marks.count("x"), marks.count("+")
        shots = hits + marks.count("o")
        if hits > self.ship_cells:
            raise ValueError(f"{hits} hits; the fleet has {self.ship_cells} cells")
        if aimed >= max(self.shots, 1) or (aimed and not self.sequential):
            raise ValueError("more cells are aimed at than an unfinished turn can have")
        if shots != self.num_cells and shots % self.shots:
            raise ValueError(f"{shots} shots are not a whole number of turns")
        return marks

    def action_to_string(self, state: BattleshipState, row: int, action: int) -> str:
        cells = (self.salvos.cells[action] & ~state.shot[row]).nonzero()[:, 0].tolist()
        return " ".join(map(self.board_format.cell_name, cells))

    @property
    def _keeps_hit_turns(self) -> bool:
        return "sunk" in self.show or "first_hit" in self.show

    def _start(self, ships: Tensor) -> BattleshipState:
        no_cells = torch.zeros_like(ships, dtype=torch.bool)
        no_turns = torch.zeros(len(ships), 1, dtype=torch.int16, device=ships.device)
        return BattleshipState.start(
            len(ships),
            1,
            ships.device,
            ships=ships,
            shot=no_cells,
            hit=no_cells,
            aimed=no_cells,
            hit_turn=no_turns.expand(-1, self.num_cells * self._keeps_hit_turns),
            sunk_turn=no_turns.expand(-1, len(self.fleet) * ("sunk" in self.show)),
        )


def battleship(board: int, **rules: Any) -> Battleship:
    """game=battleship: ships on a line of cells."""
    return Battleship(1, board, name="battleship", **rules)


def salvo(board: int, **rules: Any) -> Battleship:
    """game=salvo: ships on a square board."""
    return Battleship(board, board, name="salvo", **rules)
