"""What an evaluation measures."""

import pytest

from rlgames.config.compose import load_config
from rlgames.runs.files import LOWER_IS_BETTER
from rlgames.training.components import build_components
from rlgames.training.eval_metrics import EVAL_METRICS

NETWORK = ["policy=mlp", "policy.layers=[4]", "eval_games=4", "batch=4"]
GAMES = {
    "salvo": (["game=salvo", "board=3", "ships=[2]", "holdout=0.2"], ["turns", "held_out_turns"]),
    "2048": (["game=2048", "board=2", "columns=2"], ["turns", "score"]),
    "tictactoe": (
        ["game=tictactoe", "board=2", "line=2", "reward=outcome"],
        ["points", "win", "draw", "loss", "turns", "exploitability"],
    ),
}


@pytest.fixture(params=GAMES)
def evaluator_and_names(request):
    words, names = GAMES[request.param]
    cfg = load_config("train", ["experiment=null", *words, *NETWORK])
    return build_components(cfg).evaluator, names


def test_an_evaluation_has_the_metrics_of_its_game(evaluator_and_names):
    evaluator, names = evaluator_and_names
    assert evaluator.metric_names == tuple(names)
    assert [*evaluator.evaluate(4, "eval").metrics] == names


def test_best_by_and_searches_agree_on_which_values_are_better(evaluator_and_names):
    evaluator, _ = evaluator_and_names
    expected = evaluator.best_by in LOWER_IS_BETTER
    assert evaluator.lower_is_better(evaluator.best_by) == expected


def test_metrics_have_one_row_each():
    names = [metric.name for metric in EVAL_METRICS]
    assert len(set(names)) == len(names)
