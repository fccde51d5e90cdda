"""Where the time goes, and how far jobs are from what the memory and arithmetic here allow.

Bytes and operations are counted by torch's profiler, in a run of its own that is not timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from bench_play import GAMES
from bench_tools import Rounds, progress, rows, short
from bench_train import CASE1, trained
from torch.profiler import ProfilerActivity, profile

import rlgames
from rlgames import build, config

BATCH = 4096
PROFILED = 512
"""Games side by side under the profiler, which keeps every call in memory."""

TRAININGS = {
    "training, case 1": [*CASE1, "games=10240", "log_every=2048"],
    "training, connect4": ["game=connect4", "games=3072", "log_every=1024"],
    "training, 2048, 4 six-tuples": ["experiment=2048_ntuple", "games=300", "log_every=100"],
}
QUIET = ["eval_games=1", "eval_every=1000000"]


@dataclass(frozen=True)
class Machine:
    """What this machine does, with one thread.

    copied: bytes read and written a second, between arrays much larger than its caches. multiplied:
    operations a second of a product of float32 matrices. call: seconds of one call of torch on one
    number.
    """

    copied: float
    multiplied: float
    call: float

    @classmethod
    def measured(cls) -> Machine:
        torch.set_num_threads(1)
        source, goal = torch.ones(1 << 26), torch.ones(1 << 26)
        square, one = torch.rand(1024, 1024), torch.ones(1)
        return cls(
            copied=2 * source.nbytes / _fastest(lambda: goal.copy_(source), 5),
            multiplied=2 * 1024**3 / _fastest(lambda: square @ square, 20),
            call=_fastest(lambda: [one + one for _ in range(1000)], 20) / 1000,
        )

    def text(self) -> str:
        cells = f"{self.copied / 1e9:.1f}", f"{self.multiplied / 1e9:.0f}", f"{self.call * 1e6:.2f}"
        head = ("memory, GB a second", "float32 products, Gflop a second", "one call of torch, µs")
        return rows(head, [cells])


def _fastest(job: Callable[[], Any], times: int) -> float:
    """Seconds of the fastest of several runs."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        job()
        spent.append(time.perf_counter() - start)
    return min(spent)


@dataclass(frozen=True)
class Counted:
    """A profile: calls of torch, bytes that they made room for, operations of matrix products, and
    each call's share of the time, the largest first."""

    calls: int
    written: int
    flops: int
    shares: dict[str, float]

    @classmethod
    def of(cls, job: Callable[[], Any]) -> Counted:
        activities = [ProfilerActivity.CPU]
        with profile(activities=activities, profile_memory=True, with_flops=True) as seen:
            job()
        events = [event for event in seen.key_averages() if event.key.startswith("aten::")]
        total = sum(event.self_cpu_time_total for event in events)
        events.sort(key=lambda event: -event.self_cpu_time_total)
        return cls(
            calls=sum(event.count for event in events),
            written=sum(max(event.self_cpu_memory_usage, 0) for event in events),
            flops=sum(event.flops for event in events),
            shares={event.key[6:]: event.self_cpu_time_total / total for event in events},
        )

    def top(self) -> str:
        return ", ".join(f"{name} {share:.0%}" for name, share in list(self.shares.items())[:5])


def least_bytes(words: list[str]) -> int:
    """Of a move of random play: the state read and written once, the observation and the action
    written once."""
    cfg = config.load("eval", [*words, "player=random"])
    game = build.build_game(cfg)
    state = game.initial(1, torch.Generator().manual_seed(0))
    held = sum(getattr(state, field.name).nbytes for field in fields(state))
    return int(2 * held + game.observe(game.public(state)).nbytes + 8)


def playing(machine: Machine) -> str:
    body = []
    for name, game in GAMES.items():
        words = ["player=random", "player.observe=true", "solve_seconds=0", *game]
        words += [f"batch={BATCH}", "threads=1"]
        speed = rlgames.evaluate(None, [*words, f"games={2 * BATCH}"])["moves_per_s"]
        found: dict[str, Any] = {}
        job = partial(_kept, found, [*words, f"games={PROFILED}"])
        counted = Counted.of(job)
        moves, plies = found["moves"]["mean"] * PROFILED, found["moves"]["max"]
        least = least_bytes(game)
        limit = machine.copied / least
        body.append(
            [
                name,
                short(speed),
                f"{counted.calls / plies:.0f}",
                short(counted.written / moves),
                str(least),
                short(limit),
                f"{speed / limit:.1%}",
                short(64 * plies / (counted.calls * machine.call)),
                counted.top(),
            ]
        )
        progress(" ".join(body[-1]))
    head = (
        "random play",
        "moves a second",
        "calls a ply",
        "bytes made room for a move",
        "least bytes a move",
        "moves a second at those",
        "reached",
        "of 64 games at the least time a call",
        "most time in",
    )
    return rows(head, body)


def _kept(found: dict[str, Any], words: list[str]) -> None:
    found |= rlgames.evaluate(None, words)


def learning(machine: Machine) -> str:
    body = []
    for name, words in TRAININGS.items():
        speeds: list[float] = []
        moves: list[float] = []
        lines, _ = trained([*words, *QUIET], 0)
        speeds = [line["time/moves_per_s"] for line in lines if "time/moves_per_s" in line]
        counted = Counted.of(partial(_lines, moves, [*words, *QUIET]))
        operations = counted.flops / sum(moves)
        limit = machine.multiplied / operations if operations else float("inf")
        speed = Rounds(tuple(speeds)).median
        body.append(
            [
                name,
                short(speed),
                short(counted.written / sum(moves)),
                short(operations),
                short(limit) if operations else "–",
                f"{speed / limit:.1%}" if operations else "–",
                counted.top(),
            ]
        )
        progress(" ".join(body[-1]))
    head = (
        "job",
        "moves learnt from a second",
        "bytes made room for a move",
        "operations of products a move",
        "moves a second at those",
        "reached",
        "most time in",
    )
    return rows(head, body)


def _lines(moves: list[float], words: list[str]) -> None:
    """Train, and tell how many moves each line of the log is about."""
    games = 0.0
    for line in trained(words, 0)[0]:
        if "train/turns" in line:
            moves.append((line["games"] - games) * line["train/turns"])
            games = line["games"]


def limits(rounds: int) -> str:
    """One round, whatever is asked: shares and counts hardly change."""
    machine = Machine.measured()
    progress(machine.text())
    return "\n\n".join([machine.text(), playing(machine), learning(machine)])


def processor() -> str:
    """What this is measured on, as the system names it."""
    names = set()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = {line.partition(":")[2].strip() for line in lines if "model name" in line}
    return f"{', '.join(sorted(names)) or 'unknown processor'}, {os.cpu_count()} cores"
