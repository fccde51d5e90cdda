"""How soon rlgames learns, from how many moves in a second, and MaskablePPO next to ours.

Our figures are those that `rlgames train` logs: playing and learning together.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_tools import PEERS, Worker, in_turn, ratio, rows, table

import rlgames
from rlgames.runs.files import read_metrics

SECONDS = 3.0
"""How long MaskablePPO learns for its speed to be taken."""

LEARNERS = {
    "ppo, tictactoe": ["experiment=tictactoe_mlp", "games=60000"],
    "ppo, connect4": ["experiment=connect4_mlp", "games=12000"],
    "ppo, salvo case 2": ["experiment=ramesh_case2_tuned", "games=15000"],
    "ppo, 2048": ["experiment=2048_ppo", "games=600"],
    "reinforce, battleship": ["experiment=landy_tuned", "learner=reinforce", "games=20000"],
    "occupancy, salvo case 2": ["experiment=ramesh_case2_occupancy", "games=15000"],
    "dqn, tictactoe": ["experiment=tictactoe_dqn", "games=6000"],
    "td, tictactoe, table": ["experiment=hickman_tuned", "games=20000"],
    "td_lambda, 2048": ["experiment=2048_td_lambda", "games=600"],
    "adp, 2048": ["experiment=dedieu_amar_adp_tuned", "games=200"],
    "alphazero, tictactoe": ["experiment=tictactoe_alphazero", "games=1500"],
    "alphazero, connect4": ["experiment=connect4_alphazero", "games=1024"],
    "alphazero, salvo": ["experiment=ramesh_case1_alphazero", "games=500"],
}
"""Each learner on its usual game, for as many games as take some seconds."""

SELF_PLAY = {name: LEARNERS[f"ppo, {name}"] for name in ("tictactoe", "connect4")}
LIKE_OURS = {
    "tictactoe": {"units": [128, 128], "n_epochs": 4, "n_steps": 512, "batch_size": 8192},
    "connect4": {"units": [256, 256], "n_epochs": 1, "n_steps": 1024, "batch_size": 8192},
}
"""MaskablePPO with the networks, passes and about the minibatches of these presets."""


def trained(words: list[str], seed: int) -> tuple[list[dict[str, float]], Path]:
    """The lines of metrics.jsonl of one training, whose directory is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        own = [*words, "solve_seconds=0", f"seed={seed}", f"out={folder}/run"]
        run = rlgames.train(own)
        return read_metrics(Path(run) / "metrics.jsonl"), run


def speed(words: list[str], seed: int = 0) -> float:
    """Moves that a training learns from in a second, the median over the lines of its log."""
    results, _ = trained(words, seed)
    return statistics.median(line["time/moves_per_s"] for line in results if "train/turns" in line)


def cpu_speed(words: list[str]) -> float:
    """Moves that a training learns from in a second of CPU time, start and end included."""
    start = time.process_time()
    results, _ = trained(_brief(words, "cpu"), 0)
    return results[-1]["time/moves"] / (time.process_time() - start)


def beside_sb3(rounds: int) -> str:
    """Moves per second of CPU time, as both sides have one thread."""
    body = []
    with Worker("bench_peer_sb3.py", PEERS) as worker:
        for game, words in SELF_PLAY.items():
            peer = partial(worker.speed, game=game, seconds=SECONDS, seed=0)
            sides: dict[str, Callable[[], float]] = {
                "rlgames": partial(cpu_speed, words),
                "its defaults": peer,
                "like ours": partial(peer, **LIKE_OURS[game]),
            }
            results = in_turn(sides, rounds)
            mine = results.pop("rlgames")
            for name, other in results.items():
                body.append([f"{game}, {name}", mine.text(), other.text(), ratio(mine, other)])
    return rows(["moves learned per second", "rlgames", "MaskablePPO", "ratio"], body)


def learners(rounds: int, device: str = "cpu") -> str:
    sides = {name: partial(speed, _brief(words, device)) for name, words in LEARNERS.items()}
    return table(["learner and game", "moves learned per second"], in_turn(sides, rounds))


def _brief(words: list[str], device: str) -> list[str]:
    """A training of which only the speed matters: hardly any evaluation, a line after each
    update."""
    games = next(int(word.removeprefix("games=")) for word in words if word.startswith("games="))
    brief = ["log_every=1", f"eval_every={games}", "eval_games=1"]
    return [*words, *brief, f"device={device}"]


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
    return subprocess.Popen(command, stdout=none, stderr=none)


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
