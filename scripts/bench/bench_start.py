"""How soon rlgames answers and begins to learn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bench_tools import environment, in_turn, table

from rlgames.runs.files import read_metrics

FIRST = {
    "tictactoe": ["game=tictactoe", "policy=mlp"],
    "salvo": ["game=salvo"],
    "connect4": ["game=connect4"],
    "2048": ["game=2048"],
}
"""Trainings by their defaults, but for the log: `rlgames train`."""


def begin(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rlgames", *words]
    none = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment(), stdout=none, stderr=none)


def seconds_to_help() -> float:
    start = time.perf_counter()
    if begin("--help").wait(60):
        raise RuntimeError("rlgames --help failed")
    return time.perf_counter() - start


def seconds_to_update(words: list[str]) -> float:
    """From the start of the process until the log has its first line of learning."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run" / "metrics.jsonl"
        start = time.perf_counter()
        process = begin("train", *words, "log_every=1", "solve_seconds=0", f"out={path.parent}")
        try:
            while process.poll() is None:
                if path.exists() and any("train/turns" in line for line in read_metrics(path)):
                    return time.perf_counter() - start
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()
    raise RuntimeError(f"rlgames train {' '.join(words)} has learned nothing")


def starting(rounds: int) -> str:
    sides = {f"first update, {name}": partial(seconds_to_update, FIRST[name]) for name in FIRST}
    results = in_turn({"rlgames --help": seconds_to_help, **sides}, rounds)
    return table(["from the command to", "seconds"], results)
