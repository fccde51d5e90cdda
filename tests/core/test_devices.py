"""Which device a name stands for, and what devices without float64 can do."""

import signal

import pytest
import torch
from helpers import SMALL_TRAINING, make_agent, make_game, make_policy, rng
from markers import one_in
from torch.utils._python_dispatch import TorchDispatchMode

import rlgames
from rlgames.build.policies import make_reward, policy_to
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core import devices
from rlgames.core.devices import choose_device, find_device
from rlgames.core.errors import ConfigError
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.training.checks import Plan, check_fits
from rlgames.training.sources import GameSource

MPS = torch.device("mps")


@pytest.mark.parametrize(
    ("has_cuda", "has_mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_is_cuda_then_mps_then_the_cpu(has_cuda, has_mps, expected, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A GPU")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    assert choose_device("auto") == expected
    about = " (A GPU)" if has_cuda else ""
    assert capsys.readouterr() == ("", f"rlgames: device=auto is {expected}{about}\n")


def test_a_named_device_is_taken_as_it_is(capsys):
    assert choose_device("cuda:1") == "cuda:1"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda:99", "this machine has no device=cuda:99; use device="),
        ("mps:7", "this machine has no device=mps:7; use device="),
        ("cuda:x", "this machine has no device=cuda:x; use device="),
        ("gpu", "device=gpu is not a device; use device=cuda"),
        ("meta", "device=meta is not a device; available: auto, cpu, cuda, mps"),
        ("", "device= is not a device"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name, message):
    with pytest.raises(ConfigError) as error:
        find_device(name)
    assert str(error.value).startswith(message)


def test_a_run_and_an_evaluation_say_what_auto_is(typed, tmp_path):
    best = devices.available_devices()[0]
    small = ["game=tictactoe", "games=8", "batch=4", "eval_games=2", "solve_seconds=0"]
    done = typed("train", *small, "device=auto", "out=run")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"rlgames: device=auto is {best}") == 1
    assert f"device: {best}" in (tmp_path / "run/config.yaml").read_text()
    done = typed("eval", "run", "games=4", "device=auto", "format=json")
    assert done.returncode == 0
    assert done.stderr.count(f"rlgames: device=auto is {best}") == 1
    assert done.stdout.startswith("{")


def test_what_needs_float64_is_refused_on_a_device_without_it():
    cfg = load_config(TrainConfig, ["game=2048", "policy=embedding", "experiment=null"])
    game = make_game("game=2048")
    policy = make_policy(cfg, game)
    with pytest.raises(ConfigError, match="policy=embedding computes with float64, which device="):
        policy_to(policy, "embedding", MPS)
    words = ["game=2048", "learner=adp", "policy=linear", "sampling=argmax", "experiment=null"]
    cfg = load_config(TrainConfig, [*words, "reward=score"])
    training = Plan(cfg, game, make_reward(cfg.reward, game), False)
    check_fits(training)
    game.device = MPS
    with pytest.raises(ConfigError, match="learner=adp computes with float64, which device=mps"):
        check_fits(training)


class NoFloat64(TorchDispatchMode):
    """Refuses every operation with a result of float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            assert result.dtype != torch.float64, f"{func} returned float64"
        return result


NETWORK = "policy=mlp policy.layers=[8]"
GREEDY = "sampling=epsilon_greedy"
FOUR = "game=2048 board=2 reward=score sampling=argmax"
TRAININGS = [
    f"game=othello board=4 learner=ppo {GREEDY} {NETWORK}",
    f"game=hex board=3 learner=reinforce {NETWORK}",
    f"game=gomoku board=5 line=3 learner=dqn {GREEDY} {NETWORK}",
    f"game=tictactoe learner=td policy=table {GREEDY}",
    f"{FOUR} learner=td policy=table",
    f"{FOUR} learner=td_lambda {NETWORK}",
    "game=salvo_duel board=3 ships=[2] learner=ppo policy=conv",
]


@pytest.mark.parametrize("words", one_in(3, TRAININGS))
def test_playing_and_learning_need_no_float64(words, monkeypatch):
    """As on a device that has none."""
    monkeypatch.setattr(devices, "has_float64", lambda device: False)
    reward = [] if "reward" in words else ["reward=outcome"]
    game, agent, learner = make_agent("experiment=null", *words.split(), *reward)
    with NoFloat64():
        trajectories, final_states = collect_games(game, [agent], 16, rng())
        learner.update(trajectories, final_states, 0.5)
        collect_games(game, [Random(game)], 4, rng())
        agent.probabilities(trajectories.state)


def torch_settings():
    return (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )


def test_the_functions_for_python_leave_torchs_settings_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlgames.core.devices.find_device", as_on_cuda(find_device))
    before = torch_settings()
    assert before[0] != 2
    words = [*SMALL_TRAINING, "solve_seconds=0", "threads=2"]
    run = rlgames.train([*words, "out=run"])
    assert torch_settings() == before
    rlgames.load(run)
    rlgames.report(run)
    rlgames.evaluate(run, ["games=4", "threads=2"])
    assert torch_settings() == before
    for wrong in (["opponent=nobody"], ["out=run"], ["policy=table"]):
        with pytest.raises(ConfigError):
            rlgames.train([*words, *wrong])
        assert torch_settings() == before
    with pytest.raises(ConfigError):
        rlgames.evaluate(run, ["threads=2", "opponent=hunt_target"])
    monkeypatch.setattr(GameSource, "prepare", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        rlgames.train([*words, "out=other"])
    assert torch_settings() == before


def as_on_cuda(find):
    """Finding a device as if it were a GPU, which torch is told to be deterministic on."""

    def there(name):
        devices._make_deterministic()
        return find(name)

    return there
