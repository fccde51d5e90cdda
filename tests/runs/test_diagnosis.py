"""The rules of `rlgames doctor`, each on the few numbers that it is about."""

import json
import time
from pathlib import Path

import pytest

from rlgames.runs.diagnosis import (
    CERTAIN,
    RULES,
    certain_cause,
    diagnose,
    still_improves,
    verdict,
)
from rlgames.runs.series import MAX_LINES, Training
from rlgames.runs.table import Run

SETTINGS = {
    **{"games": 1000, "lr": 0.01, "opponent": "self", "eval_opponent": "random"},
    **{"reward.scored": "goal", "reward.scale": 1.0, "reward.win": 1.0, "reward.loss": -1.0},
    **{"reward.draws": [0.0, 0.0], "learner.max_grad_norm": 1.0},
    **{"learner.updates_per_batch": 3, "learner.polyak_tau": 0.01, "learner.target_every": 1},
    **{"sampling.temperature": 1.0},
}
WEAK = {"result": [0.6, 0.6, 0.6, 0.6], "std_error": [0.01]}
TD = WEAK | {"td_error": [1.0, 1.0, 0.9, 0.9]}

CASES = {
    "not_finite": ("td", {}, {"failure": "NonFiniteError: update 3"}),
    "no_reward_signal": ("ppo", {"return": [-1.0, -1.0], "return_std": [0.0, 1e-8]}, {}),
    "lr_ran_out": ("dqn", {"lr": [0.1, 0.05, 0.0, 0.0]}, {}),
    "policy_does_not_move": ("ppo", {"approx_kl": [1e-9, 1e-8]}, {}),
    "lr_too_low": (
        "alphazero",
        {"lr": [1e-7, 1e-7], "gradient_steps": [50.0], "time/updates": [4.0, 9.0]},
        {},
    ),
    "too_greedy": ("ppo", {"entropy": [0.01, 0.02]}, {"sampling.temperature": 0.001}),
    "steps_too_large": ("ppo", {"approx_kl": [0.1, 0.1], "clip_fraction": [0.4, 0.4]}, {}),
    "targets_stand_still": (
        "dqn",
        {"gradient_steps": [3.0], "time/updates": [1.0, 9.0]},
        {"learner.target_every": 100_000},
    ),
    "q_out_of_range": ("dqn", {"q_values": [0.1, 2.0], "q_max": [1.0, 3.0], "return": [0.5]}, {}),
    "reward_scale_too_large": (
        "ppo",
        {"grad_norm": [5e4, 6e4], "explained_variance": [1e-5, 1e-4], "return": [4e3, 4e3]},
        {},
    ),
    "discount_too_low": ("dqn", {"turns": [7.5, 7.5]}, {"reward.discount": 0.1}),
    "same_games": ("td", WEAK | {"distinct_games": [0.5, 0.01, 0.01, 0.01]}, {}),
    "entropy_collapsed": ("ppo", WEAK | {"entropy": [1.6, 0.3, 0.3, 0.3]}, {}),
    "entropy_bonus_wins": (
        "ppo",
        {"entropy": [1.7, 1.7], "ent_coef": [5.0, 5.0], "return_std": [2.5, 2.5]},
        {},
    ),
    "plays_at_random": ("td_ntuple", {"exploration_rate": [1.0, 0.95]}, {}),
    "values_diverge": ("td_ntuple", {"td_error": [3.0, 9.0], "score": [100.0, 120.0]}, {}),
    "values_stand_still": ("td_ntuple", TD, {"lr": 1e-5}),
    "too_few_updates": ("dqn", WEAK | {"samples_per_move": [0.3]}, {}),
    "opponent_too_strong": ("ppo", WEAK | {"points": [0.05, 0.13]}, {"opponent": "exact"}),
    "same_scores": ("ppo", WEAK | {"score_spread": [1e-9]}, {}),
    "wrong_reward": ("ppo", {"std_error": [0.01], "result": [0.2, 0.3, 0.2, 0.2]}, {}),
    "got_worse": ("ppo", {"std_error": [0.01], "result": [0.6, 0.9, 0.95, 0.6]}, {}),
    "too_short": ("ppo", {"time/updates": [1.0, 3.0]}, {}),
    "exploitable": ("ppo", {"eval/exploitability": [1.0, 0.96]}, {}),
}
"""By the name of the rule: a learner, its metrics, and the settings that differ from SETTINGS."""

HARMLESS = {
    "large steps that learn": (
        "ppo",
        {"approx_kl": [0.02, 0.02], "grad_norm": [9.0, 1.0], "explained_variance": [0.0, 0.9]},
        {},
    ),
    "draws between equals": ("ppo", {"draws": [0.1, 0.97], "return_std": [0.9, 0.1]}, {}),
    "errors that grow with the score": ("td_ntuple", {"td_error": [3, 7], "score": [9, 40]}, {}),
    "errors that grow with Q": ("dqn", {"td_error": [0.1, 0.25], "q_values": [-0.1, -0.7]}, {}),
    "sharp play that is perfect": (
        "ppo",
        {"entropy": [1.6, 0.2, 0.2], "distinct_games": [0.4, 0.01], "result": [0.9, 0.99]},
        {},
    ),
    "the last step of a schedule": ("dqn", {"lr": [0.1, 0.06, 0.03, 0.0]}, {}),
    "one bad evaluation": ("ppo", {"std_error": [0.01], "result": [0.2, 0.6, 0.6, 0.6]}, {}),
    "noise": ("ppo", {"result": [0.6, 0.63, 0.6], "std_error": [0.01]}, {}),
    "an optimum of seven turns": ("ppo", {"result": [9.0, 7.0]}, {"metric": "turns"}),
    "many epochs that learn": ("ppo", {"approx_kl": [0.04], "clip_fraction": [0.36]}, {}),
    "random games that DQN learns from": ("dqn", WEAK | {"exploration_rate": [1.0]}, {}),
    "a single error": ("td", WEAK | {"td_error": [9.0]}, {}),
    "nothing is logged": ("ppo", {}, {}),
    "play that was safe once": ("ppo", {"eval/exploitability": [1.0, 0.3, 0.6]}, {}),
    "another learner": ("adp", CASES["too_short"][1], {}),
}


