"""SB3-contrib's MaskablePPO on tic-tac-toe and Connect 4, as a plain gymnasium environment.

It has no self-play: the other seat moves at random, in the environment.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
from bench_case import Array
from bench_tools import serve

GAMES = {"tictactoe": (3, 3, 3, False), "connect4": (6, 7, 4, True)}
"""By name: rows, columns, stones in a line, and whether stones fall."""

ENVS = 16


class Lines:
    """k in a row against random play: an action is a cell or a column; a win pays 1, a loss -1."""

    def __init__(self, game: str, rng: np.random.Generator) -> None:
        spaces: Any = importlib.import_module("gymnasium.spaces")
        self.rows, self.columns, self.line, self.falls = GAMES[game]
        self.actions = self.columns if self.falls else self.rows * self.columns
        self.observation_space = spaces.Box(0, 1, (2 * self.rows * self.columns,), np.float32)
        self.action_space = spaces.Discrete(self.actions)
        self.rng = rng

    def reset(self, **_: Any) -> tuple[Array, dict[str, Any]]:
        self.board = np.zeros((2, self.rows, self.columns), np.float32)
        if self.rng.random() < 0.5:
            self._move(1, int(self.rng.integers(self.actions)))
        return self.board.ravel().copy(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward, over = self._move(0, int(action)), False
        if not reward and self.action_masks().any():
            reward = -self._move(1, int(self.rng.choice(self.action_masks().nonzero()[0])))
        over = bool(reward) or not self.action_masks().any()
        return self.board.ravel().copy(), reward, over, False, {}

    def action_masks(self) -> Array:
        is_empty = self.board.max(0) == 0
        mask: Array = is_empty[0] if self.falls else is_empty.ravel()
        return mask

    def _move(self, seat: int, action: int) -> float:
        """Set a stone; 1 if it completes a line, else 0."""
        row, column = divmod(action, self.columns)
        if self.falls:
            row = int((self.board[:, :, action].max(0) == 0).nonzero()[0][-1])
        own = self.board[seat]
        own[row, column] = 1
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            length = 1
            for way in (1, -1):
                y, x = row + way * down, column + way * right
                while 0 <= y < self.rows and 0 <= x < self.columns and own[y, x]:
                    length, y, x = length + 1, y + way * down, x + way * right
            if length >= self.line:
                return 1.0
        return 0.0


def answer(game: str, seconds: float, seed: int, **settings: Any) -> dict[str, Any]:
    """Moves per second of processor time, while it learns for `seconds` of it.

    settings: of MaskablePPO; units: of each hidden layer.
    """
    torch: Any = importlib.import_module("torch")
    contrib: Any = importlib.import_module("sb3_contrib")
    callbacks: Any = importlib.import_module("stable_baselines3.common.callbacks")
    vectors: Any = importlib.import_module("stable_baselines3.common.vec_env")
    gymnasium: Any = importlib.import_module("gymnasium")
    torch.set_num_threads(1)
    made = type("Env", (Lines, gymnasium.Env), {})
    rngs = np.random.default_rng(seed).spawn(ENVS)
    envs = vectors.DummyVecEnv([lambda rng=rng: made(game, rng) for rng in rngs])
    units = settings.pop("units", None)
    if units:
        settings["policy_kwargs"] = {"net_arch": units, "activation_fn": torch.nn.ReLU}
    model = contrib.MaskablePPO("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    rollouts: list[tuple[int, float]] = []

    class Clock(callbacks.BaseCallback):  # type: ignore[misc]
        """Notes when a rollout starts: moves and processor time so far."""

        def _on_rollout_start(self) -> None:
            rollouts.append((model.num_timesteps, time.process_time()))

        def _on_step(self) -> bool:
            return len(rollouts) < 2 or time.process_time() - rollouts[0][1] < seconds

    model.learn(10**9, callback=Clock())
    (first, began), (last, ended) = rollouts[0], rollouts[-1]
    return {"speed": (last - first) / (ended - began)}


if __name__ == "__main__":
    serve(answer)
