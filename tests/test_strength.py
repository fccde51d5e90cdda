"""What the presets reach, over all layouts; minutes of learning."""

import json

import pytest

import rlgames
from rlgames.run_log import read_metrics

pytestmark = pytest.mark.slow


def greedy(folder, *overrides):
    run = rlgames.train([*overrides, "solve_seconds=0", f"out={folder}"])
    return rlgames.evaluate(run, ["solve_seconds=0"])["moves"]["mean"]


@pytest.mark.parametrize(("case", "most"), [(1, 6.0), (2, 12.6), (3, 3.66), (4, 3.44), (5, 5.25)])
def test_salvo_presets(case, most, tmp_path):
    found = [
        greedy(tmp_path / str(seed), f"experiment=ramesh_case{case}_tuned", f"seed={seed}")
        for seed in range(3)
    ]
    assert sum(found) / 3 <= most + 1e-9, found


def test_the_default_run_is_within_four_percent_of_the_optimum(tmp_path):
    for seed in range(5):
        assert greedy(tmp_path / str(seed), f"seed={seed}") <= 1.04 * 5.05


def test_landy_learns_as_his_plot_shows(tmp_path):
    means = []
    for seed in range(5):
        run = rlgames.train(["experiment=landy", f"seed={seed}", f"out={tmp_path}/{seed}"])
        turns = [
            line["train/turns"]
            for line in read_metrics(run / "metrics.jsonl")
            if "train/turns" in line
        ]
        means.append(sum(turns[-4:]) / 4)  # 500 games each
        assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert sum(means) / 5 <= 4.65, means
