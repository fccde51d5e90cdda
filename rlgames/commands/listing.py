"""`rlgames games` and `rlgames experiments`: lists of games and presets."""

from __future__ import annotations

from typing import Any

from rlgames.config import catalogue
from rlgames.config.compose import load_config
from rlgames.core.text import columns, printable


def games_command(words: list[str]) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description and reach of `rlgames solve`."""
    from rlgames.factory.components import build_game
    from rlgames.solvers.optimum import solver_reach

    load_config("games", words)
    entries = []
    for name in catalogue.options("game"):
        game = build_game(load_config("solve", [f"game={name}"]))
        board = [
            f"{key.name}={key.default}"
            for key in catalogue.keys_of("game", name)
            if "whole number" in key.kind and "${" not in key.default
        ]
        entries.append(
            {
                "name": name,
                "seats": game.spec.seats,
                "goal": game.spec.goal,
                "solve": solver_reach(game),
                "board": " ".join(board),
                "about": catalogue.description("game", name),
            }
        )
    return {"games": entries}


def experiments_command(words: list[str]) -> dict[str, Any]:
    """Each preset with its game, learner, policy and description."""
    load_config("experiments", words)
    entries = []
    for name in catalogue.options("experiment"):
        chosen = catalogue.chosen_options("train", [f"experiment={name}"])
        groups = {group: chosen[group] for group in ("game", "learner", "policy")}
        entries.append(
            {"name": name} | groups | {"about": catalogue.description("experiment", name)}
        )
    return {"experiments": entries}


def print_listing(report: dict[str, Any]) -> None:
    """Print either list as a table."""
    (entries,) = report.values()
    rows = [[printable(str(value)) for value in item.values()] for item in entries]
    print("\n".join(columns([list(entries[0]), *rows])))
