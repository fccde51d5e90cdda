"""A run that is broken off and gone on with comes out as one that never stopped."""

import math
from dataclasses import replace

import pytest
import torch
from processes import as_it_ended, metrics_of, same

from rlgames.commands.resume import resume_command
from rlgames.config.compose import load_config, quoted
from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.factory.agents import load_agent
from rlgames.rewards import Reward
from rlgames.runs.checkpoint import FORMAT, Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.training.collector import Collector
from rlgames.training.components import check_components
from rlgames.training.loop import TrainingLoop
from rlgames.training.run import Run, resume, train

SMALL = ["games=40", "batch=8", "log_every=16", "eval_every=16", "save_every=8", "eval_games=8"]
SMALL += ["solve_seconds=0"]
GAMES = {
    "battleship": ["board=4", "ships=[2]"],
    "salvo": ["board=3", "ships=[2]", "shots=2"],
    "salvo_duel": ["board=2", "ships=[2]", "reward=outcome"],
    "tictactoe": ["reward=outcome"],
    "connect4": ["rows=3", "columns=4", "line=3", "reward=outcome"],
    "2048": ["board=2", "columns=2", "target=32"],
}
NETWORK = ["policy=mlp", "policy.layers=[8]"]
ALL = ["battleship", "salvo", "salvo_duel", "tictactoe", "connect4", "2048"]
TWO = ["salvo_duel", "tictactoe", "connect4"]
LEARNERS = {
    "reinforce": [(NETWORK, ALL)],
    "ppo": [
        ([*NETWORK, "learner.minibatches=2", "learner.epochs=2"], ALL),
        (
            [*NETWORK, "window=4", "batch=5", "sampling=epsilon_greedy"],
            ["battleship", "salvo", "2048"],
        ),
        (["policy=conv", "policy.channels=[2]", "opponent=past", "opponent.every=10"], TWO),
    ],
    "td": [
        (["policy=table", "sampling=epsilon_greedy"], ["tictactoe", "connect4", "2048"]),
        (
            [
                *["policy=ntuple", "sampling=argmax", "learner.step_size=temporal_coherence"],
                *["window=4", "restart_fraction=0.5"],
            ],
            ["2048"],
        ),
    ],
    "td_lambda": [([*NETWORK, "reward=score", "sampling=argmax", "window=4"], ["2048"])],
    "adp": [(["policy=linear", "reward=score", "sampling=epsilon_greedy"], ["2048"])],
    "dqn": [
        (
            [*NETWORK, "sampling=epsilon_greedy", "learner.buffer_size=64", "learner.minibatch=8"],
            ALL,
        )
    ],
    "behavior_cloning": [
        ([*NETWORK, "teacher=random", "learner.patience=1"], ALL),
        (
            ["policy=conv", "policy.channels=[2]", "teacher=random", "opponent=past", "lr=0.3"],
            TWO,
        ),
    ],
    "occupancy": [(NETWORK, ["battleship", "salvo_duel"])],
    "alphazero": [
        (
            [
                *[*NETWORK, "search=mcts", "search.simulations=4", "search.leaf=value"],
                "learner.buffer_size=50",
            ],
            ALL,
        )
    ],
}
"""Each way to learn, with all games that it fits."""


def every_pair():
    """Each way to learn with each game: learner, game, words."""
    for learner, ways in LEARNERS.items():
        for words, games in ways:
            for game in ALL:
                typed = ["experiment=null", f"game={game}", f"learner={learner}", *GAMES[game]]
                yield game in games, game == games[0], f"{learner}-{game}", [*typed, *SMALL, *words]


COMBINATIONS = [
    pytest.param(words, id=name, marks=[] if first else [pytest.mark.slow])
    for fits, first, name, words in every_pair()
    if fits
]
"""Quick is the first game of each way to learn."""


def test_every_learner_and_every_game_is_gone_on_with():
    assert {*LEARNERS} == {*REGISTRY["learner"]}
    assert {*ALL} == {*REGISTRY["game"]}


