"""Games that select something are never the games that are reported."""

import pytest
from helpers import command

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.evaluation import evaluate
from rlgames.rng import SELECTION_STREAM, Rng
from rlgames.training.train import train

SMALL = ["policy.layers=[8]", "games=100", "batch=50", "eval_every=50", "solve_seconds=0"]


@pytest.fixture
def first_numbers(monkeypatch):
    """The first random number of each evaluation's games."""
    numbers = []
    real = evaluate.play_all

    def play_all(pool, records=False):
        numbers.append(float(pool.rng.uniform(1)))
        return real(pool, records)

    monkeypatch.setattr(evaluate, "play_all", play_all)
    return numbers


def test_selection_final_evaluation_report_and_arena_play_different_games(first_numbers, tmp_path):
    run = tmp_path / "run"
    words = ["game=tictactoe", "policy=mlp", "eval_games=20", *SMALL, f"out={run}"]
    train(load_config(TrainConfig, words))
    first, *selection = first_numbers  # random play comes first
    selecting = float(Rng(0, SELECTION_STREAM).uniform(1))
    num_final = len(selection) - selection.count(selecting)
    assert selection == [selecting] * 2 + selection[2:]
    assert num_final in (1, 2)
    assert len(set(selection[2:])) == 1  # best and final meet the same games
    first_numbers.clear()
    command("eval", run, ["games=20", "solve_seconds=0"])
    command("arena", [str(run), "random"], ["games=20"])
    streams = [first, selecting, selection[2], *first_numbers]
    assert len(set(streams)) == 5


def test_the_games_of_a_pair_do_not_depend_on_who_else_plays():
    words = ["game=tictactoe", "games=60"]

    def score(*players):
        report = command("arena", [*players], words).as_dict()
        result = {each["name"]: each for each in report["players"]}
        column = list(players).index("random")
        return result["win_or_block"]["points"][column]

    expected = score("win_or_block", "random")
    assert score("random", "win_or_block") == expected
    assert score("random", "random+mcts", "win_or_block") == expected
    assert 0.6 < expected < 1
