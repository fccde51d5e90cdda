"""Help tells every command, group, option and key; what it tells is what the files say."""

import json
import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import pytest
from helpers import check_refused

from rlgames.cli.help import command_help
from rlgames.cli.table import COMMANDS, overview
from rlgames.config.compose import load_config
from rlgames.config.files import Files
from rlgames.config.keys import chosen_options, group_keys, option_keys, schema_keys
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Group, as_typed, groups_of, names_of
from rlgames.config.commands import TrainConfig
from rlgames.config.typed import to_plain
from rlgames.games.battleship import Battleship
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.solvers.optimum import find_optimum, solver_reach

FILES = Files()
EVERY = [(folder, option) for folder in REGISTRY for option in FILES.names(folder)]
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
    lines = overview().splitlines()[2:-2]
    examples = [command.example for command in COMMANDS.values()]
    for command, line in zip(COMMANDS.values(), lines, strict=True):
        columns = [command.name, command.help, command.example]
        assert re.fullmatch("  " + " +".join(map(re.escape, columns)), line)
    assert len({line.index(text) for line, text in zip(lines, examples, strict=True)}) == 1
    assert "rlgames --version" in overview().splitlines()[-1]


@pytest.mark.parametrize("command", ["train", "solve"])
def test_the_examples_are_what_can_be_typed(command):
    words = shlex.split(COMMANDS[command].example)
    assert words[:2] == ["rlgames", command]
    load_config(COMMANDS[command].config, words[2:])


def test_the_values_shown_are_those_of_a_run_without_words():
    text, config = command_help(COMMANDS["train"], []), load_config(TrainConfig, [])
    for name in ("games", "batch", "lr", "eval_every"):
        assert explained(text, name)[0] == as_typed(getattr(config, name))


def test_every_command_and_its_printer_can_be_loaded():
    for command in COMMANDS.values():
        assert callable(command.load_function())
        assert command.printer is None or callable(resolve_name(command.printer))


@pytest.mark.parametrize("name", FILES.names("experiment"))
def test_an_experiment_says_what_it_is_and_sets_known_keys(name):
    assert FILES.help("experiment", name)
    chosen = chosen_options(TrainConfig, [], FILES.preset(name))
    keys = [*group_keys(TrainConfig, FILES), *schema_keys(TrainConfig)]
    groups = groups_of(TrainConfig)
    for group in {*chosen} - {"experiment"}:
        keys += option_keys(group, groups[group], chosen[group], FILES)
    assert {*FILES.preset(name).settings} <= {key.name for key in keys if key.help}


