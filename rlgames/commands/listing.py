"""`rlgames games` and `rlgames experiments`: lists of games and presets."""

from __future__ import annotations

from typing import Any

from rlgames.commands.configs import SolveConfig
from rlgames.config.compose import load_config
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import chosen_options, option_keys
from rlgames.config.schema import Group
from rlgames.config.training import FormatConfig, TrainConfig
from rlgames.core.text import columns, printable


def games_command(words: list[str]) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description and reach of `rlgames solve`."""
    from rlgames.factory.components import build_game
    from rlgames.solvers.optimum import solver_reach

    load_config(FormatConfig, words)
    files = OptionFiles(split_folders(words)[0])
    entries = []
    for name in files.names("game"):
        game = build_game(load_config(SolveConfig, [*words, f"game={name}"]).game)
        board = [
            f"{key.name}={key.default}"
            for key in option_keys("game", Group("game", None, ""), name, files)
            if "whole number" in key.kind and "${" not in key.default
        ]
        entries.append(
            {
                "name": name,
                "seats": game.spec.seats,
                "goal": game.spec.goal,
                "solve": solver_reach(game),
                "board": " ".join(board),
                "about": files.help("game", name),
            }
        )
    return {"games": entries}


def experiments_command(words: list[str]) -> dict[str, Any]:
    """Each preset with its game, learner, policy and description."""
    load_config(FormatConfig, words)
    files = OptionFiles(split_folders(words)[0])
    entries = []
    for name in files.names("experiment"):
        chosen = chosen_options(TrainConfig, [], files.preset(name))
        groups = {group: chosen[group] for group in ("game", "learner", "policy")}
        entries.append({"name": name} | groups | {"about": files.help("experiment", name)})
    return {"experiments": entries}


def print_listing(report: dict[str, Any]) -> None:
    """Print either list as a table."""
    (entries,) = report.values()
    rows = [[printable(str(value)) for value in item.values()] for item in entries]
    print("\n".join(columns([list(entries[0]), *rows])))
