"""`rlgames games`: the list of games, or what one game has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config.commands import GamesConfig
from rlgames.config.conf import about, command_file, conf_dir, mapping, option_names
from rlgames.config.schema import arguments, as_typed, key_fields
from rlgames.config.typed import make_option
from rlgames.core.text import counted, printable
from rlgames.runs.find import agent_strengths

GOALS = {"turns": "few turns", "score": "a high score", "outcome": "win, draw or loss"}
"""What a player wants, by Spec.goal."""


@dataclass(frozen=True)
class Result:
    """What `rlgames games` prints: what describe_game returns of a named game, or a list of that,
    as games."""

    fields: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return self.fields


def run(cfg: GamesConfig) -> Result:
    """List the games, or describe the one that is named."""
    presets = list_presets()
    if cfg.game is not None:
        return Result(describe_game(cfg.game, presets))
    every = [make_option("game", name) for name in option_names("game")]
    return Result({"games": [describe_game(rules, presets) for rules in every]})


def describe_game(rules: Any, presets: Sequence[dict[str, str]]) -> dict[str, Any]:
    """What a game with these rules has.

    {name, about, keys: {key: {value, help}}, seats, goal, actions, observation, max_plies, solver,
    is_in_reach, agents: [{name, strength}], presets: [{name, learner, policy, about}]}. solver:
    null if none fits. is_in_reach: whether it can solve these rules, given time and memory.
    """
    name, fields, strengths = rules.name, key_fields(type(rules)), agent_strengths()
    return {
        "name": name,
        "about": about("game", name),
        "keys": {
            key: {"value": value, "help": fields[key].metadata.get("help", "")}
            for key, value in arguments(rules).items()
        },
        **(_stored_facts(rules) or computed_facts(rules)),
        "agents": [{"name": name, "strength": strengths[name]}] if name in strengths else [],
        "presets": [
            {key: value for key, value in preset.items() if key != "game"}
            for preset in presets
            if preset["game"] == name
        ],
    }


FACTS = Path(__file__).parents[1] / "games" / "facts.json"
"""The facts about every game by its default rules, which would take seconds to compute: `make
tables` writes them."""


def _stored_facts(rules: Any) -> dict[str, Any] | None:
    """The facts about a game with these rules, if they are stored."""
    stored = json.loads(FACTS.read_text(encoding="utf-8")).get(rules.name, {})
    return stored["facts"] if stored.get("keys") == arguments(rules) else None


def computed_facts(rules: Any) -> dict[str, Any]:
    """The fields of describe_game that follow from the rules."""
    from rlgames.config.registry import make
    from rlgames.solvers.optimum import solver_of

    game = make("game", rules)
    solver = solver_of(game)
    return {
        "seats": game.spec.seats,
        "goal": game.spec.goal,
        "actions": game.spec.actions,
        "observation": list(game.spec.observation),
        "max_plies": game.spec.max_plies,
        "solver": None if solver is None else solver.about,
        "is_in_reach": solver is not None and solver.is_in_reach,
    }


def facts_text() -> str:
    """The text of FACTS."""
    every = [make_option("game", name) for name in option_names("game")]
    facts = {
        rules.name: {"keys": arguments(rules), "facts": computed_facts(rules)} for rules in every
    }
    return json.dumps(facts, indent=1) + "\n"


def list_presets() -> list[dict[str, str]]:
    """Each preset with its game, learner, policy and description."""
    usual, presets = command_file("train")[0], []
    for name in option_names("experiment"):
        chosen = {key: ",".join(options) for key, options in usual.items()} | _choices(name)
        groups = {group: chosen[group] for group in ("game", "learner", "policy")}
        presets.append({"name": name} | groups | {"about": about("experiment", name)})
    return presets


def _choices(preset: str) -> dict[str, str]:
    """The options that the file of a bundled preset, and those that it extends, override."""
    choices = dict[str, str]()
    for item in mapping(conf_dir() / "experiment" / f"{preset}.yaml").get("defaults", ()):
        if isinstance(item, str):
            choices |= _choices(item)
        else:
            ((key, option),) = item.items()
            choices[key.rpartition("/")[2].rpartition("@")[2]] = str(option)
    return choices


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

    def names(entries: Sequence[dict[str, str]]) -> str:
        return ", ".join(each["name"] for each in entries)

    def board(keys: dict[str, Any]) -> str:
        numbers = {name: key["value"] for name, key in keys.items() if type(key["value"]) is int}
        return " ".join(f"{name}={value}" for name, value in numbers.items())

    reach = {True: "yes", False: "smaller boards"}
    solve = [reach[game["is_in_reach"]] if game["solver"] else "no" for game in games]
    columns = [
        Column("name", [game["name"] for game in games], is_text=True),
        Column("seats", [str(game["seats"]) for game in games], 1, is_text=True),
        Column("goal", [game["goal"] for game in games], 2, is_text=True),
        Column("solve", solve, 3, is_text=True),
        Column("board", [board(game["keys"]) for game in games], 4, is_text=True),
        Column("agents", [names(game["agents"]) for game in games], 5, is_text=True),
        Column("about", [game["about"] for game in games], is_text=True),
    ]
    print_table(counted(len(games), "game"), columns, "table")
    print("\npresets, as in: rlgames train experiment=NAME")
    print_rows([(f"  {game['name']}", names(game["presets"])) for game in games if game["presets"]])
