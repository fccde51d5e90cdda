"""`rlgames games` and `rlgames experiments`: what there is, a line each."""

from __future__ import annotations

from typing import Any

from rlgames.config import catalogue
from rlgames.config.compose import load_config
from rlgames.core.text import columns, printable


def games_command(words: list[str]) -> dict[str, Any]:
    """What `rlgames games` says: each game's name, seats, goal, board by default, what it is, and
    what `rlgames solve` reaches."""
    from rlgames.factory.components import build_game
    from rlgames.solvers.optimum import solver_reach

    load_config("games", words)
    found = []
    for name in catalogue.options("game"):
        game = build_game(load_config("solve", [f"game={name}"]))
        board = [
            f"{key.name}={key.default}"
            for key in catalogue.keys_of("game", name)
            if "whole number" in key.kind and "${" not in key.default
        ]
        found.append(
            {
                "name": name,
                "seats": game.spec.seats,
                "goal": game.spec.goal,
                "solve": solver_reach(game),
                "board": " ".join(board),
                "about": catalogue.description("game", name),
            }
        )
    return {"games": found}


def experiments_command(words: list[str]) -> dict[str, Any]:
    """What `rlgames experiments` says: each preset's name, game, learner, policy and comment."""
    load_config("experiments", words)
    found = []
    for name in catalogue.options("experiment"):
        chosen = catalogue.chosen_options("train", [f"experiment={name}"])
        own = {group: chosen[group] for group in ("game", "learner", "policy")}
        found.append({"name": name} | own | {"about": catalogue.description("experiment", name)})
    return {"experiments": found}


def print_listing(report: dict[str, Any]) -> None:
    """Print either list as a table."""
    (found,) = report.values()
    rows = [[printable(str(value)) for value in item.values()] for item in found]
    print("\n".join(columns([list(found[0]), *rows])))
