"""`rlgames games`: the list of games, or what one game has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlgames.config.commands import GamesConfig
from rlgames.config.files import Files
from rlgames.config.schema import arguments, as_typed, key_fields
from rlgames.config.typed import make_option
from rlgames.core.text import counted, printable
from rlgames.runs.find import agent_strengths

GOALS = {"turns": "few turns", "score": "a high score", "outcome": "win, draw or loss"}
"""What a player wants, by Spec.goal."""


@dataclass(frozen=True)
class Result:
    """What `rlgames games` prints.

    fields: {games: [{name, seats, goal, solve, board, agents, presets, about}]}, or of a named game
        what describe_game returns.
    """

    fields: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return self.fields


def run(cfg: GamesConfig) -> Result:
    """List the games, or describe the one that is named."""
    if cfg.game is not None:
        return Result(describe_game(cfg.game))
    presets = list_presets()
    return Result({"games": [_list_game(name, presets) for name in Files().names("game")]})


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


def show(result: Result) -> None:
    """Print the list, or one game."""
    from rlgames.terminal.tables import print_rows

    if "games" in result.fields:
        _show_list(result.fields["games"])
        return
    game = result.fields
    planes, *board = game["observation"]
    print(printable(f"{game['name']}: {game['about']}"))
    print(
        f"  {counted(game['seats'], 'seat')}, {GOALS[game['goal']]}, "
        f"{game['actions']} actions, board {'x'.join(map(str, board))} in "
        f"{counted(planes, 'plane')}, at most {game['max_plies']:,} plies"
    )
    print("\nkeys")
    keys = game["keys"].items()
    print_rows([(f"  {name}={as_typed(key['value'])}", key["help"]) for name, key in keys])
    print("\nhas, for")
    capabilities = game["capabilities"]
    print_rows([(f"  {c['name']}", c["makes_possible"]) for c in capabilities if not c["missing"]])
    print("\ndoes not have, for")
    missing = [each for each in capabilities if each["missing"]]
    print_rows(
        [
            row
            for each in missing
            for row in ((f"  {each['name']}", each["makes_possible"]), ("", f"({each['missing']})"))
        ]
    )
    is_far = game["solver"] and not game["is_in_reach"]
    reach = "; this board is too large to solve from the start" if is_far else ""
    print(f"\nexact solver: {game['solver'] or 'none'}{reach}")
    if game["agents"]:
        print("\nagents, as in: rlgames play NAME")
        print_rows([(f"  {each['name']}", each["strength"]) for each in game["agents"]])
    if game["presets"]:
        print("\npresets, as in: rlgames train experiment=NAME")
        print_rows(
            [(f"  {p['name']}", p["learner"], p["policy"], p["about"]) for p in game["presets"]]
        )


def _show_list(games: Sequence[dict[str, Any]]) -> None:
    """Print the games as a table, and their presets."""
    from rlgames.terminal.tables import Column, print_rows, print_table

    ranks = {"name": 0, "seats": 1, "goal": 2, "solve": 3, "board": 4, "agents": 5, "about": 0}
    columns = [
        Column(name, [_word(game[name]) for game in games], rank, is_text=True)
        for name, rank in ranks.items()
    ]
    print_table(counted(len(games), "game"), columns, "table")
    print("\npresets, as in: rlgames train experiment=NAME")
    print_rows([(f"  {game['name']}", _word(game["presets"])) for game in games if game["presets"]])


def _word(value: Any) -> str:
    return printable(", ".join(value) if isinstance(value, list) else str(value))
