"""`rlgames games`, `agents` and `experiments`: lists, and what a game has."""

from __future__ import annotations

from typing import Any

from rlgames.commands.configs import GamesConfig
from rlgames.config.compose import load_config
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import Key, chosen_options, option_keys
from rlgames.config.schema import Group
from rlgames.config.training import FormatConfig, TrainConfig
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.runs.names import agent_strengths, shipped_agents


def games_command(names: list[str], words: list[str]) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description and reach of `rlgames solve`; or,
    if a game is named, what it has."""
    files = OptionFiles(split_folders(words)[0])
    for name in names:
        if name not in files.names("game"):
            raise ConfigError(f"there is no game {name}", nearest(name, files.names("game")))
    if len(names) > 1:
        raise ConfigError(f"games shows one game, and {names[1]} is another", "omit it")
    cfg = load_config(GamesConfig, [*(f"game={name}" for name in names), *words])
    if cfg.game is not None:
        return describe_game(cfg.game, files)
    return {"games": [_list_game(name, words, files) for name in files.names("game")]}


def _list_game(name: str, words: list[str], files: OptionFiles) -> dict[str, Any]:
    from rlgames.factory.components import build_game
    from rlgames.solvers.optimum import solver_reach

    rules = load_config(GamesConfig, [*words, f"game={name}"]).game
    assert rules is not None
    game = build_game(rules)
    board = [
        f"{key.name}={key.default}"
        for key in _game_keys(name, files)
        if "whole number" in key.kind and "${" not in key.default
    ]
    return {
        "name": name,
        "seats": game.spec.seats,
        "goal": game.spec.goal,
        "solve": solver_reach(game),
        "board": " ".join(board),
        "about": files.help("game", name),
    }


def _game_keys(name: str, files: OptionFiles) -> list[Key]:
    return option_keys("game", Group("game", None, ""), name, files)


def describe_game(rules: Any, files: OptionFiles) -> dict[str, Any]:
    """What a game with these rules has.

    {name, about, keys: {key: {value, help}}, seats, goal, actions, observation, max_plies, solver,
    is_in_reach, capabilities: [{name, methods, makes_possible, missing}]}. solver: null if none
    fits. is_in_reach: whether it can solve these rules, given time and memory. missing: null for a
    capability that the game has, otherwise why it does not.
    """
    from rlgames.factory.components import build_game
    from rlgames.games.capabilities import CAPABILITIES, members, purpose, reason_missing
    from rlgames.solvers.optimum import solver_of

    game, values = build_game(rules), to_plain(rules)
    solver = solver_of(game)
    about_solver = None if solver is None else (type(solver).__doc__ or "").strip().rstrip(".")
    return {
        "name": rules.name,
        "about": files.help("game", rules.name),
        "keys": {
            key.name: {"value": values[key.name.rpartition(".")[2]], "help": key.help}
            for key in _game_keys(rules.name, files)
        },
        "seats": game.spec.seats,
        "goal": game.spec.goal,
        "actions": game.spec.actions,
        "observation": list(game.spec.observation),
        "max_plies": game.spec.max_plies,
        "solver": about_solver,
        "is_in_reach": solver is not None and solver.is_in_reach,
        "capabilities": [
            {
                "name": capability.__name__,
                "methods": members(capability),
                "makes_possible": purpose(capability),
                "missing": reason_missing(game, capability) or None,
            }
            for capability in CAPABILITIES
        ],
    }


def agents_command(words: list[str]) -> dict[str, Any]:
    """Each agent that comes with rlgames, and how strong it is."""
    load_config(FormatConfig, words)
    strengths = agent_strengths()
    entries = [{"name": name, "strength": strengths[name]} for name in shipped_agents()]
    return {"agents": entries}


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
