"""`rlgames games`: the list of games, and what a game has."""

from __future__ import annotations

from typing import Any

from rlgames.config.commands import GamesConfig
from rlgames.config.files import Files
from rlgames.config.schema import arguments, key_fields
from rlgames.config.typed import make_option


def games_command(cfg: GamesConfig) -> dict[str, Any]:
    """Each game with its seats, goal, default board, description and reach of `rlgames solve`; or,
    if a game is named, what it has."""
    if cfg.game is not None:
        return describe_game(cfg.game)
    return {"games": [_list_game(name) for name in Files().names("game")]}


def _list_game(name: str) -> dict[str, Any]:
    from rlgames.factory.components import build_game
    from rlgames.solvers.optimum import solver_reach

    rules = make_option("game", name)
    game = build_game(rules)
    numbers = [(key, value) for key, value in arguments(rules).items() if type(value) is int]
    return {
        "name": name,
        "seats": game.spec.seats,
        "goal": game.spec.goal,
        "solve": solver_reach(game),
        "board": " ".join(f"{key}={value}" for key, value in numbers),
        "about": Files().about("game", name),
    }


def describe_game(rules: Any) -> dict[str, Any]:
    """What a game with these rules has.

    {name, about, keys: {key: {value, help}}, seats, goal, actions, observation, max_plies, solver,
    is_in_reach, capabilities: [{name, methods, makes_possible, missing}]}. solver: null if none
    fits. is_in_reach: whether it can solve these rules, given time and memory. missing: null for a
    capability that the game has, otherwise why it does not.
    """
    from rlgames.factory.components import build_game
    from rlgames.games.capabilities import CAPABILITIES, members, purpose, reason_missing
    from rlgames.solvers.optimum import solver_of

    game, fields = build_game(rules), key_fields(type(rules))
    solver = solver_of(game)
    about_solver = None if solver is None else (type(solver).__doc__ or "").strip().rstrip(".")
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
