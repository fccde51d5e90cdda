"""Hidden layouts that training never meets, so that learning by heart shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.games.battleship import Battleship
from rlgames.games.game import Game, State
from rlgames.rollouts.play import InitialStates


@dataclass(frozen=True)
class Split:
    """All equally likely openings of a game, each in one of two sets."""

    trained_on: State
    held_out: State


def split_layouts(game: Game[Any], share: float, seed: int) -> Split | None:
    """Hold out this share of the sets of cells that a fleet can lie on; None for 0.

    The same seed holds out the same ones. Raises ConfigError where the layouts cannot be listed,
    and where one of the sets would be empty.
    """
    if not share:
        return None
    cells = game.layouts() if isinstance(game, Battleship) else None
    openings = game.openings(10**9) if cells is not None else None
    if cells is None or openings is None:
        raise ConfigError(
            f"holdout={share:g} needs the layouts of battleship or salvo, where they can be "
            f"listed; {game.spec.name} with these rules has none",
            "leave holdout= out",
        )
    # Ships end to end may change places: to the player those layouts are one.
    group = cells.unique(dim=0, return_inverse=True)[1]
    groups = int(group.max()) + 1
    count = round(share * groups)
    if not 0 < count < groups:
        raise ConfigError(
            f"holdout={share:g} would hold out {count} of {groups} layouts",
            f"holdout={1 / groups:.2g} holds out one" if groups > 1 else "leave holdout= out",
        )
    chosen = torch.randperm(groups, generator=make_generator(seed, "holdout"))[:count]
    out = torch.isin(group, chosen.to(group.device))
    return Split(openings[0][~out], openings[0][out])


def sampled_from(layouts: State) -> InitialStates:
    """Initial states sampled from these layouts with equal probability."""

    def initial_states(first: int, count: int, rng: torch.Generator) -> State:
        row = torch.randint(len(layouts), (count,), generator=rng, device=rng.device)
        return layouts[row]

    return initial_states
