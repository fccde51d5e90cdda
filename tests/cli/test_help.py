"""Help tells every command, group, option and key; what it tells is what the files say."""

import importlib.util
import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from helpers import check_refused

from rlgames.cli.help import command_help, overview
from rlgames.commands import listing
from rlgames.config import catalogue, command_schemas, registry
from rlgames.config.catalogue import conf_dir
from rlgames.config.checks import to_plain
from rlgames.config.command_schemas import COMMANDS
from rlgames.config.compose import load_config
from rlgames.games.battleship import Battleship
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.solvers.optimum import find_optimum, solver_reach

ROOT = Path(__file__).parents[2]
EVERY = [(group, option) for group in registry.REGISTRY for option in catalogue.options(group)]

TYPED = [name for name, command in COMMANDS.items() if command.config is not None]


@pytest.fixture(autouse=True)
def width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def explained(text, key):
    """What a help text says of a key, its kind included, in one line."""
    found = re.search(rf"^  {re.escape(key)}=(\S*)((?: .*|\n {{25}}.*)+)", text, re.MULTILINE)
    assert found, key
    return found[1], " ".join(found[2].split())


def test_the_overview_has_a_line_for_each_command_with_what_it_does_and_an_example():
    lines = overview(COMMANDS).splitlines()[2:-2]
    examples = [command.example for command in COMMANDS.values()]
    for command, line in zip(COMMANDS.values(), lines, strict=True):
        columns = [command.name, command.help, command.example]
        assert re.fullmatch("  " + " +".join(map(re.escape, columns)), line)
    assert len({line.index(text) for line, text in zip(lines, examples, strict=True)}) == 1
    assert "rlgames --version" in overview(COMMANDS).splitlines()[-1]


@pytest.mark.parametrize("command", ["train", "solve"])
def test_the_examples_are_what_can_be_typed(command):
    words = shlex.split(COMMANDS[command].example)
    assert words[:2] == ["rlgames", command]
    load_config(command, words[2:])


def test_every_command_and_its_printer_can_be_loaded():
    for command in COMMANDS.values():
        assert callable(command.load_function())
        assert command.printer is None or callable(command.load_printer())


def test_every_help_line_of_a_command_has_at_most_ten_words():
    for command in COMMANDS.values():
        assert len(command.help.split()) <= 10
    for config in command_schemas.CONFIGS.values():
        texts = [item.metadata["help"] for item in fields(config.schema)]
        for text in (*texts, *(group.help for group in config.groups)):
            assert text
            assert all(len(part.split()) <= 10 for part in text.split("; "))


