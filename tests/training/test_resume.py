"""A run that is interrupted and resumed ends bit-equal to one that never stopped."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch
from helpers import command, interrupt_after, resume_run
from run_files import final_state, metrics_without_times, same

import rlgames
from rlgames.build.agents import open_run
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.learners.reinforce import Reinforce
from rlgames.rewards import Reward
from rlgames.runs.checkpoint import FORMAT, Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.training.loop import TrainingLoop
from rlgames.training.train import train

SMALL = ["games=40", "batch=8", "log_every=16", "eval_every=16", "save_every=8", "eval_games=8"]
SMALL += ["solve_seconds=0"]
GAMES = {
    "battleship": ["board=4", "ships=[2]"],
    "salvo": ["board=3", "ships=[2]", "shots=2"],
    "salvo_duel": ["board=2", "ships=[2]", "reward=outcome"],
    "tictactoe": ["reward=outcome"],
    "connect4": ["rows=3", "columns=4", "line=3", "reward=outcome"],
    "gomoku": ["board=5", "line=3", "reward=outcome"],
    "hex": ["board=3", "reward=outcome"],
    "othello": ["board=4", "reward=outcome"],
    "breakthrough": ["rows=3", "columns=3", "home_rows=1", "reward=outcome"],
    "2048": ["board=2", "columns=2", "target=32"],
}
"""An n-tuple network for 4×4."""

NETWORK = ["policy=mlp", "policy.layers=[8]"]
TWO = ["salvo_duel", "tictactoe", "connect4", "gomoku", "hex", "othello", "breakthrough"]
ALL = ["battleship", "salvo", *TWO, "2048"]
SEA, LINES = ["battleship", "salvo"], ["tictactoe", "connect4", "gomoku"]
NET, GREEDY = "policy=mlp policy.layers=[8]", "sampling=epsilon_greedy"
NTUPLE = f"policy=ntuple learner.td_lambda=0.9 {GREEDY}"
COHERENT = "policy=ntuple learner.step_size=temporal_coherence"
REPLAY = "learner.buffer_size=64 learner.minibatch_size=8"
MCTS = f"{NET} search=mcts search.simulations=6 search.leaf=value"
CONV = "policy=conv policy.channels=[2] opponent=past"
LEARNERS = {
    "reinforce": [(NET, ALL)],
    "ppo": [
        (f"{NET} learner.num_minibatches=2 learner.epochs=2", ALL),
        (f"{NET} window=4 batch=5 {GREEDY}", [*SEA, "2048"]),
        (f"{CONV} opponent.every=10", TWO),
    ],
    "td": [(f"policy=table {GREEDY}", ["tictactoe", "connect4", "2048"])],
    "td_ntuple": [
        (f"{COHERENT} sampling=argmax window=4 restart_fraction=0.5 reward=score", ["2048"]),
        (f"{NTUPLE} reward=score", ["2048"]),
        (f"{NTUPLE} {COHERENT} learner.average_start=0.3", [*LINES, "2048"]),
    ],
    "td_lambda": [(f"{NET} reward=score sampling=argmax window=4", ["2048"])],
    "adp": [(f"policy=linear reward=score {GREEDY}", ["2048"])],
    "dqn": [(f"{NET} {REPLAY} {GREEDY}", ALL)],
    "behavior_cloning": [
        (f"{NET} teacher=random learner.patience=1", ALL),
        (f"{CONV} teacher=random lr=0.3", TWO),
    ],
    "occupancy": [(NET, ["battleship", "salvo_duel"])],
    "alphazero": [
        (f"{MCTS} learner.buffer_size=50", ALL),
        (f"{MCTS} search.rule=gumbel", ALL),
    ],
}
"""Settings of each learner, with the games that they fit."""


COMBINATIONS = [
    pytest.param(
        f"experiment=null game={game} learner={learner} {words}".split() + GAMES[game] + SMALL,
        id=f"{learner}-{game}",
        marks=[] if game == games[0] else [pytest.mark.slow],
    )
    for learner, ways in LEARNERS.items()
    for words, games in ways
    for game in games
]
"""The first game of each setting is quick."""


def test_every_learner_and_every_game_is_resumed():
    assert {*LEARNERS} == {*REGISTRY["learner"]}
    assert {*ALL} == {*REGISTRY["game"]}, "add it to GAMES, and to ALL or TWO"


def train_and_interrupt(monkeypatch, cfg, batches):
    """Train, and interrupt the run after this many batches, when one more was played. Returns its
    directory."""
    with monkeypatch.context() as patched:
        interrupt_after(patched, batches)
        with pytest.raises(Interrupted, match="rlgames resume"):
            train(cfg)
    return cfg.out


def out(words, path):
    return load_config(TrainConfig, [*words, f"out={path}"])


@pytest.mark.parametrize("words", COMBINATIONS)
def test_resumes_exactly(words, tmp_path, monkeypatch):
    uninterrupted, resumed = tmp_path / "uninterrupted", tmp_path / "resumed"
    train(out(words, uninterrupted))
    train_and_interrupt(monkeypatch, out(words, resumed), 3)
    resume_run(resumed)
    same(final_state(uninterrupted), final_state(resumed))
    assert metrics_without_times(uninterrupted) == metrics_without_times(resumed)


SALVO = ["experiment=null", "game=salvo", "board=3", "ships=[2]", *SMALL, *NETWORK]


def test_resumes_twice(tmp_path, monkeypatch):
    uninterrupted, resumed = tmp_path / "uninterrupted", tmp_path / "resumed"
    train(out(SALVO, uninterrupted))
    train_and_interrupt(monkeypatch, out(SALVO, resumed), 2)
    with monkeypatch.context() as patched:
        patched.setattr(TrainingLoop, "evaluate", interrupt)
        with pytest.raises(Interrupted):
            resume_run(resumed)
    resume_run(resumed)
    same(final_state(uninterrupted), final_state(resumed))
    assert metrics_without_times(uninterrupted) == metrics_without_times(resumed)


def interrupt(*_):
    raise Interrupted(2)


def test_a_finished_run_is_unchanged_or_extended(tmp_path, typed):
    run = tmp_path / "run"
    train(out(SALVO, run))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    result = typed("resume", "run")
    assert result.returncode == 0
    assert "is finished, after 40 games; extend it with: rlgames" in result.stdout
    assert "nothing was changed" in result.stdout
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    result = typed("resume", "run", "games=56")
    assert result.returncode == 0, result.stderr
    checkpoint = Checkpoint.read(run / "checkpoints/latest.safetensors")
    assert (checkpoint.games, checkpoint.config["games"]) == (56, 56)
    assert [line["games"] for line in read_metrics(run / "metrics.jsonl")][-1] == 56
    assert "games: 56" in (run / "config.yaml").read_text()
    assert read_run(run)["resumed"][0]["games"] == 40


SCHEDULES = ["lr=0.01", "learner.lr_end=0", "learner.entropy_coef=0.2"]
SCHEDULES += ["learner.entropy_coef_end=0.1", "games=40", "batch=8"]


@pytest.mark.parametrize(
    ("words", "first_update", "jumps"),
    [
        (["games=80"], (0.005, 0.15), True),
        (["games=80", "schedule_games=40"], (0.0, 0.1), False),
        (["games=80", "schedule_games=160"], (0.0075, 0.175), True),
        (["games=48", "log_every=8", "schedule_games=40"], (0.0, 0.1), False),
    ],
)
def test_schedules_of_an_extended_run_jump_only_with_notice(
    words, first_update, jumps, tmp_path, monkeypatch, capsys
):
    run = tmp_path / "run"
    train(out([*SALVO, "learner=reinforce", *SCHEDULES], run))
    seen, update = [], Reinforce.update

    def there(self, trajectories, final_states, progress):
        seen.append((self.lr.at(progress), self.entropy_coef.at(progress)))
        return update(self, trajectories, final_states, progress)

    monkeypatch.setattr(Reinforce, "update", there)
    capsys.readouterr()
    assert command("resume", run, words) is not None
    assert seen[0] == pytest.approx(first_update)
    lines = [line for line in capsys.readouterr().err.splitlines() if "jumps" in line]
    lr, entropy_coef = (f"{value:.4g}" for value in first_update)
    text = f"lr jumps from 0 to {lr}, entropy_coef jumps from 0.1 to {entropy_coef}"
    assert lines == [f"rlgames: {text}; schedule_games=40 keeps the first schedule"] * jumps


REFUSED = {
    "game=connect4": "game= is of the training; a run keeps its training settings",
    "board=4": "board= is of the training",
    "policy.layers=[9]": "policy.layers= is of the training",
    "lr=0.5": "lr= is of the training",
    "logger=mlflow": "logger= is of the training",
    "games=8": "games=8 is too few: 16 games are already played; the run has games=40",
    "device=cuda:9": "this machine has no device=cuda:9; use device=",
    "sed=1": "no key is called 'sed' here",
    "gmes=50": "no key is called 'gmes' here; did you mean games?",
}


def test_a_run_resumes_with_its_own_settings_only(tmp_path, monkeypatch, typed):
    train_and_interrupt(monkeypatch, out(SALVO, tmp_path / "run"), 2)
    for word, message in REFUSED.items():
        result = typed("resume", "run", word)
        assert (result.returncode, result.stdout) == (2, ""), word
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert "there is no run 'none'" in typed("resume", "none").stderr
    assert f"its newest run is {tmp_path / 'run'}" in typed("resume", str(tmp_path)).stderr
    assert "resume needs a run" in typed("resume").stderr


def changed(path, **parts):
    """Write a checkpoint again with some fields changed."""
    replace(Checkpoint.read(path), **parts).write(path)


def test_a_damaged_checkpoint_is_refused_and_another_named(tmp_path, monkeypatch, typed):
    run = tmp_path / "run"
    train_and_interrupt(monkeypatch, out([*SALVO, "keep_every=16"], run), 4)
    path = run / "checkpoints/latest.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    result = typed("resume", "run")
    assert result.returncode == 2
    assert "damaged: its content does not match its checksum" in result.stderr
    assert "start a new run from other weights: init_from=run/checkpoints/" in result.stderr
    for path in run.glob("checkpoints/*.safetensors"):
        path.write_bytes(b"")
    result = typed("resume", "run")
    assert "latest.safetensors is not a readable checkpoint (it is empty)" in result.stderr
    assert "init_from" not in result.stderr


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_run_whose_best_checkpoint_is_damaged_resumes_with_notice(is_missing, tmp_path, typed):
    run = tmp_path / "run"
    train(out(SALVO, run))
    best = run / "checkpoints/best.safetensors"
    best.write_bytes(best.read_bytes()[:1000])
    if is_missing:
        best.unlink()
    else:
        assert typed("eval", "run").returncode == 2
        assert typed("eval", "run", "checkpoint=final", "games=4").returncode == 0
    said = typed("resume", "run", "games=80")
    assert said.returncode == 0, said.stderr
    assert "the best evaluation from now on replaces it" in said.stderr
    assert Checkpoint.read(best).policy
    assert typed("eval", "run", "games=4").returncode == 0


@pytest.mark.parametrize(("number", "reader"), [(FORMAT + 1, "a newer"), (FORMAT - 1, "an older")])
def test_a_checkpoint_of_another_format_is_refused(number, reader, tmp_path, monkeypatch, typed):
    run = tmp_path / "run"
    train_and_interrupt(monkeypatch, out(SALVO, run), 2)
    path = run / "checkpoints/latest.safetensors"
    checkpoint = Checkpoint.read(path)
    with monkeypatch.context() as patched:
        patched.setattr("rlgames.runs.checkpoint.FORMAT", number)
        checkpoint.write(path)
    result = typed("resume", "run")
    assert result.returncode == 2
    message = f"has format {number}, which {reader} version of rlgames reads"
    assert f"{message}; this one reads format {FORMAT}" in result.stderr


def test_a_checkpoint_is_kept_every_keep_every_games(tmp_path):
    train(out([*SALVO, "keep_every=12"], tmp_path / "run"))
    names = {path.name for path in (tmp_path / "run/checkpoints").iterdir()}
    kept = {f"games_{games}.safetensors" for games in (16, 32)}
    assert names == {"latest.safetensors", "best.safetensors", *kept}
    for name in names:
        assert open_run(tmp_path / "run/checkpoints" / name).agent()


def test_a_gpu_run_loads_and_resumes_on_the_cpu(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train_and_interrupt(monkeypatch, out(SALVO, run), 2)
    path = run / "checkpoints/latest.safetensors"
    checkpoint = Checkpoint.read(path)
    changed(path, config=checkpoint.config | {"device": "cuda"})
    if not torch.cuda.is_available():
        assert open_run(run).agent().policy
        with pytest.raises(ConfigError, match="this machine has no device=cuda"):
            resume_run(run)
    assert resume_run(run, "device=cpu").best.evaluation.games


def test_a_non_finite_number_ends_the_run_and_damages_nothing(tmp_path, monkeypatch, typed):
    count, of_moves = 0, Reward.rewards

    def spoilt(self, moves, results):
        nonlocal count
        count += 1
        return of_moves(self, moves, results) * (math.nan if count == 4 else 1)

    with monkeypatch.context() as patched:
        patched.setattr(Reward, "rewards", spoilt)
        result = typed("train", *SALVO, "out=run")
    assert result.returncode == 3
    last = result.stderr.splitlines()[-1]
    assert "update 4, after 24 games: a reward is not a finite number" in last
    assert "resume from the last checkpoint: rlgames resume run" in last
    assert "Traceback" not in result.stderr
    assert read_run(tmp_path / "run")["status"] == "failed"
    train(out(SALVO, tmp_path / "uninterrupted"))
    resume_run(tmp_path / "run")
    same(final_state(tmp_path / "uninterrupted"), final_state(tmp_path / "run"))


def test_a_run_that_converged_is_final_and_unchanged_by_a_resume(tmp_path, typed):
    words = ["game=tictactoe", "learner=behavior_cloning", "policy.layers=[4]", "batch=16"]
    words += ["teacher=win_or_block", "games=1000", "eval_every=16", "eval_games=4"]
    words += ["learner.patience=1", "solve_seconds=0"]
    run = rlgames.train([*words, f"out={tmp_path}/run"])
    assert Checkpoint.read(run / "checkpoints/latest.safetensors").games < 1000
    said = typed("eval", "run", "checkpoint=final", "games=4", "solve_seconds=0", "format=json")
    assert json.loads(said.stdout)["checkpoint"] == "final"
    said = typed("resume", "run")
    assert said.returncode == 0
    assert "has converged, after " in said.stdout
    assert "nothing was changed" in said.stdout


START = ["game=tictactoe", "policy=mlp", "policy.layers=[8]", "games=8", "batch=4"]
START += ["eval_games=2", "solve_seconds=0"]


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_run_resumes_when_what_it_started_from_is_gone(is_moved, tmp_path, typed):
    """Also after the folder with all of it was moved, and as a job of a sweep."""
    folder = tmp_path / "there"
    folder.mkdir()
    assert typed("train", *START, "out=there/pre").returncode == 0
    words = ["init_from=there/pre"]
    assert typed("train", *START, *words, "out=there/run").returncode == 0
    words += ["seed=0,1", "hydra/launcher=basic"]
    assert typed("train", "-m", *START, *words, "out=there/s").returncode == 0
    if is_moved:
        folder.rename(tmp_path / "here")
        folder = tmp_path / "here"
    else:
        (folder / "pre").rename(folder / "elsewhere")
    done = typed("resume", f"{folder}/run", "games=16")
    assert done.returncode == 0, done.stderr
    assert Checkpoint.read(folder / "run/checkpoints/latest.safetensors").games == 16
    done = typed("resume", f"{folder}/s", "games=16")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("goes on after 8 games") == 2
    shutil.rmtree(folder / "s/seed=1")
    done = typed("resume", f"{folder}/s", "games=16")
    assert done.returncode == 3, "a job that has to start needs it"
    assert "seed=0: done before" in done.stdout
    assert "there is no run 'there/pre'" in done.stderr
