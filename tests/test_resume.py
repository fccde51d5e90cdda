"""A run that is broken off and gone on with comes out as one that never stopped."""

import itertools

import pytest
from runs import as_it_ended, metrics_of, same

from rlgames import build, config, training
from rlgames.commands.resume import resume_command
from rlgames.config import ConfigError
from rlgames.interrupts import Interrupted

SMALL = ["games=40", "batch=8", "log_every=16", "eval_every=16", "save_every=8", "eval_games=8"]
SMALL += ["solve_seconds=0"]
GAMES = {
    "battleship": ["board=4", "ships=[2]"],
    "salvo": ["board=3", "ships=[2]", "shots=2"],
    "salvo_duel": ["board=2", "ships=[2]"],
    "tictactoe": [],
    "connect4": ["rows=3", "columns=4", "line=3"],
    "2048": ["board=2", "columns=2", "target=32"],
}
NETWORK = ["policy=mlp", "policy.layers=[8]"]
LEARNERS = {
    "reinforce": [NETWORK],
    "actor_critic": [
        [*NETWORK, "learner.minibatches=2", "learner.epochs=2"],
        [*NETWORK, "window=4", "batch=5", "sampling=epsilon_greedy"],
        ["policy=conv", "policy.channels=[2]", "opponent=past", "opponent.every=10"],
    ],
    "td": [
        ["policy=table", "sampling=epsilon_greedy"],
        ["policy=ntuple", "sampling=argmax", "window=4", "learner.rates=coherence"],
    ],
    "td_lambda": [[*NETWORK, "reward=score", "sampling=argmax", "window=4"]],
    "adp": [["policy=basis", "reward=score", "sampling=epsilon_greedy"]],
    "q": [[*NETWORK, "sampling=epsilon_greedy", "learner.memory=64", "learner.minibatch=8"]],
    "clone": [[*NETWORK, "teacher=random", "learner.patience=1"]],
    "occupancy": [[*NETWORK]],
    "expert": [
        [*NETWORK, "search=mcts", "search.simulations=4", "search.leaf=value", "learner.memory=50"]
    ],
}


def combinations():
    """Every learner with every game that it fits."""
    for (learner, variants), game in itertools.product(LEARNERS.items(), GAMES):
        for words in variants:
            typed = ["experiment=null", f"game={game}", f"learner={learner}", *GAMES[game]]
            try:
                cfg = config.load("train", [*typed, *SMALL, *words])
                training.check_parts(cfg)
            except ConfigError:
                continue
            yield pytest.param([*typed, *SMALL, *words], id=f"{learner}-{game}-{words[0][7:]}")


COMBINATIONS = list(combinations())


def test_every_learner_and_every_game_is_gone_on_with():
    found = [case.values[0] for case in COMBINATIONS]
    named = {word for words in found for word in words}
    assert {f"learner={name}" for name in build.LEARNERS} <= named
    assert {f"game={name}" for name in build.GAMES} <= named
    assert {"window=4", "opponent=past"} <= named


def broken_off(monkeypatch, cfg, batches):
    """Train, interrupted in play after so many batches; the run's directory."""
    count = 0
    play = training.Lessons.play

    def interrupted(*args):
        nonlocal count
        moves = play(*args)
        count += 1
        if count > batches:
            raise Interrupted(15)
        return moves

    with monkeypatch.context() as patched:
        patched.setattr(training.Lessons, "play", interrupted)
        with pytest.raises(Interrupted, match="rlgames resume"):
            training.train(cfg)
    return cfg.out


def gone_on(directory, words=()):
    return training.resume(directory, *resume_command(directory, list(words)))


def out(words, path):
    return config.load("train", [*words, f"out={config.quoted(str(path))}"])


@pytest.mark.parametrize("words", COMBINATIONS)
def test_goes_on_exactly(words, tmp_path, monkeypatch):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    training.train(out(words, whole))
    broken_off(monkeypatch, out(words, parted), 3)
    gone_on(parted)
    same(as_it_ended(whole), as_it_ended(parted))
    assert metrics_of(whole) == metrics_of(parted)
