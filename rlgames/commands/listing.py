"""`rlgames games`: the list, and what one game has."""

from __future__ import annotations

from typing import Any

from rlgames.commands.configs import GamesConfig
from rlgames.config.compose import load_config
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import Key, chosen_options, option_keys
from rlgames.config.schema import Group
from rlgames.config.training import TrainConfig
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.runs.names import agent_strengths


def games_command(names: list[str], words: list[str]) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description, reach of `rlgames solve`, bundled
    agents and presets; or, if a game is named, what it has."""
    files = OptionFiles(split_folders(words)[0])
    for name in names:
        if name not in files.names("game"):
            raise ConfigError(f"there is no game {name}", nearest(name, files.names("game")))
    if len(names) > 1:
        raise ConfigError(f"games shows one game, and {names[1]} is another", "omit it")
    cfg = load_config(GamesConfig, [*(f"game={name}" for name in names), *words])
    if cfg.game is not None:
        return describe_game(cfg.game, files)
    presets = list_presets(files)
    return {"games": [_list_game(name, words, files, presets) for name in files.names("game")]}


def _list_game(
    name: str, words: list[str], files: OptionFiles, presets: list[dict[str, str]]
) -> dict[str, Any]:
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
        "agents": [each["name"] for each in _agents(name)],
        "presets": [each["name"] for each in presets if each["game"] == name],
        "about": files.help("game", name),
    }


def _agents(game: str) -> list[dict[str, str]]:
    """The bundled agents of a game, and how strong they are."""
    strengths = agent_strengths()
    return [{"name": game, "strength": strengths[game]}] if game in strengths else []


def _game_keys(name: str, files: OptionFiles) -> list[Key]:
    return option_keys("game", Group("game", None, ""), name, files)


def describe_game(rules: Any, files: OptionFiles) -> dict[str, Any]:
    """What a game with these rules has.

    {name, about, keys: {key: {value, help}}, seats, goal, actions, observation, max_plies, solver,
    is_in_reach, capabilities: [{name, methods, makes_possible, missing}], agents: [{name,
    strength}], presets: [{name, learner, policy, about}]}. solver: null if none fits. is_in_reach:
    whether it can solve these rules, given time and memory. missing: null for a capability that the
    game has, otherwise why it does not.
    """
    from rlgames.factory.components import build_game
    from rlgames.games.capabilities import CAPABILITIES, members, purpose, reason_missing
    from rlgames.solvers.optimum import solver_of

    game, values = build_game(rules), to_plain(rules)
    solver = solver_of(game)
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
        "solver": None if solver is None else solver.about,
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
        "agents": _agents(rules.name),
        "presets": [
            {key: value for key, value in preset.items() if key != "game"}
            for preset in list_presets(files)
            if preset["game"] == rules.name
        ],
    }


def list_presets(files: OptionFiles) -> list[dict[str, str]]:
    """Each preset with its game, learner, policy and description."""
    presets = []
    for name in files.names("experiment"):
        chosen = chosen_options(TrainConfig, [], files.preset(name))
        groups = {group: str(chosen[group]) for group in ("game", "learner", "policy")}
        presets.append({"name": name} | groups | {"about": files.help("experiment", name)})
    return presets
