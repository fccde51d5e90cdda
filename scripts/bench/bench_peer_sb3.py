"""SB3-contrib's MaskablePPO on k in a row, as a plain Gymnasium environment.

It has no self-play: the other seat moves at random, in the environment.
"""

from __future__ import annotations

import importlib
import time
from functools import partial
from typing import Any

import numpy as np
from bench_tools import serve
from numpy.typing import NDArray

Array = NDArray[Any]

GAMES = {"tictactoe": (3, 3, 3, False), "connect4": (6, 7, 4, True)}
"""By name: rows, columns, stones in a line, and whether stones fall."""

ENVS = 16


class Lines:
    """k in a row against random play: an action is a cell or a column; a win pays 1, a loss -1."""

    def __init__(self, game: str, rng: np.random.Generator) -> None:
        self.rows, self.columns, self.line, self.falls = GAMES[game]
        self.actions = self.columns if self.falls else self.rows * self.columns
        self.size, self.rng = 2 * self.rows * self.columns, rng

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


def maskable_ppo(game: str, seconds: float, seed: int, **settings: Any) -> dict[str, Any]:
    """Moves per second of CPU time, from the start of a rollout to that of another one.

    settings: of MaskablePPO; units: of each hidden layer.
    """
    contrib: Any = importlib.import_module("sb3_contrib")
    if units := settings.pop("units", None):
        relu = importlib.import_module("torch").nn.ReLU
        settings["policy_kwargs"] = {"net_arch": units, "activation_fn": relu}
    vectors: Any = importlib.import_module("stable_baselines3.common.vec_env")
    gymnasium: Any = importlib.import_module("gymnasium")
    importlib.import_module("torch").set_num_threads(1)
    kind = type("Env", (Lines, gymnasium.Env), {})

    def env(rng: np.random.Generator) -> Any:
        one = kind(game, rng)
        one.observation_space = gymnasium.spaces.Box(0, 1, (one.size,), np.float32)
        one.action_space = gymnasium.spaces.Discrete(one.actions)
        return one

    rngs = np.random.default_rng(seed).spawn(ENVS)
    envs = vectors.DummyVecEnv([partial(env, rng) for rng in rngs])
    model = contrib.MaskablePPO("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    rollouts: list[tuple[int, float]] = []

    def goes_on(variables: dict[str, Any], _: Any) -> bool:
        if not variables["n_steps"]:
            rollouts.append((model.num_timesteps, time.process_time()))
        return len(rollouts) < 2 or time.process_time() - rollouts[0][1] < seconds

    model.learn(10**9, callback=goes_on)
    (first, began), (last, ended) = rollouts[0], rollouts[-1]
    return {"speed": (last - first) / (ended - began)}


if __name__ == "__main__":
    serve(maskable_ppo)
