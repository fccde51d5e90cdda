"""What the presets reach; minutes of learning."""

import json

import pytest

import rlgames
from rlgames.runs.files import read_metrics

pytestmark = pytest.mark.long


def greedy(folder, *overrides):
    run = rlgames.train([*overrides, "solve_seconds=0", f"out={folder}"])
    return rlgames.evaluate(run, ["solve_seconds=0"])["moves"]["mean"]


@pytest.mark.parametrize(
    ("case", "most"), [(1, 6.0), (2, 12.4), (3, 85 / 24), (4, 3.375), (5, 5.075)]
)
def test_salvo_presets(case, most, tmp_path):
    found = [
        greedy(tmp_path / str(seed), f"experiment=ramesh_case{case}_tuned", f"seed={seed}")
        for seed in range(3)
    ]
    assert sum(found) / 3 <= most + 1e-9, found


def test_rollouts_bring_cases_2_and_5_close_to_the_optimum(tmp_path):
    pretrained, alone = [], []
    for seed in range(3):
        first = tmp_path / f"first{seed}"
        greedy(first, "experiment=ramesh_case2_occupancy", f"seed={seed}")
        words = ["experiment=ramesh_case2_finetuned", f"init_from={first}", f"seed={seed}"]
        pretrained.append(greedy(tmp_path / f"second{seed}", *words))
        words = ["experiment=ramesh_case5_rollout", f"seed={seed}"]
        alone.append(greedy(tmp_path / f"alone{seed}", *words))
    assert sum(pretrained) / 3 <= 1.001 * 12.1182, pretrained
    assert sum(alone) / 3 <= 1.002 * 5.05, alone


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


def score_over_random(report):
    return report["score"]["mean"] / report["reference"]["random"]


REACHED = {
    "game=tictactoe": (2000, lambda r: r["loss"]["count"] == r["exploitability"] == 0),
    "game=connect4": (4000, lambda r: min(seat["win"]["rate"] for seat in r["seats"]) >= 0.95),
    "game=2048": (400, lambda r: score_over_random(r) >= 60),
    "experiment=hickman_tuned": (100, lambda r: r["exploitability"] == 0),
    "experiment=dedieu_amar_stochastic_tuned": (
        *(1000, lambda r: score_over_random(r) >= 4 and r["reach"]["2048"]["rate"] >= 0.01),
    ),
    "experiment=fleet": (2000, lambda r: r["moves"]["mean"] <= 47.9),
    "experiment=fleet_salvo": (2000, lambda r: r["moves"]["mean"] <= 11.6),
    "experiment=2048_ntuple": (
        *(1000, lambda r: r["score"]["mean"] >= 220_000 and r["reach"]["2048"]["rate"] >= 0.97),
    ),
    "experiment=2048_td_lambda": (
        *(1000, lambda r: r["score"]["mean"] >= 22_000 and r["reach"]["2048"]["rate"] >= 0.5),
    ),
}
"""By training the number of games of an evaluation, and what must hold of its report."""


@pytest.mark.parametrize("words", REACHED)
def test_a_preset_reaches_what_it_reached(words, tmp_path):
    games, holds = REACHED[words]
    run = rlgames.train([words, f"out={tmp_path}/run"])
    assert holds(rlgames.evaluate(run, [f"games={games}", "seed=1"]))


def test_density_plays_battleship_as_well_as_measured_elsewhere():
    fleet = ["game=salvo", "board=10", "ships=[5,4,3,3,2]", "shots=1"]
    density = ["player=density", "player.steps=0"]  # counting takes longer than sampling
    report = rlgames.evaluate(None, [*density, *fleet, "games=1000", "solve_seconds=0"])
    assert report["moves"]["mean"] <= 50.5
    assert report["seconds"] < 300


def test_connect_zero_tuned_beats_the_scripted_player_as_later_posts_do(tmp_path):
    run = rlgames.train(["experiment=connect_zero_tuned", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["opponent=win_or_block", "games=4000", "seed=1"])
    assert report["win"]["rate"] >= 0.84


def test_search_learns_connect_four_beyond_the_scripted_player(tmp_path):
    run = rlgames.train(["experiment=connect4_alphazero", f"out={tmp_path}/run"])
    for opponent, least in (("random", 0.99), ("win_or_block", 0.85)):
        report = rlgames.evaluate(run, [f"opponent={opponent}", "games=4000", "seed=1"])
        assert min(seat["win"]["rate"] for seat in report["seats"]) >= least