@pytest.mark.parametrize("command", TYPED)
def test_help_shows_every_group_and_key_of_a_command(command):
    record = COMMANDS[command]
    text = command_help(record, [])
    more = [schema for schema in (record.launch, record.sweep) if schema is not None]
    names = {name for schema in (record.config, *more) for name in names_of(schema)}
    groups = {name for schema in (record.config, *more) for name in groups_of(schema)}
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
    assert text.startswith(f"{typed}={option}: {FILES.help(group, option)}")
    for key in option_keys(typed, Group(group, None, "", is_list=group == "logger"), option, FILES):
        default, told = explained(text, key.name)
        assert default == key.default
        assert all(choice in told for choice in key.choices)
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
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "--help", "gmae=salvo"], "did you mean game?"),
        (["train", "--help", "game=slavo"], "did you mean salvo?"),
        (["train", "--help", "learner.clip_rang"], "did you mean learner.clip_range?"),
        (["train", "--help", "learner=td", "learner.clip_range"], "learner.clip_range"),
        (["help", "repotr"], "did you mean report?"),
        (["game"], "did you mean games?"),
        (["games", "format=jsn"], "did you mean json?"),
        (["games", "fromat=json"], "did you mean format?"),
        (["completion", "zhs"], "did you mean zsh?"),
        (["eval", "--help", "opponent=randm"], "did you mean random?"),
        (["train", "--hlep"], "did you mean --help?"),
        (["--verison"], "did you mean --version?"),
        (["train", "--multi"], "did you mean --multirun?"),
        (["train", "board4=3"], "did you mean board?"),
        (["train", "--game", "salvo"], "use game=VALUE"),
        (["train", "game"], "use game=VALUE"),
        (["train", "learner.qqqq=3"], "here; learner has: clip_range, entropy_coef"),
        (["eval", "agent=hex"], "search, seed, solve_seconds"),
        (["train", "salvo"], "'salvo' is not key=value; use game=salvo"),
        (["train", "connect4_alphazero"], "use experiment=connect4_alphazero"),
        (["train", "dryrun=true"], "did you mean dry_run?"),
        (["train", "game=tictactoe", "shots=2"], "shots is a key of game=battleship or game=salvo"),
        (["train", "help"], "'help' is not key=value; omit it"),
        (
            ["train", "-m", "lr=interval(1,2)"],
            "lr=interval(1,2) is an interval; add hparams_search",
        ),
        (
            ["play", "conect4"],
            "no run 'conect4', and no agent of this name; did you mean connect4?",
        ),
        (["train", "game=salvo", "ships=4,2"], "write a list as ships=[4,2]"),
        (["eval", "--help", "gmaes"], "did you mean games?"),
        (["eval", "sweep/0_lr=0.1,seed=5"], "no run 'sweep/0_lr=0.1,seed=5'"),
        (["report", "sweep/0_lr=0.1,seed=5"], "sweep/0_lr=0.1,seed=5"),
    ],
)
def test_mistyped_words_are_answered_with_the_nearest(words, told, typed):
    check_refused(typed(*words), told)


def test_words_beside_help_select_what_it_explains(typed):
    shown = typed("train", "game=connect4", "learner=td_ntuple", "batch=3", "--help").stdout
    assert shown == typed("help", "train", "game=connect4", "learner=td_ntuple", "batch=3").stdout
    assert [line.split(":")[0] for line in shown.splitlines() if line[0:1].isalpha()] == [
        "game=connect4",
        "learner=td_ntuple",
    ]
    assert explained(shown, "rows") == ("6", "number of rows a whole number, 1 to 61")
    assert "a whole number" in explained(shown, "batch")[1]
    assert "experiment=connect4" in shown
    assert "learner=reinforce" in typed("train", "--help", "experiment=landy").stdout
    shown = typed("eval", "some/run", "opponent=exact", "--help").stdout
    assert shown.startswith("opponent=exact: ")
    assert "4x4" not in typed("train", "--help").stdout


def test_games_fit_a_narrow_terminal(typed, monkeypatch):
    every = {line.split()[0] for line in typed("games").stdout.splitlines() if line}
    for module in ("listing", "text_tables"):
        monkeypatch.setattr(f"rlgames.cli.{module}.terminal_width", lambda: 80)
    lines = typed("games").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert every <= {word for line in lines for word in line.split()}


def test_games_are_listed_with_their_presets_and_agents(typed):
    games = json.loads(typed("games", "format=json").stdout)["games"]
    assert [game["name"] for game in games] == FILES.names("game")
    of = {game["name"]: game for game in games}
    assert (of["connect4"]["seats"], of["connect4"]["solve"]) == (2, "yes")
    assert (of["salvo"]["seats"], of["salvo"]["solve"]) == (1, "yes")
    assert (of["salvo_duel"]["seats"], of["salvo_duel"]["solve"]) == (2, "no")
    assert of["tictactoe"]["board"] == "board=3 line=3"
    presets = [preset for game in games for preset in game["presets"]]
    assert sorted(presets) == sorted(FILES.names("experiment"))
    head, *table, _, _ = typed("games").stdout.splitlines()[: len(games) + 3]
    assert head.split() == ["name", "seats", "goal", "solve", "board", "agents", "about"]
    assert [line.split()[0] for line in table] == [game["name"] for game in games]
    lines = typed("games").stdout.splitlines()[len(games) + 3 :]
    assert [line.split(maxsplit=1) for line in lines] == [
        [game["name"], ", ".join(game["presets"])] for game in games if game["presets"]
    ]
    lines = typed("games", "hex").stdout.splitlines()
    hex_presets = json.loads(typed("games", "hex", "format=json").stdout)["presets"]
    for preset, line in zip(hex_presets, lines[-len(hex_presets) :], strict=True):
        assert line.split()[:3] == [preset[name] for name in ("name", "learner", "policy")]
        assert line.endswith(preset["about"])


