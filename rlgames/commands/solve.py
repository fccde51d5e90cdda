"""`rlgames solve`: the exact optimum."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from rlgames.core.errors import ConfigError
from rlgames.factory.components import build_game
from rlgames.solvers.optimum import find_optimum


def solve_command(cfg: DictConfig) -> tuple[dict[str, Any], str]:
    """What `rlgames solve` does: {optimal, states, seconds}, null where not computed.

    With it comes what the game is about, Spec.goal.
    """
    if "game" not in cfg:
        raise ConfigError("solve needs a game", "as in: rlgames solve game=salvo board=4 shots=2")
    game = build_game(cfg)
    found = find_optimum(game, cfg.seconds, cfg.memory_gb)
    figures = (None, None, None) if found is None else (found.value, found.states, found.seconds)
    return dict(zip(("optimal", "states", "seconds"), figures, strict=True)), game.spec.goal
