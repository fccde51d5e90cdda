"""Battleship on a line or a rectangle, one shot a turn or a salvo; the sea does not shoot back.

Ships lie straight and do not overlap; touching is allowed, and nothing tells that one has sunk.
Every layout of the fleet is equally likely.

    . . . .      .  not shot at
    . x x .      x  hit
    o . . .      o  miss
    . + . .      +  aimed at in this turn, result not known yet
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rlgames.games import board
from rlgames.games.fleets import TABLE_CELLS, Posterior, enumerate_layouts, sample_layouts
from rlgames.games.game import HIDDEN, ExactSolver, Game, Spec, State, num_fillings
from rlgames.games.symmetry import board_symmetries

SAMPLES = 64
"""A hidden layout is chosen among so many samples, where not all of them are listed."""

JOINT_ACTIONS = 200_000
"""The most sets of cells that joint aim may have to choose from."""

AUTO_JOINT = 512
"""aim="auto" takes joint aim up to this many actions."""


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


class Battleship(Game[BattleshipState]):
    """rows × columns cells, ships by length, shots cells a turn.

    aim: "joint" makes one action of each set of cells; "sequential" chooses the cells of a turn
        one after another and shows their results at its end; "auto" is joint where there are
        at most 512 sets, which learns better per game, and sequential beyond.
    encoding: "signed" shows one plane of -1 not shot at, 0 miss, +1 hit (equation 1 of Landy's
        article), "planes" one plane each for not shot at, miss and hit, "posterior" one more of how
        likely a ship is to be there, over all layouts that agree. Sequential salvos add
        a plane of the cells aimed at and one that is filled with the share of the turn's shots
        already aimed.
    show: what else a player is told, each of them as planes: "sizes", the length of each ship ÷
        the longest side; "sunk", which of the ships are sunk; "first_hit", the hits of the first
        turn that hit anything.
    Raises ValueError, with the reason, for a fleet or a choice of actions that cannot be.
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
        cells = rows * columns
        self.rows, self.columns, self.num_cells = rows, columns, cells
        self.fleet = list(ships)
        self.ship_cells = sum(ships)
        self.shots = shots
        self.encoding = encoding
        self.show = tuple(show)
        if not ships:
            raise ValueError("ships=[] names no ship; give at least one length, as in ships=[3]")
        if max(ships) > max(rows, columns):
            raise ValueError(
                f"a ship of {max(ships)} does not fit on a board of {rows}x{columns}; "
                f"the longest that does is {max(rows, columns)}"
            )
        if self.ship_cells > cells:
            raise ValueError(f"ships={ships} fill {self.ship_cells} cells; the board has {cells}")
        if shots > cells:
            raise ValueError(f"shots={shots} is more than the board's {cells} cells")
        joint_actions = math.comb(cells, shots)
        if aim == "auto":
            aim = "joint" if joint_actions <= AUTO_JOINT else "sequential"
        self.sequential = aim == "sequential" and shots > 1
        if not self.sequential and joint_actions > min(JOINT_ACTIONS, TABLE_CELLS // cells):
            raise ValueError(
                f"aim=joint would need {joint_actions:,} actions, one for each set of {shots} of "
                f"{cells} cells, and {min(JOINT_ACTIONS, TABLE_CELLS // cells):,} is the most; "
                f"aim=sequential needs {cells}"
            )
        self._layouts = enumerate_layouts(rows, columns, self.fleet)
        if self._layouts is None:
            self._draw(1, torch.Generator().manual_seed(0))
        elif not len(self._layouts):
            raise ValueError(f"ships={ships} cannot be placed on {rows}x{columns} cells")
        sets = [[cell] for cell in range(cells)]
        if not self.sequential:
            sets = [list(chosen) for chosen in itertools.combinations(range(cells), shots)]
        self._targets = torch.zeros(len(sets), cells, dtype=torch.bool)
        self._targets.scatter_(1, torch.tensor(sets), True)
        self._targets_t = self._targets.T.float().contiguous()
        self._aims = torch.cat([self._targets, self._targets.new_zeros(1, cells)])
        self._lengths = torch.tensor(self.fleet)
        self._sizes = self._lengths.float() / max(rows, columns)
        if encoding == "posterior" and not self.posterior.exact:
            raise ValueError("encoding=posterior goes through all layouts, and these are too many")
        planes = {"signed": 1, "planes": 3, "posterior": 4}[encoding]
        planes += 2 if self.sequential else 0
        planes += len(ships) * (("sizes" in show) + ("sunk" in show)) + ("first_hit" in show)
        board_symmetries = math.ceil(cells / shots)
        self.spec = Spec(
            name=name,
            seats=1,
            actions=len(sets),
            observation=(planes, rows, columns),
            has_cell_actions=self.sequential or shots == 1,
            max_plies=cells if self.sequential else board_symmetries,
            max_positions=num_fillings(3, cells),
            goal="turns",
            hidden=True,
            has_exact_key=cells <= (31 if self.sequential else 39),
            max_plies_per_turn=shots if self.sequential else 1,
            observation_range=(-1.0 if encoding == "signed" else 0.0, 1.0),
        )

    def initial(self, batch: int, rng: torch.Generator) -> BattleshipState:
        return self._start(self._draw(batch, rng))

    def openings(self, limit: int) -> tuple[BattleshipState, Tensor] | None:
        if self._layouts is None or len(self._layouts) > limit:
            return None
        count = len(self._layouts)
        probability = torch.full((count,), 1 / count, dtype=torch.float64)
        return self._start(self._layouts), probability

    def legal_action_mask(self, state: BattleshipState) -> Tensor:
        free = ~(state.shot | state.aimed) if self.sequential else ~state.shot
        if self.sequential or self.shots == 1:
            return free | state.done[:, None].expand_as(free).contiguous()
        # With fewer cells left than shots, a set is legal if it takes all of them.
        wanted = free.sum(1, keepdim=True).clamp(max=self.shots)
        return (free.float() @ self._targets_t == wanted) | state.done[:, None]

    def apply_action(self, state: BattleshipState, action: Tensor) -> BattleshipState:
        live = ~state.done
        # Finished rows aim at nothing.
        target = self._aims.index_select(0, torch.where(live, action, self.spec.actions))
        if self.sequential:
            aimed = state.aimed | target
            count = aimed.sum(1)
            left = self.num_cells - state.shot.sum(1)
            fire = live & ((count == self.shots) | (count == left))
            target = aimed & fire[:, None]
            aimed = aimed & ~fire[:, None]
        else:
            aimed, fire = state.aimed, live
        # Numbers are many times as fast as comparisons and broadcasts of bool.
        new = torch.minimum(state.ships, target.view(torch.uint8)).view(torch.bool)
        hit = state.hit | new
        score = hit.sum(1)
        sunk, first = state.sunk, state.first
        if "sunk" in self.show:
            sunk = sunk_ships(state.ships, hit, self._lengths)
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
            likely = self.posterior.occupied(state.shot.cpu(), state.hit.cpu())
            planes.append(likely.to(state.shot.device))
        if self.sequential:
            aimed = state.aimed.float()
            share = aimed.sum(1, keepdim=True) / self.shots
            planes += [aimed, share.expand_as(aimed)]
        if "sizes" in self.show:
            planes.append(self._fill(self._sizes.expand(len(state), -1)))
        if "sunk" in self.show:
            planes.append(self._fill(state.sunk.float()))
        if "first_hit" in self.show:
            planes.append(state.first.float())
        seen = planes[0] if len(planes) == 1 else torch.cat(planes, 1)
        return seen.view(-1, *self.spec.observation)

    def _fill(self, value: Tensor) -> Tensor:
        """Float32 [B, F * N]: a plane filled with each of the values [B, F]."""
        return value[:, :, None].expand(-1, -1, self.num_cells).flatten(1)

    def public(self, state: BattleshipState) -> BattleshipState:
        return replace(state, ships=HIDDEN)

    def is_valid(self, state: BattleshipState) -> Tensor:
        shots, hits, aimed = (each.sum(1) for each in (state.shot, state.hit, state.aimed))
        left = self.num_cells - shots
        sound = (
            super().is_valid(state)
            & ~(state.hit & ~state.shot).any(1)
            & ~(state.aimed & state.shot).any(1)
            & ((aimed == 0) | (aimed < left.clamp(max=self.shots)))
            & (self.ship_cells - hits <= left)
            & (state.done == (hits == self.ship_cells))
        )
        if state.ships is HIDDEN:
            return sound & (hits <= self.ship_cells)
        lengths = (state.ships[:, None] == _numbers(state.ships, self._lengths)).sum(2)
        sound &= (lengths == self._lengths).all(1)
        ship = state.ships > 0
        return sound & (ship.sum(1) == self.ship_cells) & (state.hit == state.shot & ship).all(1)

    def outcome(self, before: BattleshipState, action: Tensor, after: BattleshipState) -> Tensor:
        return cells_code(after.hit & ~before.hit)

    def key(self, state: BattleshipState) -> Tensor:
        """A digit a cell: not shot at, miss, hit, aimed at."""
        base = 4 if self.sequential else 3
        digit = state.shot.long() + state.hit + 3 * state.aimed
        power = base ** torch.arange(self.num_cells, device=digit.device)
        return (digit * power).sum(1)

    def sea(self, state: BattleshipState) -> tuple[Tensor, Tensor]:
        """Bool [B, N] twice: where the mover has shot at, and where that hit."""
        return state.shot, state.hit

    def score_actions(self, cells: Tensor) -> Tensor:
        """Float32 [B, A]: what the cells of each action are worth together; cells: float [B, N]."""
        return cells @ self._targets_t

    def action_at(self, state: BattleshipState, cells: Tensor) -> Tensor:
        """Int64 [B]: the legal action that aims at most of these cells, bool [B, N]."""
        wanted = self.score_actions(cells.float())
        return wanted.masked_fill(~self.legal_action_mask(state), -1.0).argmax(1)

    def expected_random_score_delta(self, state: BattleshipState, plies: bool) -> Tensor:
        left = (self.num_cells - state.shot.sum(1)).float()
        hidden = self.ship_cells - state.score[:, 0]
        fired = 1.0 if plies else left.clamp(max=self.shots)
        return hidden / left.clamp(min=1) * fired

    def expected_random_turns(self) -> float:
        """The expected turn of the last ship cell when cells are shot at in random order.

        The last of T ship cells among N is shot at m-th with probability C(m-1, T-1) / C(N, T).
        """
        total = math.comb(self.num_cells, self.ship_cells)
        return sum(
            math.ceil(m / self.shots) * math.comb(m - 1, self.ship_cells - 1) / total
            for m in range(self.ship_cells, self.num_cells + 1)
        )

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns)

    def action_symmetries(self) -> Tensor:
        # Sorted, the sets of cells are the same before and after.
        targets = self._targets
        order = targets.unique(dim=0, return_inverse=True)[1].argsort()
        turned = [targets[:, cells.argsort()] for cells in self.symmetries()]
        return torch.stack([order[t.unique(dim=0, return_inverse=True)[1]] for t in turned])

    @property
    def exact_solver(self) -> ExactSolver | None:
        return None if "sunk" in self.show else "belief"

    def layouts(self) -> Tensor | None:
        """Bool [L, N]: every layout of the fleet once, or None where there are too many to list."""
        return None if self._layouts is None else self._layouts > 0

    @cached_property
    def posterior(self) -> Posterior:
        """What can be told of the fleet from shots and hits; on the CPU."""
        listed = None if self._layouts is None else self._layouts.cpu()
        return Posterior(self.rows, self.columns, self.fleet, listed)

    def resample(self, state: BattleshipState, rng: torch.Generator) -> BattleshipState:
        hit, sunk = state.hit.cpu(), state.sunk.cpu()

        def agrees(row: Tensor, ships: Tensor) -> Tensor:
            found: Tensor = sunk_ships(ships, hit[row], self._lengths.cpu()) == sunk[row]
            return found.all(1)

        asked = agrees if "sunk" in self.show else None
        drawn = self.posterior.sample(state.shot.cpu(), hit, SAMPLES, rng, asked)
        return replace(state, ships=drawn.to(state.shot.device))

    def hidden_hits(self, state: BattleshipState) -> Tensor:
        if not self.spec.has_cell_actions:
            raise NotImplementedError("with aim=joint an action is several cells, not hit or miss")
        return (state.ships > 0)[:, None]

    def boards(self, state: BattleshipState, row: int, reveal: bool = False) -> list[board.Board]:
        shot, hit, aimed = (field[row].tolist() for field in (state.shot, state.hit, state.aimed))
        ships = (state.ships[row] > 0).tolist() if reveal else [False] * self.num_cells
        marks = [
            "x" if h else "o" if s else "+" if a else "#" if ship else "."
            for s, h, a, ship in zip(shot, hit, aimed, ships, strict=True)
        ]
        return [board.split(marks, self.columns)]

    def action_cells(self, state: BattleshipState, row: int) -> Tensor:
        return self._targets & ~state.shot[row]

    @property
    def board_format(self) -> board.BoardFormat:
        return board.BoardFormat(1, self.columns) if self.rows == 1 else super().board_format

    def parse_all(self, texts: Sequence[str]) -> BattleshipState:
        if "sunk" in self.show or "first_hit" in self.show:
            raise ValueError("what is shown beside the board cannot be read from a drawing")
        cells = torch.tensor([[".ox+".index(mark) for mark in self._read(text)] for text in texts])
        hit = cells == 2
        shot = hit | (cells == 1)
        start = self._start(torch.zeros(len(texts), self.num_cells, dtype=torch.uint8))
        return replace(
            start,
            ships=HIDDEN,
            shot=shot,
            hit=hit,
            aimed=cells == 3,
            done=hit.sum(1) == self.ship_cells,
            turn=(shot.sum(1) + self.shots - 1) // self.shots,
            score=hit.sum(1, keepdim=True).float(),
        )

    def _read(self, text: str) -> list[str]:
        """The marks of the cells, as many of each as a game can have."""
        (marks,) = board.read(text, self.board_format, ".ox+")
        hits, aimed = marks.count("x"), marks.count("+")
        shots = hits + marks.count("o")
        if hits > self.ship_cells:
            raise ValueError(f"{hits} hits, and the fleet has {self.ship_cells} cells")
        if aimed >= max(self.shots, 1) or (aimed and not self.sequential):
            raise ValueError("more cells are aimed at than an unfinished turn can have")
        if shots != self.num_cells and shots % self.shots:
            raise ValueError(f"{shots} cells shot at are no whole number of turns")
        return marks

    def action_to_string(self, state: BattleshipState, row: int, action: int) -> str:
        fresh = self._targets[action] & ~state.shot[row]
        return " ".join(self._name_cell(cell) for cell in fresh.nonzero()[:, 0].tolist())

    def _name_cell(self, cell: int) -> str:
        return str(cell) if self.rows == 1 else board.cell_name(cell, self.columns)

    def _start(self, ships: Tensor) -> BattleshipState:
        batch, device = len(ships), ships.device
        nothing = torch.zeros(ships.shape, dtype=torch.bool, device=device)
        return BattleshipState(
            done=torch.zeros(batch, dtype=torch.bool, device=device),
            current_seat=torch.zeros(batch, dtype=torch.int64, device=device),
            turn=torch.zeros(batch, dtype=torch.int64, device=device),
            score=torch.zeros(batch, 1, device=device),
            ships=ships,
            shot=nothing,
            hit=nothing,
            aimed=nothing,
            sunk=nothing[:, :0].new_zeros(batch, len(self.fleet) * ("sunk" in self.show)),
            first=nothing[:, : self.num_cells * ("first_hit" in self.show)],
        )

    def _draw(self, batch: int, rng: torch.Generator) -> Tensor:
        """Uint8 [B, N]: layouts as likely as the prior has them, the ships numbered from 1."""
        if self._layouts is None:
            return sample_layouts(self.rows, self.columns, self.fleet, batch, rng)
        row = torch.randint(len(self._layouts), (batch,), generator=rng, device=rng.device)
        return self._layouts[row]


