"""What newcomers type first: it works, or one line says what to type."""

import json

import pytest
from helpers import SMALL_TRAINING, check_refused

import rlgames as package
from rlgames.config.commands import EvalConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """A directory whose outputs/ has two runs, the newest of them 20 games of seed 5."""
    folder = tmp_path_factory.mktemp("work")
    for seed in (4, 5):
        words = [*SMALL_TRAINING, "solve_seconds=0", f"seed={seed}"]
        package.train([*words, f"out={folder}/outputs/tictactoe/{seed}"])
    return folder / "outputs"


@pytest.fixture
def run(outputs, tmp_path):
    (tmp_path / "outputs").symlink_to(outputs)
    return "outputs/tictactoe/5"


def test_numbers_with_an_exponent_are_whole_numbers(typed):
    cfg = load_config(TrainConfig, ["games=1e5", "policy.layers=[1e1]"])
    assert (cfg.games, type(cfg.games), cfg.policy.layers) == (100_000, int, [10])
    assert load_config(EvalConfig, ["games=1e3", "player=random", "game=salvo"]).games == 1000
    for word in ("games=1.5e0", "games=1e400"):
        with pytest.raises(ConfigError, match="whole number"):
            load_config(TrainConfig, [word])


def test_latest_names_the_newest_run(run, typed):
    done = typed("eval", "latest", "games=2", "format=json")
    assert json.loads(done.stdout)["player"] == run
    done = typed("eval", run, "opponent=latest", "games=2", "format=json")
    assert json.loads(done.stdout)["opponent"] == run
    assert run in typed("report", "latest", "by=run").stdout
    assert "is finished" in typed("resume", "latest").stdout


def test_latest_without_a_run_is_check_refused(typed):
    check_refused(typed("eval", "latest"), "outputs/ holds no run")


def test_the_folder_of_checkpoints_stands_for_its_run(run, typed):
    done = typed("eval", f"{run}/checkpoints", "games=2", "format=json")
    answer = json.loads(done.stdout)
    assert (answer["player"], answer["checkpoint"]) == (run, "best (selected)")
    done = typed("eval", run, f"opponent={run}/checkpoints/", "games=2", "format=json")
    assert json.loads(done.stdout)["opponent"] == run


def test_another_game_is_blamed_not_its_keys(run, typed):
    check_refused(typed("eval", run, "game=connect4"),
            "game=connect4 differs from the trained game=tictactoe")  # fmt: skip


def test_a_run_behind_a_key_is_named_with_what_to_type(run, typed):
    check_refused(typed("eval", "opponent=random", run), "the run comes first",
            f"use rlgames eval {run} opponent=random")  # fmt: skip
    check_refused(typed("eval", run, "latest"), "takes one run, and latest is another")


def test_a_game_without_a_solver_is_named(typed):
    check_refused(typed("solve", "game=salvo_duel"), "there is no solver for game=salvo_duel")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["experiment=landy", "lr"], "lr=0.06 learning rate (set by experiment=landy)"),
        (["game=tictactoe", "batch"], "batch=1000 games played"),
        (["batch"], "batch=512 games played in parallel between two updates"),
        (["game=tictactoe", "policy=mlp", "learner.entropy_coef"], "learner.entropy_coef=0.2 "),
        (["game=tictactoe", "learner=reinforce", "learner.entropy_coef"], "entropy_coef=0.1 "),
    ],
)
def test_help_shows_the_value_that_a_preset_sets(words, line, typed):
    shown = typed("train", "--help", *words).stdout
    assert line in " ".join(shown.split())
    assert ("set by" in shown) == ("set by" in line or "batch=1000" in line or "=0.2" in line)
