"""The winner of a search is evaluated on games that did not select it."""

import json

import pytest

from rlgames.commands.evaluate import evaluate_command
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.sweeps.hparam_search import evaluate_again, split_objective
from rlgames.training.run import train

SMALL = ["policy=mlp", "policy.layers=[8]", "games=100", "batch=50", "eval_every=50", "seed=3"]


def test_the_winner_is_evaluated_on_other_games_in_words(tmp_path):
    words = ["game=2048", "board=2", "eval_games=10", "solve_seconds=0", *SMALL]
    run = train(load_config(TrainConfig, [*words, f"out={tmp_path}/run"])).directory
    facts = json.loads((run / "run.json").read_text())
    for checkpoint, field in (("best", "results"), ("final", "final_results")):
        selection = facts[field]["score"]
        winner = evaluate_again(run, 4, f"{checkpoint}/score", selection)
        assert winner == evaluate_again(run, 4, f"{checkpoint}/score", selection)
        assert (winner.selection, winner.games, winner.is_exact) == (selection, 40, False)
        assert winner.again != selection
        report = evaluate_command(run, [f"checkpoint={checkpoint}", "games=40", "seed=3"])
        assert report["score"]["mean"] not in (winner.again, selection)
        assert str(winner) == (
            f"{checkpoint}/score {selection:.4f} in the games that selected it, "
            f"{winner.again:.4f} in 40 other games"
        )


def test_exact_figures_need_no_other_games(tmp_path):
    words = ["game=battleship", "board=5", "ships=[2]", *SMALL, f"out={tmp_path}/run"]
    result = train(load_config(TrainConfig, words))
    turns = result.final.metrics["turns"]
    winner = evaluate_again(result.directory, 0, "final/turns", turns)
    assert (winner.again, winner.is_exact) == (turns, True)
    assert str(winner) == f"final/turns {turns:.4f} (exact)"


@pytest.mark.parametrize(
    ("objective", "parts"),
    [
        ("turns", ("best", "turns")),
        ("best/turns", ("best", "turns")),
        ("final/turns", ("final", "turns")),
        ("eval/turns", ("best", "eval/turns")),
    ],
)
def test_an_objective_names_a_checkpoint_and_a_metric(objective, parts):
    assert split_objective(objective) == parts
