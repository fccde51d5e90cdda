"""Games that compiled kernels play and learn from, on packed boards and in threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from rlgames.games.compiled import copied_fields
from rlgames.games.game import State
from rlgames.games.game_2048 import Compiled2048, Game2048State
from rlgames.policies.packed_ntuple import Array
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates

R = TypeVar("R")


def thread_seeds(pool: GamePool, threads: int) -> Array:
    """Uint64 [threads]: seeds from the generator of a pool."""
    seeds = torch.randint(1 << 62, (threads,), generator=pool.rng)
    return seeds.numpy().astype(np.uint64)


def learn_in_threads(learn: Callable[..., R], columns: tuple[Array, ...], seeds: Array) -> list[R]:
    """Call learn once for each seed, in a thread of its own, with a part of the rows of each column
    and the seed; what each call returns."""
    if len(seeds) == 1:
        return [learn(*columns, seeds[0])]
    parts = [np.array_split(column, len(seeds)) for column in columns]
    with ThreadPoolExecutor(len(seeds)) as pool:
        return list(pool.map(learn, *parts, seeds))


def learn_packed_games(
    learn: Callable[..., R],
    num_moves_of: Callable[[R], int],
    pool: GamePool,
    plies: int | None,
    compiled: Compiled2048,
    threads: int,
) -> tuple[FinalStates, list[R]]:
    """Have a kernel play and learn from up to `plies` moves of each game of a pool of 2048.

    learn: as learn_in_threads calls it, with boards uint64 [B], score float32 [B], turn int64 [B]
    and done bool [B], which it changes. Returns how the games ended, and the results of learn.
    """
    seeds = thread_seeds(pool, threads)
    results: list[R] = []

    def play(state: State) -> tuple[State, int]:
        assert isinstance(state, Game2048State)
        words, fields = compiled.pack(state), copied_fields(state)
        score, turn, done = (fields[name].numpy() for name in ("score", "turn", "done"))
        columns = words.numpy().view(np.uint64)[:, 0], score[:, 0], turn, done
        results.extend(learn_in_threads(learn, columns, seeds))
        last_state = compiled.unpack(words, fields)
        return last_state, sum(num_moves_of(result) for result in results)

    return pool.play_window(play, plies), results
