"""Actors on Ray: how fast one, two and four are, and how long the learner waits for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from bench_tools import in_turn, progress, ratio, rows

from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.core.signals import Interrupts
from rlgames.training.components import Components, build_components
from rlgames.training.ray_engine import RayEngine
from rlgames.training.ray_library import ray

BATCH, UPDATES, GAMES_PER_TASK = 256, 30, 128
"""Games per update; updates that are timed, after one that is not; games per task."""

WORDS = [
    *("experiment=connect4_alphazero", "policy=mlp", "policy.layers=[128,64]"),
    *("learner.updates_per_batch=4", "search.simulations=32"),
    *(f"batch={BATCH}", "games=1000000", "solve_seconds=0", "logger=[]", "join_seconds=3600"),
]
ONE = "one actor"
SIDES = {"no actors": 0, ONE: 1, "two actors": 2, "four actors": 4}


def actors(rounds: int) -> str:
    """A table of speeds and of waits."""
    ray.init("local", num_cpus=sum(SIDES.values()), include_dashboard=False, log_to_driver=False)
    with Interrupts() as interrupts:
        sides = {name: Side(count, interrupts) for name, count in SIDES.items()}
        speeds = in_turn({name: side.measure for name, side in sides.items()}, rounds)
        for side in sides.values():
            side.engine.close()
    ray.shutdown()
    head = ["training", "games per second", "to one actor", "CPU time of the actors per game, ms"]
    body = [
        [name, speeds[name].text(), ratio(speeds[name], speeds[ONE]), *sides[name].figures()]
        for name in SIDES
    ]
    return rows([*head, "learner waits", "age of the games, in updates"], body)


class Side:
    """A training with a number of actors, which all sides keep between their turns."""

    def __init__(self, num_actors: int, interrupts: Interrupts) -> None:
        words = ["engine=ray", f"engine.actors={num_actors}"] if num_actors else []
        words += [f"engine.games_per_task={GAMES_PER_TASK}"] if num_actors else []
        self.components: Components = build_components(load_config(TrainConfig, [*WORDS, *words]))
        self.engine, self.rng = self.components.collector.engine, torch.Generator()
        self.engine.start(0, interrupts)
        self.cpu_ms: list[float] = []
        self.waits: list[float] = []
        self.ages: list[float] = []
        self.update()
        progress(f"{num_actors} actors play")

    def measure(self) -> float:
        """Games per second of UPDATES updates, after one that is not timed."""
        self.update()
        cpu, begin, waited = self._cpu_seconds(), time.perf_counter(), 0.0
        for _ in range(UPDATES):
            metrics = self.update()
            waited += metrics.get("wait_seconds", 0.0)
            self.ages.append(metrics.get("game_age", 0.0))
        seconds = time.perf_counter() - begin
        self.waits.append(waited / seconds)
        self._drain()
        self.cpu_ms.append(1000 * (self._cpu_seconds() - cpu) / (UPDATES * BATCH))
        return UPDATES * BATCH / seconds

    def update(self) -> dict[str, float]:
        games = self.components.collector.collect(BATCH, 0, self.rng)
        return self.components.learner.update(*games, 0.0) | self.engine.metrics()

    def figures(self) -> list[str]:
        """The cells of the table behind the speed."""
        if not isinstance(self.engine, RayEngine):
            return ["", "", "0"]
        cpu, wait, age = (sum(each) / len(each) for each in (self.cpu_ms, self.waits, self.ages))
        return [f"{cpu:.2f}", f"{wait:.0%}", f"{age:.1f}"]

    def _cpu_seconds(self) -> float:
        """CPU time of the actors so far, from Linux."""
        ticks = 0
        for process in getattr(self.engine, "_processes", {}).values():
            stat = Path(f"/proc/{process.rpartition(':')[2]}/stat").read_text(encoding="utf-8")
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))  # user and system
        return ticks / os.sysconf("SC_CLK_TCK")

    def _drain(self) -> None:
        """Let the actors finish their tasks, so that they do not disturb the next side."""
        if isinstance(self.engine, RayEngine):
            tasks = list(self.engine._tasks)
            ray.wait(tasks, num_returns=len(tasks))
            self.engine._receive(0.0)
            self.engine._backlog.clear()
