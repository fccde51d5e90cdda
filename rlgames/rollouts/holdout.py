"""Layouts that training never sees, which reveal memorization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State
from rlgames.rng import Rng
from rlgames.rollouts.play import InitialStates

MAX_LAYOUTS = 10**9


@dataclass(frozen=True)
class Split:
    """All equally likely initial positions of a game, each in one of two sets."""

    trained_on: State
    held_out: State


def split_layouts(game: Game[Any], fraction: float, seed: int) -> Split | None:
    """Hold out this fraction of the sets of cells that a fleet can occupy; None for 0.

    The same seed holds out the same layouts. Raises ConfigError if the layouts cannot be listed,
    and if one of the sets would be empty.
    """
    if not fraction:
        return None
    from rlgames.games.battleship import Battleship

    cells = game.layouts() if isinstance(game, Battleship) else None
    openings = game.openings(MAX_LAYOUTS) if cells is not None else None
    if cells is None or openings is None:
        raise ConfigError(
            f"holdout={fraction:g} needs layouts that can be listed, as in battleship and "
            f"salvo on small boards; {game.spec.name} with these rules has none",
            "leave holdout= out",
        )
    # Adjacent ships can trade places without changing the occupied cells: such layouts look the
    # same to the player and belong to one group.
    group = cells.unique(dim=0, return_inverse=True)[1]
    num_groups = int(group.max()) + 1
    num_held_out = round(fraction * num_groups)
    if not 0 < num_held_out < num_groups:
        raise ConfigError(
            f"holdout={fraction:g} would hold out {num_held_out} of {num_groups} layouts",
            f"holdout={1 / num_groups:.2g} holds out one"
            if num_groups > 1
            else "leave holdout= out",
        )
    held_out_groups = Rng(seed, "holdout").permutation(num_groups)[:num_held_out]
    is_held_out = torch.isin(group, held_out_groups.to(group.device))
    return Split(openings[0][~is_held_out], openings[0][is_held_out])


def sampled_from(layouts: State) -> InitialStates:
    """Initial states sampled from these layouts with equal probability."""

    def initial_states(first: int, count: int, rng: Rng) -> State:
        return layouts[rng.integers(len(layouts), count)]

    return initial_states