@pytest.mark.parametrize(
    ("game", "told"),
    [
        (lambda: KInARow(3, 3, 3, False), "yes"),
        (lambda: KInARow(5, 6, 4, True), "yes"),
        (lambda: KInARow(6, 6, 4, False), "smaller boards"),
        (lambda: Game2048(2, 2), "yes"),
        (lambda: Game2048(4, 4), "smaller boards"),
        (lambda: SalvoDuel(3, 3, [2]), "no"),
        (lambda: Battleship(1, 5, [2], 1), "yes"),
        (lambda: Battleship(1, 5, [2], 1, show=["sunk"]), "no"),
        (lambda: Battleship(10, 10, [5, 4, 3, 3, 2], 1), "smaller boards"),
    ],
)
def test_what_is_said_to_be_solvable_is_solved_and_nothing_else(game, told):
    assert solver_reach(game()) == told
    assert (find_optimum(game(), 20) is not None) == (told == "yes")


@pytest.mark.parametrize("name", ["ramesh_case5", "fleet_salvo", "dedieu_amar_adp_cloning"])
def test_an_experiment_is_listed_with_its_settings(name):
    cfg = load_config(TrainConfig, [f"experiment={name}"])
    now = chosen_options(TrainConfig, [], FILES.preset(name))
    assert now["experiment"] == name
    for group, node in groups_of(TrainConfig).items():
        if node.is_list:
            assert now[group].strip("[]").split(",") == [*getattr(cfg, group)]
        else:
            assert now.get(group) == getattr(getattr(cfg, group), "name", None)
    for key, value in FILES.preset(name).settings.items():
        if "." in key:
            group, inner = key.split(".")
            assert as_typed(to_plain(cfg)[group][inner]) == value or "e" in value


def test_registered_parts_are_explained_and_listed(own_parts, typed):
    shown = typed("train", "--help", *own_parts).stdout
    assert re.search("strip +stones on a strip of cells", shown)
    assert re.search("little +a small one", shown)
    shown = typed("train", "--help", "game=strip", "policy=little", *own_parts).stdout
    assert explained(shown, "cells") == ("5", "how long the strip is a whole number, 2 to 20")
    assert explained(shown, "colour") == ("grey", "grey, gold")
    assert explained(shown, "policy.layers")[0] == "[8]"
    games = json.loads(typed("games", "format=json", *own_parts).stdout)["games"]
    strip = next(game for game in games if game["name"] == "strip")
    assert (strip["seats"], strip["board"]) == (2, "cells=5")
    presets = json.loads(typed("games", "battleship", "format=json", *own_parts).stdout)["presets"]
    quick = next(preset for preset in presets if preset["name"] == "quick")
    assert quick == {
        "name": "quick",
        "learner": "reinforce",
        "policy": "little",
        "about": "soon over",
    }


def test_commands_of_the_makefile_have_the_keys_that_it_sets(typed):
    lines = (Path(__file__).parents[2] / "Makefile").read_text().splitlines()
    commands = [line.partition("$(BIN)/rlgames ")[2].split() for line in lines]
    for name, *words in filter(None, commands):
        typed_keys = [word for word in words if "=" in word]
        said = typed(name, "--help", *typed_keys)
        assert said.returncode == 0, said.stderr
