"""The compiled kernel that learns n-tuples of 2048, next to random access to memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from bench_tools import FOUR_TUPLES, in_turn, rows
from bench_train import speed

from rlgames.kernels.jit import jit

TD = [*FOUR_TUPLES, "learner.step_size=constant", "lr=0.1", "learner.lr_end=0.1"]
ONE, TWO = "learner.threads=1", "learner.threads=2"
BATCHES = ["batch=2048", "window=64"]
HALF = ["lr=0.5", "learner.lr_end=0.5"]
TD_LEARNERS = {
    "TD(0)": ([*TD, *BATCHES, ONE], 12_000),
    "TD(0), two threads": ([*TD, *BATCHES, TWO], 24_000),
    "temporal coherence": (
        [*TD, *BATCHES, ONE, "learner.step_size=temporal_coherence", *HALF],
        10_000,
    ),
    "temporal coherence, two threads": (
        [*TD, *BATCHES, TWO, "learner.step_size=temporal_coherence", *HALF],
        14_000,
    ),
    "TD(0.5)": ([*TD, *BATCHES, ONE, "learner.td_lambda=0.5"], 12_000),
}
"""By name the settings and the number of games."""

LOOKUPS = 3.0 * 32 + 2 * 32
"""Numbers read or written a move: three legal actions on average, four tuples in eight orientations
each, and as many read again and written by learning."""


def td_ntuple(rounds: int) -> str:
    """n-tuple learning, and how near it is to what the memory here allows."""
    sides: dict[str, Callable[[], float]] = {"random access": random_access}
    for name, (words, games) in TD_LEARNERS.items():
        own = [*words, f"games={games}", f"log_every={games // 8}", "eval_games=1"]
        sides[name] = partial(speed, [*own, f"eval_every={games}"])
    random_access()  # compiles
    results = in_turn(sides, rounds)
    limit = results.pop("random access")
    body = [
        [name, each.text(), f"{LOOKUPS * each.median / limit.median:.0%}"]
        for name, each in results.items()
    ]
    head = ["learner", "moves learned per second", "of random access"]
    return f"{rows(head, body)}\n\nRandom access, one thread: {limit.text()} numbers a second."


@jit()
def add_at(values: np.ndarray, number: int, seed: int) -> None:
    """Add to values at pseudo-random places."""
    mask, place = np.uint64(len(values) - 1), np.uint64(seed)
    for _ in range(number):
        place = place * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        values[(place >> np.uint64(33)) & mask] += np.float32(1)


def random_access(number: int = 30_000_000) -> float:
    """Numbers changed a second in a table about as large as that of four six-tuples."""
    values = np.zeros(1 << 25, np.float32)
    begun = time.perf_counter()
    add_at(values, number, 1)
    return number / (time.perf_counter() - begun)
