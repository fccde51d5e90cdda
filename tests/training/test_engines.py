"""Which trainings engine=ray plays, and what the engine of a config is; nothing here starts Ray."""

import importlib.util

import pytest
from helpers import check_refused

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.training.parts import build_training
from rlgames.training.sources import GameSource

TICTACTOE = ["experiment=tictactoe_alphazero", "policy.layers=[8]"]
NAMES = ("learner=dqn", "learner=occupancy", "learner=alphazero")
PAST = ["game=tictactoe", "experiment=null", "reward=outcome", "opponent=past"]


@pytest.mark.parametrize(
    ("words", "hints"),
    [
        (["game=tictactoe", "policy=mlp"], ["learner=ppo", "earlier weights", *NAMES]),
        (["game=2048", "policy=ntuple"], ["learner=td_ntuple", *NAMES]),
        (["learner=dqn", "sampling=epsilon_greedy", *PAST], ["opponent=past", "opponent=self"]),
        ([*TICTACTOE, "window=4"], ["window=4"]),
        ([*TICTACTOE, "engine.actors=0"], ["engine.actors=0 is out of range", "valid: 1 to"]),
        ([*TICTACTOE, "engine.actros=2"], ["engine.actors"]),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(typed, words, hints):
    check_refused(typed("train", *words, "engine=ray"), *hints)


def test_a_missing_ray_is_named_with_the_command_that_installs_it(typed, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "rlgames.core.errors.find_spec", lambda name: None if name == "ray" else find_spec(name)
    )
    done = typed("train", *TICTACTOE, "engine=ray")
    check_refused(done, "engine=ray needs ray", "pip install 'rlgames[ray]'")


def test_a_training_plays_in_its_own_process_if_nothing_else_is_named():
    source = build_training(load_config(TrainConfig, TICTACTOE)).source
    assert type(source) is GameSource
    source.next(4, 0)
    assert source.metrics() == {}
