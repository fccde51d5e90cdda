"""What an evaluation measures."""

import json
from itertools import count

import numpy as np
import pytest
from helpers import write_report

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.metrics import METRICS, direction
from rlgames.runs.table import Run, sort_key
from rlgames.terminal.progress import Progress
from rlgames.training.evaluator import EVAL_METRICS
from rlgames.training.parts import build_training

NETWORK = ["policy=mlp", "policy.layers=[4]", "eval_games=4", "batch=4"]
GAMES = {
    "salvo": (["game=salvo", "board=3", "ships=[2]", "holdout=0.2"], ["turns", "held_out_turns"]),
    "2048": (["game=2048", "board=2", "columns=2"], ["turns", "score", "grid_sum"]),
    "tictactoe": (
        ["game=tictactoe", "board=2", "line=2", "reward=outcome"],
        ["points", "win", "draw", "loss", "turns", "exploitability"],
    ),
}


@pytest.fixture(params=GAMES)
def training_and_names(request):
    words, names = GAMES[request.param]
    return training_of(*words), names


def test_an_evaluation_has_the_metrics_of_its_game(training_and_names):
    training, names = training_and_names
    evaluator = training.evaluator
    assert {*names} <= {*evaluator.metrics}
    assert {*evaluator.evaluate(training.greedy, 4, "eval").metrics} == {*evaluator.metrics}


def training_of(*words):
    return build_training(load_config(TrainConfig, ["experiment=null", *words, *NETWORK]))


def evaluator_of(*words):
    return training_of(*words).evaluator


DIRECTIONS = {
    ("2048", "turns"): (1, 2.0),  # longer games have higher scores
    ("2048", "score"): (1, 2.0),
    ("salvo", "turns"): (-1, 1.0),
    ("tictactoe", "points"): (1, 2.0),
    ("tictactoe", "exploitability"): (-1, 1.0),
}


@pytest.mark.parametrize(("game", "metric"), DIRECTIONS)
def test_the_best_checkpoint_search_and_report_agree_on_what_is_better(game, metric, tmp_path):
    _, best = DIRECTIONS[game, metric]
    evaluator = evaluator_of(*GAMES[game][0], f"best_by={metric}")
    assert evaluator.better({metric: best}, evaluator.better({metric: 3.0 - best}, None))
    assert not evaluator.better({metric: 3.0 - best}, evaluator.better({metric: best}, None))
    for later in (best, best * (1 + 1e-12), best * (1 - 1e-12)):  # of equals
        assert evaluator.better({metric: later}, evaluator.better({metric: best}, None))

    runs = []
    for value in (1.0, 2.0):
        path = tmp_path / str(value)
        path.mkdir()
        run = {"status": "done", "metric": evaluator.goal_metric, "best_by": metric}
        run["config"] = {"game": {"name": game}}
        (path / "run.json").write_text(json.dumps(run))
        write_report(path, "train_best", {metric: value})
        runs.append(Run.read(path))
    assert min(runs, key=lambda run: sort_key(run, run.results)).results[metric] == best
    progress = Progress(2, metric=evaluator.goal_metric)
    progress.on_metrics(1, {f"eval/{progress.metric}": 0.25})
    progress.on_metrics(2, {f"eval/{progress.metric}": 0.5})
    (_, low), (_, high) = progress.bounds()
    assert (high - low) * direction(evaluator.game.spec.goal, progress.metric) > 0


def test_of_points_that_sampling_cannot_tell_apart_the_later_are_selected():
    """The reference stays the highest, so that many small steps down are not equal to it."""
    evaluator = evaluator_of(*GAMES["tictactoe"][0], "best_by=points")
    highest = evaluator.better({"points": 0.90}, None)
    after = evaluator.better({"points": 0.89, "points_std_error": 0.02}, highest)
    assert after == highest
    assert evaluator.better({"points": 0.87, "points_std_error": 0.02}, after) is None
    assert evaluator.better({"points": 0.89, "points_std_error": 0.005}, highest) is None
    assert evaluator.better({"points": 0.91, "points_std_error": 0.02}, highest) == [0.91, 0.91]


def test_the_standard_error_of_points_is_that_of_its_games():
    training = training_of("game=tictactoe", "reward=outcome", "best_by=points")
    evaluation = training.evaluator.evaluate(training.greedy, 400, "eval").evaluation
    points = []
    for seat in evaluation.outcomes:
        points.append(np.repeat([1.0, 0.5, 0.0], seat.astype(int)))
    expected = np.sqrt(sum(each.var() / len(each) for each in points)) / 2
    assert evaluation.details("points")["points_std_error"] == pytest.approx(expected)
    assert 0 < expected < 0.05


def test_metrics_have_one_row_each():
    assert sorted([*EVAL_METRICS, "regret"]) == sorted(METRICS)


@pytest.mark.parametrize("name", ["2048", "tictactoe"])
def test_what_is_known_of_a_game_does_not_depend_on_the_clock(name, monkeypatch):
    def known():
        training = training_of(*GAMES[name][0])
        training.references.compute_random()
        return training.references.as_dict(), training.evaluator.best_by

    before = known()
    monkeypatch.setattr("time.perf_counter", count(step=3600.0).__next__)
    assert known() == before