@pytest.mark.parametrize("path", sorted(conf_dir().rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_key_of_a_file_is_explained(path):
    node = yaml.safe_load(path.read_text(encoding="utf-8"))
    told = catalogue.comments(path)
    group = path.parent.name
    if group == "experiment":  # its keys are those of the options that it chooses
        now = catalogue.chosen_options("train", [f"experiment={path.stem}"])
        keys = [key for option in now.items() for key in catalogue.keys_of(*option)]
        keys += [*catalogue.group_keys("train"), *catalogue.keys_of_command("train")]
        about = {key.name: key.description for key in keys}
        assert all(about[name] for name in catalogue.experiment_overrides(path.stem))
        assert catalogue.description(group, path.stem)
        return
    groups = [
        re.split("[@/ ]", name)[-1]
        for item in node.get("defaults", [])
        if isinstance(item, dict)
        for name in item
        if not name.startswith("override")
    ]
    names = [name for name in node if name not in ("defaults", "name", group)]
    for base in node.get("defaults", []):
        if isinstance(base, str) and base != "_self_":  # explained where it is declared
            told = catalogue.comments(path.with_name(f"{base}.yaml")) | told
    assert all(told.get(name) for name in [*names, *groups])
    assert group == "conf" or catalogue.description(group, path.stem)


def test_a_comment_belongs_to_the_key_before_or_below_it(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "# @package _global_\n# the whole file\nboard: 3\nline: 2  # behind\n\n"
        "# above,\n# in two lines\ncells: ['a # b', c]\ninner:\n  deep: 1 # too\nname: own\n"
    )
    assert catalogue.comments(tmp_path / "own.yaml") == {
        "line": "behind",
        "cells": "above, in two lines",
        "deep": "too",
    }


@pytest.mark.parametrize("command", TYPED)
def test_help_shows_every_group_and_key_of_a_command(command):
    record = COMMANDS[command]
    text = command_help(record, [])
    more = (config for config in (record.launch, record.sweep) if config is not None)
    names = record.config.key_names.union(*(config.key_names for config in more))
    groups = {group.name for group in catalogue.groups_of(command)}
    assert groups <= names | {"experiment"}
    for name in groups:
        assert explained(text, name)[1]
    for name in names - groups:
        assert explained(text, name)[1]
        default, told = explained(command_help(record, [name]), name)
        assert default != "???"
        assert len(told) > len(explained(text, name)[1])


@pytest.mark.parametrize(("group", "option"), EVERY)
def test_help_shows_every_key_of_an_option(group, option):
    typed = "opponent" if group == "player" else group
    text = command_help(COMMANDS["train"], [f"{typed}={option}"])
    assert text.startswith(f"{typed}={option}: {catalogue.description(group, option)}")
    values = catalogue.option_values(group, option)
    for item in fields(registry.REGISTRY[group][option].schema):
        if item.name != "name":
            prefix = f"{typed}.{option}" if group in registry.LIST_GROUPS else typed
            key = item.name if group == "game" else f"{prefix}.{item.name}"
            default, told = explained(text, key)
            assert default == catalogue.as_typed(values[item.name])
            assert all(str(choice) in told for choice in item.metadata.get("of", ()))
            assert len(told.split()) > 2


@pytest.mark.parametrize("command", ["eval", "play", "watch", "show"])
def test_help_lists_no_player_that_a_command_does_not_take(command, typed):
    asked = "player" if command == "show" else "opponent"
    for words in ([], [asked]):
        listed = re.findall(r"^    (\w+)", command_help(COMMANDS[command], words), re.MULTILINE)
        assert "random" in listed
        assert not {"self", "past"} & {*listed}
    assert "available: corner" in typed(command, "--help", f"{asked}=self").stderr
    assert {"self", "past"} <= {*command_help(COMMANDS["train"], []).split()}


def test_the_help_of_training_fits_on_two_screens():
    lines = command_help(COMMANDS["train"], []).splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "--help", "gmae=salvo"], "did you mean game?"),
        (["train", "--help", "game=slavo"], "did you mean salvo?"),
        (["train", "--help", "learner.clip_rang"], "did you mean learner.clip_range?"),
        (["train", "--help", "learner=td", "learner.clip_range"], "learner.clip_range"),
        (["help", "experimnets"], "did you mean experiments?"),
        (["game"], "did you mean games?"),
        (["games", "format=jsn"], "did you mean json?"),
        (["experiments", "fromat=json"], "did you mean format?"),
        (["completion", "zhs"], "did you mean zsh?"),
        (["eval", "--help", "opponent=randm"], "did you mean random?"),
        (["train", "--hlep"], "did you mean --help?"),
        (["--verison"], "did you mean --version?"),
        (["train", "--multi"], "did you mean --multirun?"),
        (["train", "board4=3"], "did you mean board?"),
        (["train", "--game", "salvo"], "write game=value"),
        (["train", "game=salvo", "ships=4,2"], "write a list as ships=[4,2]"),
    ],
)
def test_mistyped_words_are_answered_with_the_nearest(words, told, typed):
    check_refused(typed(*words), told)


def test_words_beside_help_select_what_it_explains(typed):
    shown = typed("train", "game=connect4", "learner=td", "batch=3", "--help").stdout
    assert shown == typed("help", "train", "game=connect4", "learner=td", "batch=3").stdout
    assert [line.split(":")[0] for line in shown.splitlines() if line[0:1].isalpha()] == [
        "game=connect4",
        "learner=td",
    ]
    assert explained(shown, "rows") == ("6", "number of rows a whole number, 1 to 61")
    assert "a whole number" in explained(shown, "batch")[1]
    assert "experiment=connect4" in shown
    assert "learner=reinforce" in typed("train", "--help", "experiment=landy").stdout
    shown = typed("eval", "some/run", "opponent=exact", "--help").stdout
    assert shown.startswith("opponent=exact: ")
    assert "4x4" not in typed("train", "--help").stdout


