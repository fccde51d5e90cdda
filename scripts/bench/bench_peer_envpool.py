"""The board games of EnvPool, as Gymnasium steps with one thread: random legal moves by NumPy."""

from __future__ import annotations

import importlib
import time
from functools import cache
from typing import Any

import numpy as np
from bench_tools import serve

NAMES = {
    "tictactoe": "TicTacToe-v1",
    "connect4": "ConnectFour-v1",
    "othello": "Othello-v1",
    "2048": "Play2048-v1",
}

STEPS = 64
"""Between two looks at the clock."""


class Pool:
    """Games that go on; after its last move, a game takes a step to begin anew."""

    def __init__(self, game: str, batch: int) -> None:
        envpool: Any = importlib.import_module("envpool")
        self.env = envpool.make(NAMES[game], env_type="gymnasium", num_envs=batch, num_threads=1)
        self.rng, self.done = np.random.default_rng(0), np.zeros(batch, dtype=bool)
        self.info = self.env.reset()[1]

    def step(self) -> int:
        """One step of every game; the number of moves."""
        count = self.info["legal_action_mask"].cumsum(1)
        rank = self.rng.random(len(count)) * count[:, -1]
        action = (count > rank[:, None]).argmax(1).astype(np.int32)
        moves = int(np.count_nonzero(~self.done))
        _, _, terminated, truncated, self.info = self.env.step(action)
        self.done = terminated | truncated
        return moves


pool = cache(Pool)


def answer(game: str, batch: int, seconds: float) -> dict[str, float]:
    """Moves per second of CPU time."""
    games, moves, start = pool(game, batch), 0, time.process_time()
    while time.process_time() - start < seconds:
        moves += sum(games.step() for _ in range(STEPS))
    return {"speed": moves / (time.process_time() - start)}


if __name__ == "__main__":
    serve(answer)
