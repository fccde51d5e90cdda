"""References are those of the layouts that were played."""

import pytest
from helpers import command, read_result

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.training.train import train


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
    facts = read_result(tmp_path / "run")
    assert facts["optimal"] == optimal < 4.5
    assert facts["held_out_optimal"] == held_out_optimal
    report = command("eval", tmp_path / "run", []).as_dict()
    assert report["reference"]["optimal"] == pytest.approx(4.5)  # that of all layouts, as played
    for part, expected in (("trained_on", optimal), ("held_out", held_out_optimal)):
        reference = report[part]["reference"]
        assert reference["optimal"] == expected
        assert reference["random"] == pytest.approx(8.25)
        assert reference["gap_to_optimal"] >= 0