def test_listings_have_a_line_for_each(typed, capfd):
    games = json.loads(typed("games", "format=json").stdout)["games"]
    assert [game["name"] for game in games] == catalogue.options("game")
    of = {game["name"]: game for game in games}
    assert (of["connect4"]["seats"], of["connect4"]["solve"]) == (2, "yes")
    assert (of["salvo"]["seats"], of["salvo"]["solve"]) == (1, "yes")
    assert (of["salvo_duel"]["seats"], of["salvo_duel"]["solve"]) == (2, "no")
    assert of["tictactoe"]["board"] == "board=3 line=3"
    listing.print_listing({"games": games})
    assert len(capfd.readouterr().out.splitlines()) == len(games) + 1
    presets = json.loads(typed("experiments", "format=json").stdout)["experiments"]
    assert [preset["name"] for preset in presets] == catalogue.options("experiment")
    lines = typed("experiments").stdout.splitlines()
    for preset, line in zip(presets, lines[1:], strict=True):
        assert line.split()[:4] == [preset[name] for name in ("name", "game", "learner", "policy")]
        assert line.endswith(preset["about"])


@pytest.mark.parametrize(
    ("game", "told"),
    [
        (lambda: KInARow(3, 3, 3, False), "yes"),
        (lambda: KInARow(5, 6, 4, True), "yes"),
        (lambda: KInARow(5, 5, 4, False), "smaller boards"),
        (lambda: Game2048(2, 2), "yes"),
        (lambda: Game2048(4, 4), "smaller boards"),
        (lambda: SalvoDuel(3, 3, [2]), "no"),
        (lambda: Battleship(1, 5, [2], 1), "yes"),
        (lambda: Battleship(1, 5, [2], 1, show=["sunk"]), "yes"),
        (lambda: Battleship(10, 10, [5, 4, 3, 3, 2], 1), "smaller boards"),
    ],
)
def test_what_is_said_to_be_solvable_is_solved_and_nothing_else(game, told):
    assert solver_reach(game()) == told
    assert (find_optimum(game(), 20) is not None) == (told == "yes")


@pytest.mark.parametrize("name", ["ramesh_case5", "fleet_salvo", "dedieu_amar_adp_cloning"])
def test_an_experiment_is_listed_with_its_settings(name):
    cfg = load_config("train", [f"experiment={name}"])
    now = catalogue.chosen_options("train", [f"experiment={name}"])
    assert now["experiment"] == name
    for group in command_schemas.TRAIN.group_names:
        if group in registry.LIST_GROUPS:
            assert catalogue.option_names(now[group]) == [*cfg[group]]
        else:
            assert now.get(group) == (cfg[group].name if cfg.get(group) else None)
    for key, value in catalogue.experiment_overrides(name).items():
        if "." in key:
            group, inner = key.split(".")
            assert catalogue.as_typed(to_plain(cfg)[group][inner]) == value or "e" in value


def test_registered_parts_are_explained_and_listed(own_parts, typed):
    shown = typed("train", "--help", *own_parts).stdout
    assert re.search("strip +stones on a strip of cells", shown)
    assert re.search("little +a small one", shown)
    shown = typed("train", "--help", "game=strip", "policy=little", *own_parts).stdout
    assert explained(shown, "cells") == ("5", "how long the strip is a whole number, 2 to 20")
    assert explained(shown, "colour") == ("grey", "grey, gold")
    assert explained(shown, "policy.layers")[1].startswith("how small ")
    own = catalogue.comments(conf_dir() / "policy" / "mlp.yaml")["activation"]
    assert explained(shown, "policy.activation")[1].startswith(own)
    games = json.loads(typed("games", "format=json", *own_parts).stdout)["games"]
    strip = next(game for game in games if game["name"] == "strip")
    assert (strip["seats"], strip["board"]) == (2, "cells=5")
    presets = json.loads(typed("experiments", "format=json", *own_parts).stdout)["experiments"]
    quick = next(preset for preset in presets if preset["name"] == "quick")
    assert quick == {
        "name": "quick",
        "game": "battleship",
        "learner": "reinforce",
        "policy": "little",
        "about": "soon over",
    }


def test_the_page_of_all_keys_is_as_the_script_makes_it():
    place = importlib.util.spec_from_file_location("configs", ROOT / "scripts" / "configs.py")
    configs = importlib.util.module_from_spec(place)
    place.loader.exec_module(configs)
    assert configs.PAGE.read_text(encoding="utf-8") == configs.page(), "run scripts/configs.py"
