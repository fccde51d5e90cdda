"""The sizes of a training that nobody typed fit its board."""

from pathlib import Path

import pytest
import yaml
from rlgames.commands.launch import load_training

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.factory.components import build_game
from rlgames.factory.memory import bytes_of_game
from rlgames.training import sizes
from rlgames.training.sizes import BATCH_BYTES, EVAL_BYTES, MIN_EVAL_GAMES, fit_sizes

PRESETS = sorted(path.stem for path in Path("conf/experiment").glob("*.yaml"))

LARGE = [
    ["game=gomoku", "board=19"],
    ["game=battleship", "board=1000"],
    ["game=breakthrough", "rows=16", "columns=16"],
    ["experiment=gomoku_alphazero", "board=19"],
]


def test_every_preset_keeps_its_sizes():
    assert len(PRESETS) > 50
    for name in PRESETS:
        words = [f"experiment={name}"]
        config = load_config(TrainConfig, words)
        assert fit_sizes(config, words) == config, name


@pytest.mark.parametrize("words", LARGE, ids=" ".join)
def test_a_large_board_gets_the_largest_powers_of_two_that_fit(words, capsys):
    sizes._say.cache_clear()
    config = load_config(TrainConfig, words)
    fitted = fit_sizes(config, words)
    size = bytes_of_game(build_game(config.game))
    searched = 1 if config.search is None else config.search.simulations // 4
    assert fitted.batch < config.batch
    assert fitted.batch * size * searched <= BATCH_BYTES < 2 * fitted.batch * size * searched
    assert fitted.eval_games == config.eval_games or (
        fitted.eval_games * size <= EVAL_BYTES < 2 * fitted.eval_games * size
    )
    said = capsys.readouterr().err
    assert f"batch={fitted.batch} instead of {config.batch}" in said
    assert f" batch={config.batch} " in said.partition(";")[2]  # what to type to keep it
    assert ("eval_games" in said) == (fitted.eval_games < config.eval_games)
    assert fit_sizes(config, words) == fitted
    assert not capsys.readouterr().err  # it is said once


def test_sizes_that_are_typed_or_come_from_a_file_stay():
    words = ["game=battleship", "board=1000"]
    config = load_config(TrainConfig, words)
    assert fit_sizes(config, [*words, "batch=256"]).batch == 256
    assert fit_sizes(config, [*words, "++eval_games=500"]).eval_games == 500
    assert fit_sizes(config, [*words, "config=other.yaml"]) == config
    huge = load_config(TrainConfig, ["game=salvo", "board=20", "shots=2"])
    assert fit_sizes(huge, []).batch >= 1
    assert fit_sizes(huge, []).eval_games >= MIN_EVAL_GAMES


def test_runs_and_jobs_record_the_sizes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sizes, "BATCH_BYTES", 50_000)
    small = [
        "game=tictactoe",
        "policy=mlp",
        "policy.layers=[4]",
        "games=8",
        "solve_seconds=0",
        "eval_games=4",
    ]
    assert load_training(small)[0].batch < load_config(TrainConfig, small).batch
    run = package.train([*small, f"out={tmp_path}/run"])
    batch = yaml.safe_load((run / "config.yaml").read_text())["batch"]
    assert batch == 16
    assert yaml.safe_load((run / ".hydra/config.yaml").read_text())["batch"] == batch
    monkeypatch.setattr(sizes, "BATCH_BYTES", 20_000)
    again = package.train([f"config={run}/config.yaml", f"out={tmp_path}/again"])
    assert yaml.safe_load((again / "config.yaml").read_text())["batch"] == batch
    jobs = ["seed=0,1", f"out={tmp_path}/sweep", "dry_run=true", "-m"]
    from rlgames.cli.training import train_command

    assert train_command([*small, *jobs]) == 0
    assert capsys.readouterr().err.count("instead of") == 2