def cells_code(cells: Tensor) -> Tensor:
    """Int64 [B] from bool [B, N]: a set of cells; beyond 62, a number that two hardly share."""
    count = cells.shape[1]
    if count <= 62:
        weight = torch.ones((), dtype=torch.int64) << torch.arange(count)
    else:
        weight = torch.randint(2**62, (count,), generator=torch.Generator().manual_seed(0))
    return (cells * weight.to(cells.device)).sum(1)


def sunk_ships(ships: Tensor, hit: Tensor, lengths: Tensor) -> Tensor:
    """Bool [B, S]: which ships are hit all over, from uint8 [B, N], bool [B, N], int64 [S]."""
    parts = (ships * hit)[:, None, :] == _numbers(ships, lengths)
    return parts.sum(2) == lengths


def _numbers(ships: Tensor, lengths: Tensor) -> Tensor:
    """Uint8 [S, 1]: the numbers of the ships."""
    number = torch.arange(1, len(lengths) + 1, dtype=torch.uint8, device=ships.device)
    return number[:, None]


def battleship(board: int, **rules: Any) -> Battleship:
    """game=battleship: ships on a line of cells."""
    return Battleship(1, board, name="battleship", **rules)


def salvo(board: int, **rules: Any) -> Battleship:
    """game=salvo: ships on a square board."""
    return Battleship(board, board, name="salvo", **rules)
