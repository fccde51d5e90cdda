"""How soon rlgames answers and begins to learn, and how much memory its jobs take."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_tools import FOUR_TUPLES, environment, in_turn, progress, rows

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

RANDOM = ["eval", "player=random", "player.observe=true", "solve_seconds=0"]
TRAIN = ["train", "solve_seconds=0", "eval_games=10"]
JOBS = {
    "--help": ["--help"],
    **{
        f"random play of connect4, batch {batch}": [
            *RANDOM,
            *("game=connect4", f"batch={batch}", f"games={2 * batch}"),
        ]
        for batch in (64, 4096, 65536)
    },
    **{
        f"random play of salvo, {side}×{side}, batch 4096": [
            *RANDOM,
            *("game=salvo", f"board={side}", "ships=[3,2]", "shots=1", "games=4096"),
        ]
        for side in (4, 7, 10)
    },
    **{
        f"training on connect4, batch {batch}": [
            *TRAIN,
            *("experiment=connect4_mlp", f"batch={batch}", f"games={2 * batch}"),
        ]
        for batch in (64, 1024, 8192)
    },
    "training on 2048, 4 six-tuples": [*TRAIN, *FOUR_TUPLES, "games=512"],
    "training on connect4, alphazero": [*TRAIN, "experiment=connect4_alphazero", "games=512"],
}
"""Commands whose peak memory is reported."""

PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)
"""
"""Runs a command and prints its peak in KiB: a process counts as at least as large as the one that
begins it, which therefore is a small one."""


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


def memory(rounds: int) -> str:
    body = []
    for name, words in JOBS.items():
        peak = statistics.median(peak_of(words) for _ in range(rounds))
        body.append([name, f"{peak:.0f}"])
        progress(f"{name}: {peak:.0f} MiB")
    return rows(["job", "peak memory, MiB"], body)


def peak_of(words: list[str]) -> float:
    """MiB that a command held at most, its libraries among them."""
    with tempfile.TemporaryDirectory() as folder:
        own = [*words, f"out={folder}/run"] if words[0] == "train" else words
        output = subprocess.run(
            [sys.executable, "-S", "-c", PEAK, *command(*own)],
            env=environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
    peak, code = map(int, output.stdout.split())
    if code:
        raise RuntimeError(f"rlgames {' '.join(own)} ended with {code}")
    return peak / 1024
