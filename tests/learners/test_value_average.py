"""The mean of values over the later part of a training."""

import pytest
import torch

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.learners.td_ntuple import ValueAverage
from rlgames.runs.checkpoint import Checkpoint
from rlgames.training.parts import build_training
from rlgames.training.train import train

WORDS = ["experiment=null", "game=connect4", "reward=outcome", "policy=ntuple", "learner=td_ntuple"]
WORDS += ["policy.num_tuples=3", "policy.tuples=null", "sampling=epsilon_greedy", "eval_games=8"]
WORDS += ["games=200", "batch=20", "log_every=20", "eval_every=100", "solve_seconds=0"]


@pytest.fixture
def policy():
    return build_training(load_config(TrainConfig, WORDS)).agent.policy


def fill(policy, value):
    policy.values.fill_(value)


def test_each_hundredth_of_the_training_counts_once(policy):
    average = ValueAverage(policy, 0.5)
    for progress, value in [(0, 9), (0.499, 7), (0.5, 1), (0.505, 50), (0.51, 2), (0.6, 6)]:
        fill(policy, value)
        average.add(progress)
        if progress < 0.5:
            assert average.policy.values.eq(value).all()
    assert average.policy.values.eq(3).all()  # of 1, 2 and 6
    assert policy.values.eq(6).all()


def test_the_mean_begins_anew_if_the_training_becomes_longer(policy):
    average = ValueAverage(policy, 0.5)
    for progress, value, expected in [
        (0.9, 1, 1),
        (0.99, 3, 2),
        (0.495, 5, 5),  # twice as many games
        (0.499, 6, 6),
        (0.5, 7, 7),
        (0.51, 9, 8),
        (0.505, 4, 4),  # a little longer
        (0.52, 6, 5),
    ]:
        fill(policy, value)
        average.add(progress)
        assert average.policy.values.eq(expected).all(), progress


def test_a_state_restores_both(policy):
    average = ValueAverage(policy, 0.2)
    for progress, value in [(0.2, 1), (0.3, 5)]:
        fill(policy, value)
        average.add(progress)
    latest, mean = policy.values.clone(), average.policy.values.clone()
    state = average.state_dict() | {"trained": {"values": latest}}
    policy.values.copy_(mean)  # as from a checkpoint
    restored = ValueAverage(policy, 0.2)
    restored.load_state_dict(state)
    assert policy.values.eq(5).all()
    assert restored.policy.values.eq(3).all()
    fill(policy, 9)
    restored.add(0.305)
    assert restored.policy.values.eq(3).all()
    restored.add(0.4)
    assert restored.policy.values.eq(5).all()


def test_checkpoints_have_the_mean_and_learning_goes_on_from_the_latest_values(tmp_path):
    words = [*WORDS, "save_every=20", "keep_every=20"]
    for name, more in [("latest", []), ("mean", ["learner.average_start=0.5"])]:
        train(load_config(TrainConfig, [*words, f"out={tmp_path / name}", *more]))

    def values(name, games):
        path = tmp_path / name / "checkpoints" / f"games_{games}.safetensors"
        return Checkpoint.read(path).policy["values"]

    assert torch.equal(values("mean", 100), values("latest", 100))
    # Batches that began in the second half of the training.
    each = [values("latest", games) for games in (120, 140, 160, 180, 200)]
    torch.testing.assert_close(values("mean", 200), torch.stack(each).mean(0))
    assert not torch.equal(values("mean", 200), each[-1])
    saved = Checkpoint.read(tmp_path / "mean" / "checkpoints" / "latest.safetensors").state
    average = saved["learner"]["average"]
    assert average["count"] == 5
    assert torch.equal(average["trained"]["values"], each[-1])
