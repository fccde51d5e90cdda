"""Untrusted files, and bounds on what reading them may cost."""

import hashlib
import json
import os
import resource
import signal
import sys
import traceback

from safetensors.torch import save

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.overrides import quoted
from rlgames.runs.checkpoint import FORMAT, NO_CHECKSUM, Checkpoint
from rlgames.training.train import train

QUICK = ["experiment=null", "games=8", "batch=4", "eval_games=4", "solve_seconds=0", "save_every=4"]
NETWORK = ["policy=mlp", "policy.layers=[2]", "learner=ppo"]
STONES = ["game=tictactoe", "reward=outcome"]
SMALL = ["board=2", "line=2"]
RUNS = {
    "plain": [*STONES, *NETWORK],
    "past": [*STONES, *SMALL, *NETWORK, "opponent=past", "opponent.every=4"],
    "dqn": [*STONES, *SMALL, *NETWORK[:2], "learner=dqn", "sampling=epsilon_greedy"],
    "table": [*STONES, *SMALL, "policy=table", "learner=td"],
    "behavior_cloning": [
        *STONES,
        *SMALL,
        *NETWORK[:2],
        "learner=behavior_cloning",
        "teacher=random",
    ],
    "open": ["game=2048", "board=2", "columns=2", "policy=ntuple", "learner=td_ntuple", "window=3"],
    "sea": ["game=salvo", "board=3", "ships=[2]", "shots=2", *NETWORK, "window=2"],
}
MORE = {
    "dqn": ["learner.buffer_size=64", "learner.minibatch_size=8", "learner.updates_per_batch=2"],
    "open": ["reward=score", "learner.step_size=temporal_coherence", "sampling=argmax"],
    "table": ["sampling=epsilon_greedy"],
    "sea": ["aim=sequential", "sampling=stochastic"],
}


def trained(name, path):
    """Train one of RUNS; returns its directory."""
    words = [*RUNS[name], *QUICK, *MORE.get(name, []), f"out={quoted(str(path))}"]
    train(load_config(TrainConfig, words))
    return path


def forge(path, tensors, header):
    """Write a checkpoint with a correct checksum, whatever it contains; header: texts by name."""
    path.write_bytes(sealed(save(tensors, {"sha256": NO_CHECKSUM} | header)))


def sealed(content):
    """The content of a checkpoint with its checksum instead of NO_CHECKSUM."""
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(NO_CHECKSUM.encode(), digest.encode(), 1)


def plain_header(checkpoint: Checkpoint):
    return {
        "format": str(FORMAT),
        "config": json.dumps(checkpoint.config),
        "games": str(checkpoint.games),
        "state": "{}",
    }


def plain_error_line(said, code=2):
    """Assert that a command ended with one short printable line on standard error; returns it."""
    lines = said.stderr.splitlines()
    assert said.returncode == code, said
    assert len(lines) == 1, said.stderr
    assert len(lines[0]) <= 1000, lines
    assert lines[0].isprintable(), lines
    assert "Traceback" not in said.stdout
    return lines[0]


def bounded(function, mebibytes, seconds):
    """Call the function in a fork with limited time and growth of memory. Returns its result as
    text."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(read)
            pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115
            limit = pages * resource.getpagesize() + (mebibytes << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.alarm(seconds)
            os.write(write, str(function()).encode()[:60_000])
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        os._exit(code)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"ended with {status}"
    return text
