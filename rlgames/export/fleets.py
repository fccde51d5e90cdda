"""The rules of battleship and Salvo as kernels: one hidden fleet, and nobody shoots back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.core.errors import ConfigError
from rlgames.games.battleship import Battleship
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, Floats, Words, compiled, count_bits, random_below

U = np.uint64
MAX_CELLS = 63


class FleetRules(NamedTuple):
    """A position is two sets of cells: the ships and the shots. targets: uint64 [A], the cells of
    each action. layouts: uint64 [L], the ships of each layout of the fleet. all_cells: of the
    board. shots: cells of a turn."""

    start: Any
    actions: int
    targets: Words
    layouts: Words
    all_cells: np.uint64
    shots: int


@compiled
def play(rules: FleetRules, position: Position, action: int) -> Played:
    shot = U(position[1]) | rules.targets[action]
    return (position[0], np.int64(shot)), not U(position[0]) & ~shot, np.float32(0)


@compiled
def is_legal(rules: FleetRules, position: Position, action: int) -> bool:
    """With fewer free cells than shots, a set is legal if it has all of them."""
    free = rules.all_cells & ~U(position[1])
    return bool(count_bits(rules.targets[action] & free) == min(count_bits(free), rules.shots))


@compiled
def add_chance(rules: FleetRules, position: Position, rng: Array) -> tuple[Position, bool]:
    """Places the fleet before the first turn; a placed one stays where it is."""
    if position[0]:
        return position, not U(position[0]) & ~U(position[1])
    ships = rules.layouts[random_below(rng, len(rules.layouts))]
    return (np.int64(ships), position[1]), False


@compiled
def write_cells(rules: FleetRules, position: Position, open_value: int, values: Floats) -> None:
    """0 not shot at, 1 hit, 2 missed."""
    for cell in range(len(values)):
        ship, shot = (position[0] >> cell) & 1, (position[1] >> cell) & 1
        values[cell] = np.float32(shot * (2 - ship))


@compiled
def observe(rules: FleetRules, position: Position, planes: Floats) -> None:
    """As Battleship.observe with encoding=planes: not shot at, missed, hit."""
    cells = len(planes) // 3
    for cell in range(cells):
        ship, shot = (position[0] >> cell) & 1, (position[1] >> cell) & 1
        planes[cell] = np.float32(1 - shot)
        planes[cells + cell] = np.float32(shot * (1 - ship))
        planes[2 * cells + cell] = np.float32(shot * ship)


implement(FleetRules, play, is_legal, add_chance, write_cells, observe)


def fleet_rules(game: Battleship) -> FleetRules:
    """Raises ConfigError for rules that these kernels don't support."""
    layouts = game.fleet.layouts
    if game.sequential or game.show or game.encoding != "planes" or layouts is None:
        raise ConfigError(
            f"a page plays {game.spec.name} only without announcements, with listed layouts and "
            "with all cells of a turn chosen at once",
            "use game.show=[] game.encoding=planes game.aim=joint",
        )
    if game.num_cells > MAX_CELLS:
        raise ConfigError(f"a page plays boards of {MAX_CELLS} cells at most", "use game.board=7")
    bits = U(1) << np.arange(game.num_cells, dtype=U)
    return FleetRules(
        start=(0, 0),
        actions=game.spec.actions,
        targets=game.salvos.cells.numpy() @ bits,
        layouts=(layouts > 0).numpy() @ bits,
        all_cells=bits.sum(),
        shots=game.shots,
    )