@pytest.mark.slow
def test_no_other_learner_fits_a_game():
    for fits, _, name, words in every_pair():
        try:
            check_components(load_config("train", words))
        except ConfigError:
            assert not fits, name
        else:
            assert fits, name


def broken_off(monkeypatch, cfg, batches):
    """Train, interrupted in play after so many batches; the run's directory."""
    count = 0
    collect = Collector.collect

    def interrupted(*args):
        nonlocal count
        moves = collect(*args)
        count += 1
        if count > batches:
            raise Interrupted(15)
        return moves

    with monkeypatch.context() as patched:
        patched.setattr(Collector, "collect", interrupted)
        with pytest.raises(Interrupted, match="rlgames resume"):
            train(cfg)
    return cfg.out


def gone_on(directory, words=()):
    return resume(directory, *resume_command(directory, list(words)))


def out(words, path):
    return load_config("train", [*words, f"out={quoted(str(path))}"])


@pytest.mark.parametrize("words", COMBINATIONS)
def test_goes_on_exactly(words, tmp_path, monkeypatch):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(out(words, whole))
    broken_off(monkeypatch, out(words, parted), 3)
    gone_on(parted)
    same(as_it_ended(whole), as_it_ended(parted))
    assert metrics_of(whole) == metrics_of(parted)


SALVO = ["experiment=null", "game=salvo", "board=3", "ships=[2]", *SMALL, *NETWORK]


def test_goes_on_twice_and_again(tmp_path, monkeypatch):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(out(SALVO, whole))
    broken_off(monkeypatch, out(SALVO, parted), 2)
    with monkeypatch.context() as patched:
        patched.setattr(TrainingLoop, "evaluate", interrupt)
        with pytest.raises(Interrupted):
            gone_on(parted)
    gone_on(parted)
    same(as_it_ended(whole), as_it_ended(parted))
    assert metrics_of(whole) == metrics_of(parted)


def interrupt(*_):
    raise Interrupted(2)


@pytest.mark.parametrize(
    ("owner", "name"), [(Run, "evaluate_best"), (TrainingLoop, "end_evaluation")]
)
def test_goes_on_from_its_last_evaluation(owner, name, tmp_path, monkeypatch):
    run = tmp_path / "run"
    real = getattr(owner, name)

    def late(self, *args):
        if self.state.is_over:
            raise Interrupted(15)
        return real(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, late)
        with pytest.raises(Interrupted):
            train(out(SALVO, run))
    assert read_run(run)["status"] == "interrupted"
    ended = gone_on(run)
    assert ended.evaluation.games
    assert read_run(run)["status"] == "done"


def test_a_finished_run_is_left_alone_or_made_longer(tmp_path, typed):
    run = tmp_path / "run"
    train(out(SALVO, run))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    said = typed("resume", "run")
    assert said.returncode == 0
    assert "is finished, after 40 games, and this makes it longer: rlgames" in said.stdout
    assert "nothing was changed" in said.stdout
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    said = typed("resume", "run", "games=56")
    assert said.returncode == 0, said.stderr
    found = Checkpoint.read(run / "checkpoints/latest.safetensors")
    assert (found.games, found.config["games"]) == (56, 56)
    assert [line["games"] for line in read_metrics(run / "metrics.jsonl")][-1] == 56
    assert "games: 56" in (run / "config.yaml").read_text()
    assert read_run(run)["resumed"][0]["games"] == 40


REFUSED = {
    "game=connect4": "game=connect4 differs from the trained game=salvo",
    "board=4": "board=4 differs from the trained board=3",
    "policy.layers=[9]": "policy.layers=[9] differs from the trained policy.layers=[8]",
    "lr=0.5": "lr=0.5 differs from the trained lr=0.002",
    "games=8": "games=8, and 16 are played already; games=40 is what the run was to have",
    "device=cuda:9": "device=cuda:9 is not here; use device=",
    "sed=1": "no key is called 'sed' here",
    "gmes=50": "no key is called 'gmes' here; did you mean games?",
}


