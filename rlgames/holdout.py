"""Hidden layouts that training never meets, so that learning by heart shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlgames.build import stream
from rlgames.config import ConfigError
from rlgames.games.game import Game, State
from rlgames.play import Start


@dataclass(frozen=True)
class Split:
    """All equally likely openings of a game, each in one of two sets."""

    trained_on: State
    held_out: State


def split(game: Game[Any], share: float, seed: int) -> Split | None:
    """Hold out this share of the layouts; the same seed holds out the same ones. None for 0.

    Raises ConfigError where the layouts cannot be listed, and where one set would be empty.
    """
    if not share:
        return None
    spec = game.spec
    one_hides = spec.hidden and spec.seats == 1 and not spec.draws
    openings = game.openings(10**9) if one_hides else None
    if openings is None:
        why = "has too many to list" if one_hides else "has none"
        raise ConfigError(
            f"holdout={share:g} needs hidden layouts that can be listed, and {spec.name} {why}",
            "leave holdout= out",
        )
    layouts = openings[0]
    count = round(share * len(layouts))
    if not 0 < count < len(layouts):
        raise ConfigError(
            f"holdout={share:g} would hold out {count} of {len(layouts)} layouts",
            f"holdout={1 / len(layouts):.3g} holds out one"
            if len(layouts) > 1
            else "leave holdout= out",
        )
    order = torch.randperm(len(layouts), generator=stream(seed, "holdout"))
    order = order.to(layouts.done.device)
    held_out, trained_on = order[:count].sort().values, order[count:].sort().values
    return Split(layouts[trained_on], layouts[held_out])


def drawn_from(layouts: State, rng: torch.Generator) -> Start:
    """Openings drawn at random from these, all equally likely."""

    def start(first: int, count: int) -> State:
        row = torch.randint(len(layouts), (count,), generator=rng, device=rng.device)
        return layouts[row]

    return start
