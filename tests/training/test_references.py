"""References are those of the layouts that were played."""

import json

import pytest
import torch
from helpers import command, make_game, rng

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.players.player import Random
from rlgames.rollouts.holdout import split_layouts
from rlgames.training.train import train

BOARDS = [
    ("game=battleship", "board=7", "ships=[3]"),
    ("game=battleship", "board=7", "ships=[2,1]"),
    ("game=salvo", "board=3", "ships=[2]", "shots=2"),
    ("game=salvo", "board=3", "ships=[3]", "shots=3"),
]


@pytest.mark.parametrize("words", BOARDS)
def test_random_play_takes_the_same_time_on_every_layout(words):
    game = make_game(*words)
    split = split_layouts(game, 0.4, 0)
    assert split is not None
    for layouts in (split.trained_on[:1], split.trained_on, split.held_out):
        settings = EvaluationSettings(20_000, layouts=layouts)
        with torch.inference_mode():
            turns = evaluate(game, Random(game), settings, rng()).turns
        assert turns.interval is not None
        low, high = turns.interval
        assert abs(turns.value - game.expected_random_turns()) < high - low


def test_no_result_beats_the_optimum_beside_it(tmp_path):
    """On 8 layouts of which 3 are held out, greedy play was compared with the optimum of all."""
    words = ["game=battleship", "board=10", "ships=[3]", "holdout=0.4", "games=3000"]
    words += ["batch=50", "learner=ppo", "policy.layers=[32]", f"out={tmp_path}/run"]
    result = train(load_config(TrainConfig, words))
    optimal, held_out_optimal = result.references.optimal, result.references.held_out_optimal
    assert optimal is not None
    assert held_out_optimal is not None
    assert optimal <= result.best.evaluation.turns.value
    assert result.best.held_out is not None
    assert held_out_optimal <= result.best.held_out.turns.value
    facts = json.loads((tmp_path / "run/run.json").read_text())["results"]
    assert facts["optimal"] == optimal < 4.5
    assert facts["held_out_optimal"] == held_out_optimal
    report = command("eval", tmp_path / "run", []).as_dict()
    assert report["reference"]["optimal"] == pytest.approx(4.5)  # that of all layouts, as played
    for part, expected in (("trained_on", optimal), ("held_out", held_out_optimal)):
        reference = report[part]["reference"]
        assert reference["optimal"] == expected
        assert reference["random"] == pytest.approx(8.25)
        assert reference["gap_to_optimal"] >= 0