def test_goes_on_with_the_same_run_only(tmp_path, monkeypatch, typed):
    broken_off(monkeypatch, out(SALVO, tmp_path / "run"), 2)
    for word, told in REFUSED.items():
        said = typed("resume", "run", word)
        assert (said.returncode, said.stdout) == (2, ""), word
        assert told in said.stderr
        assert len(said.stderr.splitlines()) == 1
    said = typed("resume", "run", "board=4", "policy=conv")
    assert "board=4 differs" in said.stderr
    assert "policy=conv differs" in said.stderr
    for path, told in {"run/checkpoints": "no checkpoint at", "none": "there is no run at"}.items():
        assert told in typed("resume", path).stderr
    assert "resume needs a run" in typed("resume").stderr


def changed(path, **parts):
    """Write a checkpoint again with other parts."""
    replace(Checkpoint.read(path), **parts).write(path)


def test_a_damaged_checkpoint_is_refused_and_another_named(tmp_path, monkeypatch, typed):
    run = tmp_path / "run"
    broken_off(monkeypatch, out([*SALVO, "keep_every=16"], run), 4)
    path = run / "checkpoints/latest.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    said = typed("resume", "run")
    assert said.returncode == 2
    assert "damaged: its content does not match its checksum" in said.stderr
    assert "a new run can begin with other weights: init_from=run/checkpoints/" in said.stderr
    path.write_bytes(data)
    found = Checkpoint.read(path)
    with monkeypatch.context() as patched:
        patched.setattr("rlgames.runs.checkpoint.FORMAT", FORMAT + 1)
        found.write(path)
    said = typed("resume", "run")
    told = f"was written by a newer version of rlgames (format {FORMAT + 1}, here {FORMAT})"
    assert told in said.stderr


def test_every_so_often_a_checkpoint_is_kept(tmp_path):
    train(out([*SALVO, "keep_every=12"], tmp_path / "run"))
    names = {path.name for path in (tmp_path / "run/checkpoints").iterdir()}
    kept = {f"games_{games}.safetensors" for games in (16, 32)}
    assert names == {"latest.safetensors", "best.safetensors", *kept}
    for name in names:
        assert load_agent(tmp_path / "run/checkpoints" / name)


def test_a_run_of_a_gpu_opens_and_goes_on_on_the_cpu(tmp_path, monkeypatch):
    run = tmp_path / "run"
    broken_off(monkeypatch, out(SALVO, run), 2)
    path = run / "checkpoints/latest.safetensors"
    found = Checkpoint.read(path)
    first = found.state["processes"]["0"]
    first["generators"] = dict.fromkeys(first["generators"], torch.zeros(16, dtype=torch.uint8))
    changed(path, config=found.config | {"device": "cuda"}, state=found.state)
    if not torch.cuda.is_available():
        assert load_agent(run).policy
        with pytest.raises(ConfigError, match="device=cuda is not here"):
            gone_on(run)
    assert gone_on(run, ["device=cpu"]).evaluation.games


def test_a_bad_number_ends_the_run_and_harms_nothing(tmp_path, monkeypatch, typed):
    count, of_moves = 0, Reward.rewards

    def spoilt(self, moves, results):
        nonlocal count
        count += 1
        return of_moves(self, moves, results) * (math.nan if count == 4 else 1)

    with monkeypatch.context() as patched:
        patched.setattr(Reward, "rewards", spoilt)
        said = typed("train", *SALVO, "out=run")
    assert said.returncode == 3
    last = said.stderr.splitlines()[-1]
    assert "update 4, after 24 games: a reward is not a finite number" in last
    assert "resume from the last checkpoint: rlgames resume run" in last
    assert "Traceback" not in said.stderr
    assert read_run(tmp_path / "run")["status"] == "failed"
    train(out(SALVO, tmp_path / "whole"))
    gone_on(tmp_path / "run")
    same(as_it_ended(tmp_path / "whole"), as_it_ended(tmp_path / "run"))
