"""Several processes teach one policy as one process would."""

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from markers import one_in, quick, slow
from processes import Process, final_state, has_ended, metrics_without_times, same

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import REGISTRY, load_option
from rlgames.core import distributed
from rlgames.learners.learner import Learner
from rlgames.rewards import Reward
from rlgames.rollouts.play import collect_games
from rlgames.rollouts.trajectories import FinalStates
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.training.collector import Collector
from rlgames.training.components import build_components

WORDS = ["experiment=null", "game=salvo", "board=3", "ships=[2]", "policy=mlp", "policy.layers=[8]"]
WORDS += ["games=240", "batch=12", "log_every=24", "eval_every=60", "solve_seconds=0"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return str(listener.getsockname()[1])


class Ranks:
    """So many forks that meet as those that torchrun starts; prepare(rank) is called in each."""

    def __init__(self, folder, *words, size=2, prepare=lambda rank: None):
        port = free_port()

        def told(rank):
            named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
            named |= {"MASTER_ADDR": "localhost", "TORCHELASTIC_RUN_ID": "none"}
            os.environ.update({name: str(value) for name, value in named.items()})
            prepare(rank)

        self.processes = [
            Process(folder, *words, prepare=partial(told, rank)) for rank in range(size)
        ]

    def wait(self):
        return [process.wait() for process in self.processes]


def both(folder, *words, prepare=lambda rank: None):
    ends = Ranks(folder, *words, prepare=prepare).wait()
    assert [code for code, _ in ends] == [0, 0], ends
    return ends


def saving_weights(folder, name):
    """Have each process note its weights after every update."""

    def prepare(rank):
        update = name.update
        count = 0

        def noted(self, *args):
            nonlocal count
            figures = update(self, *args)
            count += 1
            torch.save(self.policy.state_dict(), folder / f"{rank}-{count}.pt")
            return figures

        name.update = noted

    return prepare


LEARNERS = {
    "ppo": ["learner.num_minibatches=3", "learner.epochs=2"],
    "reinforce": ["learner.baseline=standardized"],
    "dqn": ["sampling=epsilon_greedy", "learner.buffer_size=100", "learner.minibatch_size=8"],
}


@pytest.mark.parametrize("learner", quick(LEARNERS, "ppo"))
def test_weights_are_the_same_in_all_after_every_update(learner, tmp_path):
    prepare = saving_weights(tmp_path, load_option("learner", learner))
    words = ["train", *WORDS, f"learner={learner}", *LEARNERS[learner], "out=run"]
    both(tmp_path, *words, prepare=prepare)
    assert len(list(tmp_path.glob("0-*.pt"))) == 20
    for count in range(1, 21):
        one, two = (torch.load(tmp_path / f"{rank}-{count}.pt") for rank in (0, 1))
        same(one, two)
    lines = read_metrics(tmp_path / "run/metrics.jsonl")
    assert [line["games"] for line in lines if "train/loss" in line][-1] == 240
    assert read_run(tmp_path / "run")["status"] == "done"


@pytest.mark.parametrize(
    "learner",
    one_in(
        3,
        [
            ["learner=ppo", "learner.num_minibatches=1", "learner.epochs=3"],
            *(
                ["learner=reinforce", f"learner.baseline={name}", "learner.entropy_coef=0.1"]
                for name in ("none", "mean", "standardized", "value")
            ),
        ],
    ),
)
def test_equals_one_process_on_the_same_games(learner, tmp_path):
    """Part of the games each, of unequal lengths, against all of them at once."""
    words = [*WORDS, *learner, "learner.optimizer=sgd", "lr=0.1"]

    def taught(games):
        parts = build_components(load_config(TrainConfig, words))
        rng = torch.Generator().manual_seed(1)
        moves, results = collect_games(parts.game, [parts.agent], 10, rng)
        chosen = torch.tensor(games)
        moves, results = moves.select_games(chosen), FinalStates(results.state[chosen], 0)
        parts.learner.update(moves, results, 0.0)
        return parts.agent.policy.state_dict()

    def prepare(rank):
        with distributed.process_group("cpu", 60):
            torch.save(taught([[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]][rank]), tmp_path / f"{rank}.pt")
        os._exit(0)

    assert [code for code, _ in Ranks(tmp_path, prepare=prepare).wait()] == [0, 0]
    alone = taught(list(range(10)))
    for rank in (0, 1):
        actual = torch.load(tmp_path / f"{rank}.pt")
        for name, value in alone.items():
            assert torch.allclose(value, actual[name], atol=1e-6), name


@pytest.mark.slow
def test_resumes_exactly(tmp_path):
    words = ["train", *WORDS, "window=2"]
    both(tmp_path, *words, "out=whole")

    def prepare(rank):
        update, count = load_option("learner", "ppo").update, 0

        def stopped(self, *args):
            nonlocal count
            count += 1
            if count == 9 and rank == 1:
                signal.raise_signal(signal.SIGTERM)
            return update(self, *args)

        load_option("learner", "ppo").update = stopped

    ends = Ranks(tmp_path, *words, "out=parted", prepare=prepare).wait()
    assert [code for code, _ in ends] == [143, 143], ends
    assert "resume with: rlgames resume parted" in ends[0][1]
    both(tmp_path, "resume", "parted")
    same(final_state(tmp_path / "whole"), final_state(tmp_path / "parted"))
    assert metrics_without_times(tmp_path / "whole") == metrics_without_times(tmp_path / "parted")


@pytest.mark.slow
def test_a_killed_process_ends_the_others(tmp_path):
    def prepare(rank):
        play, count = Collector.next_batch, 0

        def killed(self, *args):
            nonlocal count
            count += 1
            if count == 12 and rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return play(self, *args)

        Collector.next_batch = killed

    begun = time.monotonic()
    first, second = Ranks(tmp_path, "train", *WORDS, "out=run", prepare=prepare).wait()
    assert time.monotonic() - begun < 30
    assert second[0] == -signal.SIGKILL
    assert first[0] == 3, first
    assert "resume from the last checkpoint: rlgames resume run" in first[1]
    assert Checkpoint.read(tmp_path / "run/checkpoints/latest.safetensors").games == 120
    both(tmp_path, "resume", "run")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["game=tictactoe", "policy=table", "learner=td"], "learner=td works in one process only"),
        slow((["learner=ppo", "batch=1"], "batch=1 is too small for 2 processes; batch=2 gives")),
    ],
)
def test_unsupported_distributed_configs_are_rejected(words, told, tmp_path):
    for code, said in Ranks(tmp_path, "train", *words, "out=run").wait():
        assert code == 2, said
        assert told in said
    assert not (tmp_path / "run").exists()


