"""Where the time goes, and how far jobs are from what the memory and arithmetic here allow.

Bytes and operations are counted by torch's profiler, in a run of its own that is not timed.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeVar

import torch
from bench_play import GAMES
from bench_tools import progress, rows, short
from bench_train import CASE1, trained
from torch.profiler import ProfilerActivity, profile

import rlgames
from rlgames.commands.configs import EvalConfig
from rlgames.config.compose import load_config
from rlgames.evaluation.evaluate import Evaluation, EvaluationSettings, evaluate
from rlgames.factory.components import build_game
from rlgames.games.game import Game
from rlgames.players.player import Random

Result = TypeVar("Result")

BATCH = 4096
PROFILED = 512
"""Games side by side under the profiler, which keeps every call in memory."""

TRAININGS = {
    "training, case 1": (4096, [word for word in CASE1 if "games" not in word]),
    "training, connect4": (1024, ["game=connect4"]),
}
"""By name how many games to profile, and the settings: of short games only, as the profiler keeps
every call in memory."""


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
        head = ("memory, GB/s", "float32 matrix products, Gflop/s", "one torch call, µs")
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
    the time in each function of torch without those that it calls."""

    calls: int
    written: int
    flops: int
    times: dict[str, float]

    @classmethod
    def of(cls, job: Callable[[], Result]) -> tuple[Counted, Result]:
        """Also what the job returns."""
        activities = [ProfilerActivity.CPU]
        with profile(activities=activities, profile_memory=True, with_flops=True) as seen:
            result = job()
        events = [event for event in seen.key_averages() if event.key.startswith("aten::")]
        counted = cls(
            calls=sum(event.count for event in events),
            written=sum(max(event.self_cpu_memory_usage, 0) for event in events),
            flops=sum(event.flops for event in events),
            times={event.key[6:]: event.self_cpu_time_total for event in events},
        )
        return counted, result

    def less(self, other: Counted) -> Counted:
        """What this did beyond what the other did."""
        times = {
            name: max(0, spent - other.times.get(name, 0)) for name, spent in self.times.items()
        }
        return Counted(
            self.calls - other.calls, self.written - other.written, self.flops - other.flops, times
        )

    def top(self) -> str:
        """The five that take most, with their shares."""
        most = sorted(self.times.items(), key=lambda item: -item[1])[:5]
        return ", ".join(f"{name} {spent / sum(self.times.values()):.0%}" for name, spent in most)


def rules_of(words: list[str]) -> Game[Any]:
    return build_game(load_config(EvalConfig, [*words, "player=random"]).game)


def least_bytes(game: Game[Any]) -> int:
    """Of a move of random play: the state read and written once, the observation and the action
    written once."""
    state = game.initial(1, torch.Generator().manual_seed(0))
    held = sum(getattr(state, field.name).nbytes for field in fields(state))
    return int(2 * held + game.observe(game.public(state)).nbytes + 8)


def playing(machine: Machine) -> str:
    body = []
    for name, rules in GAMES.items():
        words = ["player=random", "player.observe=true", "solve_seconds=0", "threads=1", *rules]
        words += [f"batch={BATCH}", f"games={2 * BATCH}"]
        speed = rlgames.evaluate(None, words)["moves_per_s"]
        game = rules_of(rules)
        counted, results = Counted.of(partial(_played, game))
        moves, plies = results.num_moves, results.turns.maximum
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
        "moves per second",
        "calls per ply",
        "bytes allocated per move",
        "minimum bytes per move",
        "moves per second at this limit",
        "achieved",
        "limit of 64 games by call time",
        "most time spent in",
    )
    return rows(head, body)


def _played(game: Game[Any]) -> Evaluation:
    """Random play alone, without the figures that `eval` holds it against."""
    player, rng = Random(game, observe=True), torch.Generator().manual_seed(0)
    return evaluate(game, player, EvaluationSettings(PROFILED, batch=PROFILED), rng, player)


def learning(machine: Machine) -> str:
    body = []
    for name, (games, words) in TRAININGS.items():
        _, speed = _moves_learned(5 * games, words)
        (one, few), (three, more) = (
            Counted.of(partial(_moves_learned, count * games, words)) for count in (1, 3)
        )
        counted, moves = three.less(one), more[0] - few[0]
        operations = counted.flops / moves
        limit = machine.multiplied / operations if operations else float("inf")
        body.append(
            [
                name,
                short(speed),
                short(counted.written / moves),
                short(operations),
                short(limit) if operations else "–",
                f"{speed / limit:.1%}" if operations else "–",
                counted.top(),
            ]
        )
        progress(" ".join(body[-1]))
    head = (
        "job",
        "moves learned per second",
        "bytes allocated per move",
        "matrix-product operations per move",
        "moves per second at this limit",
        "achieved",
        "most time spent in",
    )
    return rows(head, body)


def _moves_learned(games: int, words: list[str]) -> tuple[float, float]:
    """How many moves a training learned from, and how many per second."""
    own = [
        *words,
        f"games={games}",
        f"log_every={games // 5}",
        "eval_games=1",
        "eval_every=1000000",
    ]
    lines, _ = trained(own, 0)
    output = [line for line in lines if "train/turns" in line]
    ends = [0, *(line["games"] for line in output)]
    played = [now - before for before, now in itertools.pairwise(ends)]
    moves = sum(count * line["train/turns"] for count, line in zip(played, output, strict=True))
    return moves, statistics.median(line["time/moves_per_s"] for line in output)


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
