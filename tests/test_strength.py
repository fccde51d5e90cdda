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


@pytest.mark.parametrize("seed", range(3))
def test_tic_tac_toe_never_loses_to_random_play(seed, tmp_path):
    run = rlgames.train(["game=tictactoe", f"seed={seed}", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["games=2000"])
    assert report["loss"]["count"] == 0
    assert report["exploitability"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_connect_four_beats_random_play_in_both_seats(seed, tmp_path):
    run = rlgames.train(["game=connect4", f"seed={seed}", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["games=4000", "seed=1"])
    assert min(seat["win"]["rate"] for seat in report["seats"]) >= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_2048_has_sixty_times_the_score_of_random_play(seed, tmp_path):
    run = rlgames.train(["game=2048", f"seed={seed}", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["games=400", "seed=1"])
    assert report["score"]["mean"] >= 60 * report["reference"]["random"]


def test_density_plays_battleship_as_well_as_measured_elsewhere():
    fleet = ["game=salvo", "board=10", "ships=[5,4,3,3,2]", "shots=1"]
    density = ["player=density", "player.steps=0"]  # counting takes longer than sampling
    report = rlgames.evaluate(None, [*density, *fleet, "games=1000", "solve_seconds=0"])
    assert report["moves"]["mean"] <= 50.5
    assert report["seconds"] < 300


@pytest.mark.parametrize("seed", range(3))
def test_hickmans_tuned_table_cannot_be_exploited(seed, tmp_path):
    words = ["experiment=hickman_tuned", f"seed={seed}", f"out={tmp_path}/run"]
    assert rlgames.evaluate(rlgames.train(words), ["games=100"])["exploitability"] == 0


def test_connect_zero_tuned_beats_the_scripted_player_as_later_posts_do(tmp_path):
    run = rlgames.train(["experiment=connect_zero_tuned", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["opponent=win_or_block", "games=4000", "seed=1"])
    assert report["win"]["rate"] >= 0.84


def test_the_2048_papers_network_reaches_2048(tmp_path):
    words = ["experiment=dedieu_amar_stochastic_tuned", f"out={tmp_path}/run"]
    report = rlgames.evaluate(rlgames.train(words), ["games=1000", "seed=1"])
    assert report["score"]["mean"] >= 4 * report["reference"]["random"]
    assert report["reach"]["2048"]["rate"] >= 0.01


@pytest.mark.parametrize(("name", "most"), [("fleet", 47.9), ("fleet_salvo", 11.6)])
def test_the_whole_fleet_is_found_sooner_than_by_hunting(name, most, tmp_path):
    run = rlgames.train([f"experiment={name}", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["games=2000", "seed=1"])
    assert report["moves"]["mean"] <= most


@pytest.mark.parametrize(
    ("name", "score", "reached"),
    [
        ("2048_ntuple", 220_000, 0.97),
        ("2048_td_lambda", 22_000, 0.5),
    ],
)
def test_2048_is_reached_from_rewards_alone(name, score, reached, tmp_path):
    run = rlgames.train([f"experiment={name}", f"out={tmp_path}/run"])
    report = rlgames.evaluate(run, ["games=1000", "solve_seconds=0"])
    assert report["score"]["mean"] >= score
    assert report["reach"]["2048"]["rate"] >= reached


def test_search_learns_connect_four_beyond_the_scripted_player(tmp_path):
    run = rlgames.train(["experiment=connect4_alphazero", f"out={tmp_path}/run"])
    for opponent, least in (("random", 0.99), ("win_or_block", 0.85)):
        report = rlgames.evaluate(run, [f"opponent={opponent}", "games=4000", "seed=1"])
        assert min(seat["win"]["rate"] for seat in report["seats"]) >= least
