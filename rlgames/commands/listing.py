"""`rlgames games`: the list of games, and what a game has."""

from __future__ import annotations

from typing import Any

from rlgames.config.commands import GamesConfig
from rlgames.config.files import Files
from rlgames.config.schema import arguments, key_fields
from rlgames.config.typed import make_option
from rlgames.runs.find import agent_strengths


def games_command(cfg: GamesConfig) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description, reach of `rlgames solve`, bundled
    agents and presets; or, if a game is named, what it has."""
    if cfg.game is not None:
        return describe_game(cfg.game)
    presets = list_presets()
    return {"games": [_list_game(name, presets) for name in Files().names("game")]}


def _list_game(name: str, presets: list[dict[str, str]]) -> dict[str, Any]:
    from rlgames.config.registry import make
    from rlgames.solvers.optimum import solver_reach

    rules = make_option("game", name)
    game = make("game", rules)
    numbers = [(key, value) for key, value in arguments(rules).items() if type(value) is int]
    return {
        "name": name,
        "seats": game.spec.seats,
        "goal": game.spec.goal,
        "solve": solver_reach(game),
        "board": " ".join(f"{key}={value}" for key, value in numbers),
        "agents": [each["name"] for each in _agents(name)],
        "presets": [each["name"] for each in presets if each["game"] == name],
        "about": Files().about("game", name),
    }


def _agents(game: str) -> list[dict[str, str]]:
    """The bundled agents of a game, and how strong they are."""
    strengths = agent_strengths()
    return [{"name": game, "strength": strengths[game]}] if game in strengths else []


def describe_game(rules: Any) -> dict[str, Any]:
    """What a game with these rules has.

    {name, about, keys: {key: {value, help}}, seats, goal, actions, observation, max_plies, solver,
    is_in_reach, capabilities: [{name, methods, makes_possible, missing}], agents: [{name,
    strength}], presets: [{name, learner, policy, about}]}. solver: null if none fits. is_in_reach:
    whether it can solve these rules, given time and memory. missing: null for a capability that the
    game has, otherwise why it does not.
    """
    from rlgames.config.registry import make
    from rlgames.games.capabilities import CAPABILITIES, reason_missing
    from rlgames.solvers.optimum import solver_of

    game, fields = make("game", rules), key_fields(type(rules))
    solver = solver_of(game)
    return {
        "name": rules.name,
        "about": Files().about("game", rules.name),
        "keys": {
            name: {"value": value, "help": fields[name].metadata.get("help", "")}
            for name, value in arguments(rules).items()
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
                "methods": capability.methods(),
                "makes_possible": capability.purpose(),
                "missing": reason_missing(game, capability) or None,
            }
            for capability in CAPABILITIES
        ],
        "agents": _agents(rules.name),
        "presets": [
            {key: value for key, value in preset.items() if key != "game"}
            for preset in list_presets()
            if preset["game"] == rules.name
        ],
    }


def list_presets() -> list[dict[str, str]]:
    """Each preset with its game, learner, policy and description."""
    files, presets = Files(), []
    for name in files.names("experiment"):
        chosen = files.composed("train", {"experiment": [name]}).choices
        groups = {group: chosen[group][0] for group in ("game", "learner", "policy")}
        presets.append({"name": name} | groups | {"about": files.about("experiment", name)})
    return presets
