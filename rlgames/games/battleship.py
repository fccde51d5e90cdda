"""Battleship on a line or a rectangle, one shot or a salvo per turn; the other side does not shoot.

Ships are straight and do not overlap. They may touch, and by default a sinking is not announced.
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
from typing import Any

import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.fleets import SAMPLES, Fleet, FleetGame, encode_cells, sunk_ships
from rlgames.games.game import HIDDEN, ExactSolver, Spec, State
from rlgames.games.salvos import Salvos, expected_random_turns, is_sequential
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries


@dataclass(frozen=True)
class BattleshipState(State):
    """N cells in row-major order. score counts the ship cells hit, by the end of each turn.

    ships: uint8 [B, N], hidden: 0 for sea, otherwise the number of the ship, from 1. shot, hit:
    bool [B, N], the cells whose result has been shown. aimed: bool [B, N], the cells chosen so
    far in an unfinished turn. sunk: bool [B, ships], the ships known to be sunk, where that is
    shown, otherwise [B, 0]. first: bool [B, N], the hits of the first turn that hit anything,
    where that is shown, otherwise [B, 0].
    """

    ships: Tensor
    shot: Tensor
    hit: Tensor
    aimed: Tensor
    sunk: Tensor
    first: Tensor


class Battleship(FleetGame[BattleshipState]):
    """rows × columns cells, ships by length, shots cells per turn.

    aim: "joint" makes one action of each set of cells; "sequential" chooses the cells of a turn
        one after another and shows their results at its end; "auto" is joint up to 512 sets,
        where it learns better per game, and sequential beyond.
    encoding: "signed" shows one plane of -1 not shot at, 0 miss, +1 hit (equation 1 of Landy's
        article), "planes" one plane each for not shot at, miss and hit, "posterior" adds the
        probability of a ship over all layouts that agree. Sequential salvos add a plane of the
        cells aimed at and one filled with the share of the turn's shots already aimed.
    show: what else is observed, as planes: "sizes", the length of each ship ÷ the longest side;
        "sunk", which of the ships are sunk; "first_hit", the hits of the first turn that hit
        anything.
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
        self.sequential = is_sequential(aim, self.num_cells, shots)
        self.salvos = Salvos(self.num_cells, 1 if self.sequential else shots)
        self._relative_lengths = self.fleet.lengths.float() / max(rows, columns)
        if encoding == "posterior" and not self.posterior.exact:
            raise ValueError("encoding=posterior needs all layouts, and there are too many")
        self.spec = self._make_spec(name)

    def _make_spec(self, name: str) -> Spec:
        planes = {"signed": 1, "planes": 3, "posterior": 4}[self.encoding]
        planes += 2 if self.sequential else 0
        planes += len(self.fleet) * (("sizes" in self.show) + ("sunk" in self.show))
        planes += "first_hit" in self.show
        return Spec(
            name=name,
            seats=1,
            actions=len(self.salvos),
            observation=(planes, self.rows, self.columns),
            has_cell_actions=self.sequential or self.shots == 1,
            max_plies=self.num_cells if self.sequential else math.ceil(self.num_cells / self.shots),
            max_positions=count_boards(3, self.num_cells),
            goal="turns",
            hidden=True,
            has_exact_key=self.num_cells <= (31 if self.sequential else 39),
            max_plies_per_turn=self.shots if self.sequential else 1,
            observation_range=(-1.0 if self.encoding == "signed" else 0.0, 1.0),
        )

    def initial(self, batch: int, rng: torch.Generator) -> BattleshipState:
        return self._start(self.fleet.sample(batch, rng))

    def openings(self, limit: int) -> tuple[BattleshipState, Tensor] | None:
        layouts = self.fleet.layouts
        if layouts is None or len(layouts) > limit:
            return None
        count = len(layouts)
        probability = torch.full((count,), 1 / count, dtype=torch.float64)
        return self._start(layouts), probability

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
        sunk, first = state.sunk, state.first
        if "sunk" in self.show:
            sunk = self.fleet.sunk(state.ships, hit)
        if "first_hit" in self.show:
            first = torch.where(state.hit.any(1, keepdim=True), first, new)
        return replace(
            state,
            shot=state.shot | target,
            hit=hit,
            aimed=aimed,
            done=score == self.ship_cells,
            turn=state.turn + fire,
            score=score[:, None].float(),
            sunk=sunk,
            first=first,
        )

    def observe(self, state: BattleshipState) -> Tensor:
        if self.encoding == "signed":
            planes = [(state.shot.view(torch.int8) + state.hit.view(torch.int8) - 1).float()]
        else:
            marks = torch.cat([~state.shot, state.shot ^ state.hit, state.hit], 1)
            planes = [marks.view(torch.uint8).float()]
        if self.encoding == "posterior":
            occupancy = self.posterior.occupancy(state.shot.cpu(), state.hit.cpu())
            planes.append(occupancy.to(state.shot.device))
        if self.sequential:
            aimed = state.aimed.float()
            share = aimed.sum(1, keepdim=True) / self.shots
            planes += [aimed, share.expand_as(aimed)]
        if "sizes" in self.show:
            planes.append(self._fill(self._relative_lengths.expand(len(state), -1)))
        if "sunk" in self.show:
            planes.append(self._fill(state.sunk.float()))
        if "first_hit" in self.show:
            planes.append(state.first.float())
        observation = planes[0] if len(planes) == 1 else torch.cat(planes, 1)
        return observation.view(-1, *self.spec.observation)

    def _fill(self, value: Tensor) -> Tensor:
        """Float32 [B, F * N]: a plane filled with each of the values [B, F]."""
        return value[:, :, None].expand(-1, -1, self.num_cells).flatten(1)

    def public(self, state: BattleshipState) -> BattleshipState:
        return replace(state, ships=HIDDEN)

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
        if state.ships is HIDDEN:
            return valid & (hits <= self.ship_cells)
        hits_are_right = (state.hit == state.shot & (state.ships > 0)).all(1)
        return valid & self.fleet.are_layouts(state.ships) & hits_are_right

    def outcome(self, before: BattleshipState, action: Tensor, after: BattleshipState) -> Tensor:
        return encode_cells(after.hit & ~before.hit)

    def key(self, state: BattleshipState) -> Tensor:
        """One digit per cell: not shot at, miss, hit, aimed at."""
        base = 4 if self.sequential else 3
        digit = state.shot.long() + state.hit + 3 * state.aimed
        power = base ** torch.arange(self.num_cells, device=digit.device)
        return (digit * power).sum(1)

    def shots_and_hits(self, state: BattleshipState) -> tuple[Tensor, Tensor]:
        return state.shot, state.hit

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
        return expected_random_turns(self.num_cells, self.ship_cells, self.shots)

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns)

    def action_symmetries(self) -> Tensor:
        return self.salvos.symmetries(self.symmetries())

    @property
    def exact_solver(self) -> ExactSolver | None:
        return None if "sunk" in self.show else "belief"

    def resample(self, state: BattleshipState, rng: torch.Generator) -> BattleshipState:
        hit, sunk = state.hit.cpu(), state.sunk.cpu()
        lengths = self.fleet.lengths.cpu()

        def agrees(row: Tensor, layouts: Tensor) -> Tensor:
            same: Tensor = sunk_ships(layouts, hit[row], lengths) == sunk[row]
            return same.all(1)

        sunk_filter = agrees if "sunk" in self.show else None
        ships = self.posterior.sample(state.shot.cpu(), hit, SAMPLES, rng, sunk_filter)
        return replace(state, ships=ships.to(state.shot.device))

    def hidden_hits(self, state: BattleshipState) -> Tensor:
        if not self.spec.has_cell_actions:
            raise NotImplementedError("with aim=joint an action is several cells, not hit or miss")
        return (state.ships > 0)[:, None]

    def boards(
        self, state: BattleshipState, row: int, reveal: bool = False
    ) -> list[games_board.Board]:
        shot, hit, aimed = (field[row].tolist() for field in (state.shot, state.hit, state.aimed))
        ships = (state.ships[row] > 0).tolist() if reveal else [False] * self.num_cells
        marks = [
            "x" if h else "o" if s else "+" if a else "#" if ship else "."
            for s, h, a, ship in zip(shot, hit, aimed, ships, strict=True)
        ]
        return [games_board.split(marks, self.columns)]

    def action_cells(self, state: BattleshipState, row: int) -> Tensor:
        return self.salvos.cells & ~state.shot[row]

    @property
    def board_format(self) -> games_board.BoardFormat:
        return games_board.BoardFormat(1, self.columns) if self.rows == 1 else super().board_format

    def parse_all(self, texts: Sequence[str]) -> BattleshipState:
        if "sunk" in self.show or "first_hit" in self.show:
            raise ValueError("with show= a board alone does not tell the whole position")
        cells = torch.tensor(
            [[".ox+".index(mark) for mark in self._parse_marks(text)] for text in texts]
        )
        hit = cells == 2
        shot = hit | (cells == 1)
        sea = torch.zeros(len(texts), self.num_cells, dtype=torch.uint8)
        return replace(
            self._start(sea),
            ships=HIDDEN,
            shot=shot,
            hit=hit,
            aimed=cells == 3,
            done=hit.sum(1) == self.ship_cells,
            turn=(shot.sum(1) + self.shots - 1) // self.shots,
            score=hit.sum(1, keepdim=True).float(),
        )

    def _parse_marks(self, text: str) -> list[str]:
        """The marks of the cells. Raises ValueError if no game can have as many of each."""
        (marks,) = games_board.read(text, self.board_format, ".ox+")
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
        if self.rows == 1:
            return " ".join(map(str, cells))
        return " ".join(games_board.cell_name(cell, self.columns) for cell in cells)

    def _start(self, ships: Tensor) -> BattleshipState:
        batch, device = len(ships), ships.device
        no_cells = torch.zeros(ships.shape, dtype=torch.bool, device=device)
        return BattleshipState(
            done=torch.zeros(batch, dtype=torch.bool, device=device),
            current_seat=torch.zeros(batch, dtype=torch.int64, device=device),
            turn=torch.zeros(batch, dtype=torch.int64, device=device),
            score=torch.zeros(batch, 1, device=device),
            ships=ships,
            shot=no_cells,
            hit=no_cells,
            aimed=no_cells,
            sunk=no_cells[:, :0].new_zeros(batch, len(self.fleet) * ("sunk" in self.show)),
            first=no_cells[:, : self.num_cells * ("first_hit" in self.show)],
        )


def battleship(board: int, **rules: Any) -> Battleship:
    """game=battleship: ships on a line of cells."""
    return Battleship(1, board, name="battleship", **rules)


def salvo(board: int, **rules: Any) -> Battleship:
    """game=salvo: ships on a square board."""
    return Battleship(board, board, name="salvo", **rules)
