"""What games with hidden fleets have in common. The folder's docstring explains the words."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from rlgames.games.capabilities import HiddenHits, HiddenInformation, Symmetric
from rlgames.games.fleets.counts import LayoutCounter
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.fleets.posterior import Posterior
from rlgames.games.fleets.sunk_ships import Seen, ShipSlots
from rlgames.games.game import HIDDEN, Game, State
from rlgames.games.symmetry import board_symmetries
from rlgames.rng import Rng

SAMPLES = 64
"""A hidden layout is chosen from this many samples if the layouts are not listed."""


@dataclass(frozen=True)
class FleetState(State):
    """ships: uint8 [B, ..., N], hidden: 0 for sea, otherwise the number of the ship, from 1."""

    ships: Tensor


S = TypeVar("S", bound=FleetState)


class FleetGame(Game[S], HiddenHits, HiddenInformation, Symmetric):
    """A game where the seat to move shoots at a hidden fleet.

    slots: the ships as announcements tell of them. announces_sunk_ships: whether there are any.
    """

    fleet: Fleet
    slots: ShipSlots
    announces_sunk_ships: bool

    @abstractmethod
    def seen(self, state: S) -> Seen:
        """What the seat to move knows of the fleet that it shoots at."""

    @abstractmethod
    def _start(self, ships: Tensor) -> S:
        """Initial positions with these fleets, uint8 [B, N], or [B, seats, N] if all seats have
        one."""

    def initial(self, batch: int, rng: Rng) -> S:
        seats, cells = self.spec.seats, self.fleet.num_cells
        rng = rng.rows(batch)
        if seats == 2:
            rng = rng[torch.arange(2 * batch) // 2].fold_in(torch.arange(2 * batch) % 2)
        layouts = self.fleet.sample(seats * batch, rng)
        return self._start(layouts if seats == 1 else layouts.view(batch, seats, cells))

    def ply(self, state: S) -> Tensor:
        aimed: Tensor = cast(Any, state).aimed
        return state.turn * self.spec.max_plies_per_turn + aimed.sum(1)

    def openings(self, limit: int) -> tuple[S, Tensor] | None:
        layouts, seats = self.fleet.layouts, self.spec.seats
        if layouts is None or len(layouts) ** seats > limit:
            return None
        every = torch.cartesian_prod(*[torch.arange(len(layouts), device=layouts.device)] * seats)
        probability = torch.full((len(every),), 1 / len(every), dtype=torch.float64)
        return self._start(layouts[every]), probability

    def public(self, state: S) -> S:
        return replace(state, ships=HIDDEN)

    def rewind(self, state: S) -> S:
        return self._start(state.ships)

    def symmetries(self) -> Tensor:
        """All boards of a position are transformed together."""
        return board_symmetries(self.fleet.rows, self.fleet.columns)

    @property
    def target_planes(self) -> list[int]:
        """The planes of an observation that tell of the fleet that the seat to move shoots at."""
        return list(range(self.spec.observation[0]))

    @abstractmethod
    def score_actions(self, cells: Tensor) -> Tensor:
        """Float32 [B, A]: the sum over the cells of each action, from float [B, N]."""

    def layouts(self) -> Tensor | None:
        """Bool [L, N]: every layout of the fleet once, or None if there are too many to list."""
        return None if self.fleet.layouts is None else self.fleet.layouts > 0

    @cached_property
    def posterior(self) -> Posterior:
        """The distribution of the fleet given shots and hits; on the CPU."""
        return Posterior(self.fleet)

    @cached_property
    def layout_counter(self) -> LayoutCounter:
        """What counts and lists the layouts that agree."""
        return LayoutCounter(self.fleet, self.slots if self.announces_sunk_ships else None)

    def occupancy(self, state: S, samples: int = 0, rng: Rng | None = None) -> Tensor:
        """Float32 [B, N]: the probability that each cell of the hidden fleet has a ship, given all
        that the seat to move has seen; see Posterior."""
        rng = None if rng is None else rng.to("cpu")
        occupancy = self.posterior.occupancy(self.seen(state).cpu(), samples, rng)
        return occupancy.to(state.done.device)

    def exact_occupancy(self, state: S, max_steps: int) -> Tensor:
        """As occupancy, from all layouts that agree; NaN in rows where they are not known.

        max_steps: layouts that are too many to list are counted where there are at most about this
        many ways to place all ships but two.
        """
        if self.posterior.exact:
            return self.occupancy(state)
        return self.count_layouts(state, max_steps)[0]

    def count_layouts(self, state: S, max_steps: int) -> tuple[Tensor, Tensor]:
        """Float32 [B, N], as exact_occupancy, and float64 [B], how many layouts agree; both are
        counted even if the layouts are few enough to list."""
        seen, device = self.seen(state).cpu(), state.done.device
        counted = self.layout_counter.occupancy(seen, max_steps)
        occupancy, total = map(torch.from_numpy, counted)
        return occupancy.to(device).float(), total.to(device)

    def agreeing_layouts(self, state: S) -> Tensor:
        """Bool [B, L]: the listed layouts that agree with all that the seat to move has seen."""
        return self.posterior.agreeing(self.seen(state).cpu()) > 0

    def sample_layouts(self, state: S, rng: Rng) -> Tensor:
        """Uint8 [B, N]: for each position a hidden fleet that agrees with all that was seen."""
        layouts = self.posterior.sample(self.seen(state).cpu(), SAMPLES, rng.to("cpu"))
        return layouts.to(state.done.device)

    @cached_property
    def cell_names(self) -> list[str]:
        return [self.board_format.cell_name(cell) for cell in range(self.fleet.num_cells)]


def draw_events(name: str, names: list[str], turns: Tensor) -> str:
    """Events and their turns in one line: "hits: B2@1 C2@3", or "hits: none".

    names: of cells that were hit, or of ships that sank. turns: int16, one for each; 0 for none.
    """
    events = [(turn, what) for what, turn in zip(names, turns.tolist(), strict=True) if turn]
    events.sort(key=lambda event: event[0])
    return f"{name}: " + (" ".join(f"{what}@{turn}" for turn, what in events) or "none")


def parse_events(text: str, names: dict[str, list[str]]) -> tuple[dict[str, Tensor], str]:
    """The turns in the lines that draw_events wrote, by the name of the line, and the other lines.

    Raises ValueError if a line is missing or is not as draw_events writes it.
    """
    turns, others = dict[str, Tensor](), []
    for line in text.splitlines():
        name, colon, events = line.strip().partition(":")
        if colon and name in names and name not in turns:
            words = [] if events.strip() == "none" else events.split()
            turns[name] = _parse_turns(words, names[name])
        else:
            others.append(line)
    for name in names:
        if name not in turns:
            raise ValueError(f"a line such as {name + ': none'!r} is missing above the board")
    return turns, "\n".join(others)


def _parse_turns(events: list[str], names: list[str]) -> Tensor:
    turns = [0] * len(names)
    for event in events:
        match = re.fullmatch(r"([^@]*)@([1-9]\d{0,3})", event)
        if not match:
            raise ValueError(f"{event!r} is not CELL@TURN, as in B2@1")
        left = [at for at, name in enumerate(names) if name == match[1] and not turns[at]]
        if not left:
            raise ValueError(f"{match[1]!r} is none of the cells or ships that are left")
        turns[left[0]] = int(match[2])
    return torch.tensor(turns, dtype=torch.int16)