def history(learner, metrics, settings):
    """A run with these metrics, whose random play has half of the points."""
    own = {name: value for name, value in settings.items() if name not in ("failure", "metric")}
    metric = settings.get("metric", "points")
    names = {"result": f"eval/{metric}", "std_error": f"eval/{metric}_std_error"}
    lines = [
        {names.get(name, name if "/" in name else f"train/{name}"): value}
        for name, values in metrics.items()
        for value in values
    ]
    own = SETTINGS | {"learner": learner} | own
    return Training(
        Run(path=Path(), status="done", metric=metric, games=1000, settings=own),
        lines,
        {"random": 0.5} if metric == "points" else {"random": 9.5, "optimal": 7.0},
        settings.get("failure", ""),
    )


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_named_first_and_its_numbers_are_told(name):
    finding = diagnose(history(*CASES[name]))[0]
    assert finding["name"] == name
    assert "nan" not in "".join(finding.values())
    assert all(finding.values())


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_no_harm_is_no_cause(name):
    assert diagnose(history(*HARMLESS[name])) == []


def test_every_rule_has_a_case():
    assert [*dict.fromkeys(rule.name for rule in RULES)] == [*CASES]


OTHER_CAUSES = {
    "no game is rewarded": (
        "no_reward_signal",
        ("ppo", {"rewarded_games": [0.0], "return_std": [0.002]}, {}),
    ),
    "the first steps": (
        "steps_too_large",
        ("reinforce", {"grad_norm": [400.0, 3.0, 0.1, 0.1]}, {}),
    ),
    "draws pay": (
        "wrong_reward",
        ("ppo", {"draws": [0.1, 0.95], "result": [0.6]}, {"reward.draws": [1.0, 1.0]}),
    ),
}
"""More that the same rules are about."""


@pytest.mark.parametrize("name", OTHER_CAUSES)
def test_a_rule_knows_its_cause_in_other_metrics(name):
    rule, case = OTHER_CAUSES[name]
    assert diagnose(history(*case))[0]["name"] == rule


@pytest.mark.parametrize("name", CASES)
def test_a_training_is_told_only_what_is_certain(name, monkeypatch):
    monkeypatch.setattr(Training, "read", lambda directory: history(*CASES[name]))
    assert bool(certain_cause(Path())) == (name in CERTAIN)


def test_a_certain_cause_is_the_only_one():
    _, metrics, settings = CASES["policy_does_not_move"]
    assert len(diagnose(history("ppo", metrics | {"result": [0.1] * 4}, settings))) == 1


def test_no_two_remedies_set_the_same_key():
    worse = {"std_error": [0.01], "result": [0.6, 0.9, 0.95, 0.6], "lr": [1e-8, 1e-8]}
    found = diagnose(history("dqn", worse | CASES["lr_too_low"][1], {"lr": 1e-8}))
    assert [each["try"] for each in found if each["try"].startswith("lr=")] == ["lr=0.002"]


def test_a_remedy_multiplies_a_setting_and_keeps_whole_numbers():
    assert diagnose(history(*CASES["not_finite"]))[0]["try"] == "lr=0.001"
    assert diagnose(history(*CASES["too_short"]))[0]["try"] == "games=50000"


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"result": [0.6, 0.99]}, "nothing is wrong (points 0.99, random play 0.5)"),
        ({"result": [0.5, 0.5, 0.6, 0.7], "std_error": [0.02]}, "it still improves"),
        (
            {"result": [0.8, 0.8, 0.8, 0.8], "std_error": [0.02]},
            "nothing found, and the optimum is not known: it may have reached it",
        ),
        ({}, "nothing is known yet: it has no evaluation"),
        ({"result": [0.5, 0.5, 0.5, 0.51], "std_error": [0.02]}, "not known"),
    ],
)
def test_without_a_cause_the_result_decides_what_is_said(metrics, words):
    run = history("ppo", metrics, {})
    assert words in verdict(run)
    assert still_improves(run) == (words == "it still improves")


def test_a_hundred_thousand_lines_take_less_than_a_second(tmp_path):
    line = {f"train/metric_{number}": 0.123456789 for number in range(19)} | {"train/loss": 0.1}
    rest = json.dumps(line).removeprefix("{")
    lines = [f'{{"games": {games}, {rest}' for games in range(100_000)]
    lines[70_000] = json.dumps({"games": 70_000, "eval/turns": 5.0})
    lines[80_000:80_000] = ["{", '{"games": 1, "games": 2}', '{"train/metric_1": "high"}']
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"torn": 1']))
    config = {"game": {"name": "battleship"}, "learner": {"name": "ppo"}}
    facts = {"status": "running", "metric": "turns", "config": config}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    begun = time.process_time()
    run = Training.read(tmp_path)
    assert diagnose(run) == []
    assert time.process_time() - begun < 1
    assert run.result.end == 5.0  # an evaluation is never left out
    assert 0.9 * MAX_LINES < len(run.loss.values) <= MAX_LINES + 1