def test_learners_declare_distributed_support():
    assert {
        name for name, part in REGISTRY["learner"].items() if part.load().supports_distributed
    } == {
        "ppo",
        "reinforce",
        "dqn",
        "alphazero",
        "td_lambda",
    }
    assert not Learner.supports_distributed


@pytest.mark.parametrize("spoilt", [slow([0, 1]), [1]])
def test_a_non_finite_number_ends_all_processes_in_one_line(spoilt, tmp_path):
    def prepare(rank):
        real = Reward.rewards
        if rank in spoilt:
            Reward.rewards = lambda self, *given: real(self, *given) * math.nan

    for code, told in Ranks(tmp_path, "train", *WORDS, "out=run", prepare=prepare).wait():
        assert code == 3, told
        assert "Traceback" not in told
        assert "not a finite number" in told or "another process of this run has ended" in told


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not condition():
        time.sleep(0.05)
    assert condition()


def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Nobody tells them: torchrun gives each process a group of its own, and is killed."""
    launcher = os.fork()
    if not launcher:
        os.setsid()
        ranks = Ranks(tmp_path, "train", *WORDS, "games=10000000", "out=run")
        pids = [process.pid for process in ranks.processes]
        (tmp_path / "pids.part").write_text(" ".join(map(str, pids)))
        (tmp_path / "pids.part").rename(tmp_path / "pids")
        time.sleep(120)
        os._exit(0)
    try:
        wait_until((tmp_path / "run/metrics.jsonl").exists, 60)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert not any(map(has_ended, pids))
    finally:
        os.kill(launcher, signal.SIGKILL)
        os.waitpid(launcher, 0)
    wait_until(lambda: all(map(has_ended, pids)), 15)
    assert read_run(tmp_path / "run")["status"] == "interrupted"


@pytest.mark.slow
def test_processes_end_with_a_torchrun_that_is_killed_while_they_import(tmp_path):
    """They would wait join_seconds for it."""
    named = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    named |= {"MASTER_ADDR": "localhost", "MASTER_PORT": free_port()}
    words = [sys.executable, "-m", "rlgames", "train", *WORDS, "out=run"]
    launcher = os.fork()
    if not launcher:
        rank = subprocess.Popen(words, cwd=tmp_path, env=os.environ | named, start_new_session=True)
        (tmp_path / "pid.part").write_text(str(rank.pid))
        (tmp_path / "pid.part").rename(tmp_path / "pid")
        time.sleep(120)
        os._exit(0)
    wait_until((tmp_path / "pid").exists, 60)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: "libtorch_cpu" in Path(f"/proc/{pid}/maps").read_text(), 60)
    os.kill(launcher, signal.SIGKILL)
    os.waitpid(launcher, 0)
    try:
        wait_until(lambda: has_ended(pid), 5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_killing_torchruns_process_group_leaves_nobody(tmp_path):
    script = "import sys; sys.argv[0] = 'rlgames'; from rlgames.app import main; main()"
    (tmp_path / "start.py").write_text(script)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    words += ["start.py", "train", *WORDS, "games=10000000", "out=run"]
    torchrun = subprocess.Popen(words, cwd=tmp_path, start_new_session=True)
    try:
        wait_until((tmp_path / "run/metrics.jsonl").exists, 90)
        pids = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(status.read_text().rpartition(")")[2].split()[1]) == torchrun.pid:
                    pids.append(int(status.parent.name))
        assert len(pids) >= 2
    finally:
        os.killpg(torchrun.pid, signal.SIGKILL)
        torchrun.wait()
    wait_until(lambda: all(map(has_ended, pids)), 15)
    assert Checkpoint.read(tmp_path / "run/checkpoints/latest.safetensors").games > 0


@pytest.mark.parametrize(
    ("present", "missing"),
    [slow((0, "process 1 (RANK=1)")), (1, "process 0 (RANK=0) at localhost:")],
)
def test_a_missing_process_is_named_and_waited_for_a_limited_time(present, missing, tmp_path):
    def prepare():
        named = {"RANK": present, "LOCAL_RANK": present, "WORLD_SIZE": 2}
        named |= {"MASTER_ADDR": "localhost", "MASTER_PORT": free_port()}
        os.environ.update({name: str(value) for name, value in named.items()})
        os.environ["TORCHELASTIC_RUN_ID"] = "none"
        distributed.SILENT_SECONDS = 0.5

    begun = time.monotonic()
    words = ["train", *WORDS, "out=run", "join_seconds=1"]
    code, said = Process(tmp_path, *words, prepare=prepare).wait()
    assert code == 3, said
    assert time.monotonic() - begun < 20
    first, second = said.strip().splitlines()
    assert first.startswith("rlgames: waiting for " + missing)
    assert "did not join within join_seconds=1" in second
    assert not (tmp_path / "run").exists()


TORCHRUN = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
TORCHRUN |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "12345"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            dict.fromkeys(["RANK", "LOCAL_RANK", "WORLD_SIZE"]),
            "is set without RANK, LOCAL_RANK, WORLD_SIZE;",
        ),
        ({"WORLD_SIZE": None}, "is set without WORLD_SIZE;"),
        ({"MASTER_ADDR": None}, "is set without MASTER_ADDR;"),
        ({"RANK": "a"}, "RANK='a' is not a whole number"),
        ({"RANK": "2"}, "RANK=2 is out of range"),
        ({"RANK": "-1"}, "RANK=-1 is out of range"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE=0 is out of range"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT=99999 is out of range"),
    ],
)
def test_what_is_wrong_with_torchruns_variables_is_named(
    changed, told, typed, tmp_path, monkeypatch
):
    for name, value in (TORCHRUN | changed).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    done = typed("train", *WORDS, "out=run")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize(
    ("device", "message"),
    [
        slow(("cuda", "this machine has no device=cuda; use device=cpu")),
        ("cuda:1", "the GPU of all processes"),
    ],
)
def test_a_gpu_that_processes_cannot_have_is_refused_in_one_line(device, message, tmp_path):
    for code, text in Ranks(tmp_path, "train", *WORDS, f"device={device}").wait():
        assert code == 2
        assert message in text
        assert len(text.splitlines()) == 1
    assert list(tmp_path.glob("*/**/run.json")) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[gloo] Connection closed by peer [127.0.0.1]:3", ConnectionError),
        ("Failed to recv, got 0 bytes. Connection was likely closed.", ConnectionError),
        ("Connection was lost", ConnectionError),
        ("NCCL error: Duplicate GPU detected", RuntimeError),
        ("Connection of shapes [2] and [3]", RuntimeError),
    ],
)
def test_only_a_lost_connection_is_said_to_be_the_end_of_another_process(text, error):
    with pytest.raises((ConnectionError, RuntimeError)) as raised, distributed._communication():
        raise RuntimeError(text)
    assert type(raised.value) is error
