"""The bundled agents: small, reproducible by their commands, ready to play."""

import json
from dataclasses import replace

import pytest
import torch
import yaml
from helpers import command
from markers import quick
from processes import Terminal

from rlgames.build.agents import load_shipped_agent, open_run
from rlgames.commands.study_file import read_study
from rlgames.config.commands import PlayConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.typed import from_plain, to_plain
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.find import AGENTS as FOLDER
from rlgames.runs.find import agent_strengths, run_name, run_path, shipped_agent, shipped_agents

ASKS = "your move (h for help): "
AGENTS = {
    name: [*run.words, f"seed={run.seeds[0]}"] for name, run in read_study("agents").runs.items()
}
MEASURED = yaml.safe_load((FOLDER / "strength.yaml").read_text(encoding="utf-8"))
RECIPE = ["game", "reward", "policy", "sampling", "learner", "opponent", "search"]
RECIPE += ["games", "batch", "lr", "seed"]


def test_there_is_one_for_each_game_and_all_are_small():
    games = {*option_names("game")}
    assert {*shipped_agents()} == {*AGENTS} == games, "docs/adding-a-game.md has the steps"
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


@pytest.mark.parametrize("game", AGENTS)
def test_its_command_makes_it(game):
    checkpoint = Checkpoint.read(shipped_agent(game))
    trained = to_plain(from_plain(checkpoint.config))
    typed = to_plain(load_config(TrainConfig, AGENTS[game]))
    assert [trained.get(name) for name in RECIPE] == [typed.get(name) for name in RECIPE]
    assert not checkpoint.state


def test_its_strength_is_a_short_phrase_with_the_measured_number():
    assert {*MEASURED} == {*agent_strengths()} == {*shipped_agents()}
    for name, measured in MEASURED.items():
        assert measured["command"].split()[:2] == ["eval", name]
        text, value = agent_strengths()[name], measured["value"]
        assert len(f"{name} {text}.") <= 100
        shown = [f"{100 * value:.0f} of 100", f"{round(value, -3):,.0f} points", f"{value:.2f}"]
        assert any(each in text for each in shown) or (value == 0 and "perfectly" in text)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_its_strength_is_what_its_command_measures(name, typed):
    measured = MEASURED[name]
    report = json.loads(typed(*measured["command"].split(), "format=json").stdout)
    metric, interval = report, None
    for key in measured["metric"].split("."):
        interval = metric.get("ci95")
        metric = metric[key]
    width = interval[1] - interval[0] if interval else 1e-5
    assert metric == pytest.approx(measured["value"], abs=width)


def test_they_are_listed_with_their_strength(typed):
    assert "  hex  wins 93 of 100 games" in typed("games", "hex").stdout
    (listed,) = json.loads(typed("games", "hex", "format=json").stdout)["agents"]
    assert listed == {"name": "hex", "strength": agent_strengths()["hex"]}


def test_it_gives_hints_where_the_rules_are_its_own():
    def agent(*words):
        return load_shipped_agent(load_config(PlayConfig, words).game, torch.device("cpu"))

    assert agent("game=2048") is not None
    assert agent("game=connect4") is not None
    assert agent("game=2048", "board=3") is None
    assert agent("game=connect4", "rows=5") is None


@pytest.mark.parametrize("option", quick(["format=table", "format=json"], "format=json"))
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["eval", "tictactoe", "games=2"], ["tictactoe"]),
        (["eval", "player=random", "game=tictactoe", "opponent=tictactoe", "games=2"], []),
        (["eval", "player=tictactoe", "game=tictactoe", "games=2"], []),
        (["eval", "tictactoe", "search=mcts", "opponent=tictactoe", "games=2"], []),
        (["show", "tictactoe"], ["tictactoe expects a return"]),
        (["show", "game=tictactoe", "player=tictactoe"], ["tictactoe expects a return"]),
        (["arena", "tictactoe", "random", "games=2"], ["1 tictactoe ", "2 random "]),
        (["arena", "tictactoe+mcts", "tictactoe", "games=2"], ["tictactoe+mcts"]),
        (["arena", "2048", "random", "board=3", "games=2"], []),
        (["watch", "tictactoe", "delay=0"], ["seat 1, tictactoe: "]),
        (["eval", "tictactoe", "opponent=connect4"], ["connect4 was trained with game=connect4"]),
        (["eval", "tictactoe", "checkpoint=best"], ["tictactoe is not a run directory"]),
    ],
)
def test_it_is_called_by_the_name_that_a_person_types(words, shown, option, typed):
    """Not by the path of a file among those of the package."""
    command = words[0]
    if command == "watch":
        option = None
    done = typed(*words, *([option] if option else []))
    text = done.stdout + done.stderr
    assert str(FOLDER) not in text.replace("\n", "")
    assert ".safetensors" not in text
    if option != "format=json":
        assert all(phrase in text for phrase in shown), text


def test_a_folder_of_its_name_comes_first(tmp_path, monkeypatch):
    """What is shown is what can be typed again."""
    monkeypatch.chdir(tmp_path)
    path = shipped_agent("tictactoe")
    assert run_name(path) == "tictactoe"
    assert run_path("tictactoe") == path
    (tmp_path / "tictactoe").mkdir()
    assert run_name(path) == str(path)
    assert run_name("tictactoe") == "tictactoe"


def test_a_command_reads_a_checkpoint_once(monkeypatch):
    read, paths = Checkpoint.read, []

    def noting(path):
        paths.append(path.stem)
        return read(path)

    monkeypatch.setattr(Checkpoint, "read", noting)
    command("eval", "tictactoe", ["search=mcts", "games=2"])
    command("arena", ["tictactoe", "tictactoe+mcts"], ["games=2"])
    assert paths == ["tictactoe"] * 2


def test_an_agent_of_a_device_that_is_missing_plays_on_the_cpu(tmp_path):
    saved = Checkpoint.read(shipped_agent("tictactoe"))
    replace(saved, config=saved.config | {"device": "cuda:7"}).write(tmp_path / "agent.safetensors")
    agent = open_run(tmp_path / "agent.safetensors").agent()
    assert {tensor.device.type for tensor in agent.policy.state_dict().values()} == {"cpu"}


def test_play_connect4_at_once(tmp_path):
    play_connect4(Terminal(tmp_path, "play", "connect4", "seed=1"))


def play_connect4(terminal):
    for turn, column in ((1, "4"), (3, "3"), (5, "5")):
        terminal.wait_for(f"turn {turn}, you play X")
        terminal.wait_for(ASKS)
        terminal.type(column + "\n")
    terminal.wait_for("turn 7")
    assert "your opponent plays" in terminal.shown
    terminal.type("q\n")
    assert terminal.ended() == 0
