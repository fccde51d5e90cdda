"""`rlgames doctor` on runs that were broken on purpose, and on others that are well."""

import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from helpers import check_refused, make_game

import rlgames as package
from rlgames.commands.doctor import score_spread, with_scores
from rlgames.core.errors import NonFiniteError
from rlgames.runs.diagnosis import diagnose
from rlgames.runs.series import Training

SHORT = ["game=battleship", "games=128", "batch=8", "policy.layers=[8]", "solve_seconds=0"]


def test_a_certain_cause_ends_a_training_that_went_badly(rlgames, tmp_path):
    done = rlgames("train", *SHORT, "reward.discount=0", "out=broken")
    cause = "all moves return the same, so nothing tells good moves from bad ones"
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(cause)]
    end = "; rlgames doctor broken try=true finds what helps"
    assert line.endswith(end)
    (warning,) = [each for each in done.stdout.splitlines() if each.startswith("warning: ")]
    assert warning.startswith(f"warning: {cause}: ")
    told = rlgames("doctor", "broken").stdout.splitlines()
    assert told[0] == "broken: ppo, done after 128 games"
    assert told[1:] == [f"1. {line.removesuffix(end)}", "   try reward=goal"]
    assert "train/explained_variance" not in (tmp_path / "broken/metrics.jsonl").read_text()
    assert "doctor" not in rlgames("train", *SHORT, "out=well").stdout
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/run.json").write_text("{")
    found = json.loads(rlgames("doctor", ".", "format=json").stdout)
    assert {(each["run"], each["name"]) for each in found["findings"][:1]} == {
        ("broken", "no_reward_signal")
    }
    assert [each["run"] for each in found["no_finding"]] == ["well"]
    assert [each["run"] for each in found["damaged"]] == ["damaged"]


@pytest.mark.parametrize(
    ("scores", "is_blind"),
    [
        (lambda scores: scores, False),
        (lambda scores: torch.ones_like(scores), True),
        (lambda scores: scores[:, :1] * torch.arange(9.0), True),
    ],
    ids=["healthy", "drops its input", "one unit"],
)
def test_a_policy_that_does_not_tell_positions_apart_is_known(scores, is_blind, monkeypatch):
    game = make_game("game=tictactoe")
    policy = SimpleNamespace(
        scores=lambda game, state: (scores(game.observe(state).flatten(1)[:, :9]), None)
    )
    run = SimpleNamespace(agent=lambda device: SimpleNamespace(game=game, policy=policy))
    monkeypatch.setattr("rlgames.build.agents.open_run", lambda path, name: run)
    assert (score_spread(Path()) < 1e-4) == is_blind


def test_a_run_must_be_named(rlgames):
    for words in ([], ["nowhere"]):
        check_refused(rlgames("doctor", *words))


PARTS = {
    "BS": "experiment=battleship games=6000 eval_every=600",
    "TT": "experiment=tictactoe_mlp games=20480 batch=512 log_every=1024 eval_every=4096",
    "NT": "experiment=tictactoe_ntuple games=10000 log_every=1000 eval_every=1000",
    "DQ": "experiment=tictactoe_dqn games=5120 log_every=512 eval_every=1024",
    "BQ": "experiment=battleship learner=dqn sampling=epsilon_greedy games=4096 batch=128 "
    "log_every=256 eval_every=512 lr=0.001 learner.updates_per_batch=16",
    "AZ": "experiment=tictactoe_alphazero games=3000 log_every=250 eval_every=500",
    "G3": "experiment=2048_3x3_ntuple policy.tuples=[[0,1,2,3,4,5]] games=8000 batch=512 "
    "log_every=512 eval_every=2000 eval_games=200",
    "C4": "experiment=connect4 games=20000 batch=1000 log_every=2000 eval_every=5000 "
    "eval_games=500",
    "BOARD": "games=4096 batch=512 log_every=512 eval_every=1024 eval_games=100",
}
"""Words that several runs share; later words replace earlier ones."""

BROKEN = {
    "BS reward.discount=0": "no_reward_signal",
    "TT reward.win=0 reward.loss=0": "no_reward_signal",
    "experiment=2048_ppo reward=win games=1024 log_every=128 eval_every=256 eval_games=50": (
        "no_reward_signal"
    ),
    "BS lr=1e-7": "policy_does_not_move",
    "BS learner.max_grad_norm=1e-9": "policy_does_not_move",
    "BS learner.lr_end=0 schedule_games=300": "lr_ran_out",
    "AZ lr=1e-7": "lr_too_low",
    "DQ lr=1e-8 learner.lr_end=null": "lr_too_low",
    "AZ policy.layers=[1]": "same_scores",
    "BS sampling.temperature=0.001": "too_greedy",
    "BS lr=0.3": "steps_too_large",
    "TT learner.epochs=50 learner.num_minibatches=16 lr=0.03": "steps_too_large",
    "DQ learner.target_every=1000000": "targets_stand_still",
    "BS reward.scale=1000": "reward_scale_too_large",
    "BS learner.entropy_coef=5 learner.entropy_coef_end=5": "entropy_bonus_wins",
    "BS learner=reinforce learner.baseline=none batch=16 lr=0.02 learner.entropy_coef=0": (
        "entropy_collapsed"
    ),
    "BS games=768 eval_every=256": "too_short",
    "BS batch=3000": "too_short",
    "TT reward.win=-1 reward.loss=1": "wrong_reward",
    "TT reward.draws=[1.0,1.0]": "wrong_reward",
    "NT lr=1e-5": "values_stand_still",
    "NT lr=4": "not_finite",
    "NT lr=2": "values_diverge",
    "NT sampling.epsilon=0 sampling.epsilon_end=0": "same_games",
    "AZ search.dirichlet_fraction=0 search.temperature=0.001": "same_games",
    "C4 sampling.epsilon=1 sampling.epsilon_end=1": "plays_at_random",
    "DQ learner.updates_per_batch=1": "too_few_updates",
    "BQ lr=0.3 learner.polyak_tau=1 learner.max_grad_norm=null": "q_out_of_range",
    "DQ reward.discount=0.05": "discount_too_low",
    "experiment=salvo_duel opponent=density games=2048 batch=128 log_every=128 eval_every=512 "
    "eval_games=100": "opponent_too_strong",
}
"""The name of the cause that each run is broken by. Most rebuild a public report."""

WELL = [
    *("BS", "BS learner=reinforce", "TT lr=0.01 eval_every=2048", "NT", "C4", "DQ", "BQ", "AZ"),
    *("G3", "BS learner=behavior_cloning teacher=density games=2048 batch=128 eval_every=256"),
    "TT learner.epochs=20 lr=0.02",
    "BS learner.entropy_coef=0 lr=0.05",
    "BS games=2000 batch=2 log_every=100 eval_every=200",
    "DQ learner.buffer_size=300",
    "BS learner.value_coef=1000",
    "DQ sampling.epsilon=1 sampling.epsilon_end=1",
    "AZ search.temperature=20",
    *("experiment=battleship", "experiment=tictactoe games=20000", "experiment=salvo games=12288"),
    "experiment=2048 games=2000 log_every=100 eval_every=500 eval_games=50",
    *(f"BOARD game={name}" for name in ("othello", "hex", "gomoku", "breakthrough", "salvo_duel")),
]
"""Runs without a cause: healthy twins, settings that are often blamed, and presets cut short."""


def first_name(words, out):
    """The name of the first finding about a run; None without any."""
    typed = " ".join(PARTS.get(word, word) for word in words.split()).split()
    last = {word.partition("=")[0]: word for word in typed} | {"out": f"out={out}"}
    with suppress(NonFiniteError):
        package.train([*last.values(), "solve_seconds=0", "logger=null"])
    run = with_scores(Training.read(out))
    return next((finding["name"] for finding in diagnose(run)), None)


@pytest.mark.long
@pytest.mark.parametrize("words", WELL)
def test_runs_that_are_well_have_no_cause(words, tmp_path):
    assert first_name(words, tmp_path / "run") is None


@pytest.mark.long
def test_nine_in_ten_broken_runs_are_known_by_their_cause(tmp_path):
    told = {words: first_name(words, tmp_path / str(n)) for n, words in enumerate(BROKEN)}
    wrong = {words: name for words, name in told.items() if name != BROKEN[words]}
    assert len(wrong) <= 0.1 * len(BROKEN), wrong
