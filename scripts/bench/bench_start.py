"""How soon rlgames answers and begins to learn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_tools import environment, in_turn, rows

from rlgames.runs.files import read_metrics

Line = dict[str, float]
Seen = tuple[float, list[Line]]

FIRST = {
    "first update, tictactoe": ["game=tictactoe", "policy=mlp"],
    "first update, salvo": ["game=salvo"],
    "first update, connect4": ["game=connect4"],
    "first update, 2048": ["game=2048"],
}
"""Trainings by their defaults, but for the log: `rlgames train`."""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "rlgames", *words]


def seconds_to_help() -> float:
    start = time.perf_counter()
    subprocess.run(
        command("--help"), env=environment(), stdout=subprocess.DEVNULL, check=True, timeout=60
    )
    return time.perf_counter() - start


def seconds_to_update(words: list[str]) -> float:
    """From the start of the process until the log has its first line of learning."""
    spent, lines = train_until([*words, "log_every=1"], 0.01, lambda line: "train/turns" in line)
    if not lines:
        raise RuntimeError(f"rlgames train {' '.join(words)} has learnt nothing")
    return spent


def train_until(words: list[str], look_every: float, seen: Callable[[Line], bool]) -> Seen:
    """Run `rlgames train` until its log has a line that is looked for, and end it then.

    The seconds since its start, and the log's lines so far; none of them where it ended before.
    look_every: seconds. Raises RuntimeError where the command failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = ["train", *words, "solve_seconds=0", f"out={folder}/run"]
        start, ended = time.perf_counter(), None
        process = subprocess.Popen(
            command(*own), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        path = Path(folder) / "run" / "metrics.jsonl"
        while ended is None:
            time.sleep(look_every)
            ended = process.poll()
            lines = read_metrics(path) if path.exists() else []
            if any(map(seen, lines)):
                process.kill()
                process.wait()
                return time.perf_counter() - start, lines
    if ended:
        raise RuntimeError(f"rlgames {' '.join(own)} ended with {ended}")
    return time.perf_counter() - start, []


def starting(rounds: int) -> str:
    sides = {name: partial(seconds_to_update, words) for name, words in FIRST.items()}
    results = in_turn({"rlgames --help": seconds_to_help, **sides}, rounds)
    body = [[name, seconds.text()] for name, seconds in results.items()]
    return rows(["from the command to", "seconds"], body)
