"""docs/metrics.md explains what runs log, all of it, and nothing else."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rlgames as package
from rlgames.config.registry import REGISTRY
from rlgames.games.game_2048 import Game2048
from rlgames.players.player import Random
from rlgames.rollouts.play import GamePool
from rlgames.runs.files import read_metrics
from rlgames.training.progress import game_statistics

PAGE = Path(package.__file__).parent.parent / "docs" / "metrics.md"

TINY = ["experiment=null", "games=8", "batch=4", "eval_games=4", "log_every=4", "eval_every=8"]
NETWORK = ["policy=mlp", "policy.layers=[4]"]
SEA = ["game=salvo", "board=3", "ships=[2]", "shots=1"]
TILES = ["game=2048", "board=2", "columns=2"]
RUNS = {
    "ppo": [*SEA, *NETWORK, "holdout=0.2"],
    "reinforce": [
        *("game=connect4", "rows=3", "columns=4", "line=3", "reward=outcome", *NETWORK),
        "analyze_every=8",
    ],
    "td": ["game=tictactoe", "reward=outcome", "policy=table", "sampling=epsilon_greedy"],
    "td_ntuple": [*TILES, "policy=ntuple", "reward=score", "sampling=argmax"],
    "td_lambda": [*TILES, *NETWORK, "reward=score", "sampling=argmax"],
    "adp": [*TILES, "policy=linear", "reward=score", "sampling=epsilon_greedy"],
    "dqn": [
        *SEA,
        *NETWORK,
        "sampling=epsilon_greedy",
        "learner.buffer_size=64",
        "learner.minibatch_size=8",
    ],
    "behavior_cloning": ["game=tictactoe", *NETWORK, "demonstrations={record}", "clone_epochs=1"],
    "occupancy": [*SEA, *NETWORK],
    "alphazero": [
        *("game=tictactoe", *NETWORK, "search=mcts", "search.simulations=2", "search.leaf=value"),
        *("learner.buffer_size=50", "reward=outcome"),
    ],
}
"""A run for each learner; together they have games of each kind."""


def logged(run):
    """The names of all that TensorBoard shows of a run, but what plugins keep for themselves."""
    events = EventAccumulator(str(run)).Reload()
    names = {name for part in ("scalars", "images") for name in events.Tags()[part]}
    texts = {"config", "results"}
    return names | {name for name in texts if f"{name}/text_summary" in events.Tags()["tensors"]}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The names that all of the runs log."""
    folder = tmp_path_factory.mktemp("runs")
    record = folder / "record.jsonl"
    package.evaluate(None, ["player=random", "game=tictactoe", "games=4", f"record={record}"])
    found: set[str] = set()
    for learner, words in RUNS.items():
        words = [word.format(record=record) for word in words]
        run = package.train([*TINY, *words, f"learner={learner}", f"out={folder}/{learner}"])
        found |= logged(run)
    return found


@pytest.mark.slow
def test_the_page_explains_exactly_what_runs_log(everything):
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    matches = {name: [own for own in everything if fnmatchcase(own, name)] for name in explained}
    assert set().union(*matches.values()) == everything
    assert all(matches.values()), [name for name, found in matches.items() if not found]


def test_every_learner_has_a_run():
    assert set(RUNS) == set(REGISTRY["learner"])


def test_runs_of_2048_log_the_sum_of_the_grid(tmp_path):
    """The ordinate of Dedieu and Amar's figures 3 and 4."""
    game = Game2048(2, 2)
    final: Any = GamePool(game, [Random(game)], 9, torch.Generator().manual_seed(1)).run().state
    tiles = [[2**e for e in row if e] for row in game.tiles(final).tolist()]
    expected = sum(map(sum, tiles)) / len(tiles)
    assert game_statistics(game, final)["grid_sum"] == pytest.approx(expected)
    words = ["game=2048", "policy=mlp", "policy.layers=[8]", "board=2", "games=20", "batch=10"]
    words += ["log_every=10", "eval_every=10"]
    run = package.train([*words, "eval_games=5", "solve_seconds=0", f"out={tmp_path}/run"])
    lines = read_metrics(run / "metrics.jsonl")
    sums = [line["train/grid_sum"] for line in lines if "train/grid_sum" in line]
    assert len(sums) == 2  # one for each batch
    assert all(4 <= value <= 60 for value in sums)
    assert all(("eval/grid_sum" in line) == ("eval/score" in line) for line in lines)
    report = package.evaluate(run, ["games=5", "solve_seconds=0"])
    assert set(report["grid_sum"]) == set(report["moves"])
