"""Stable-Baselines3's A2C on a case of the documents, and SB3-contrib's MaskablePPO on k in a row,
as plain gymnasium environments.

A2C knows no masks: a cell that was shot at may be shot at again, which costs a shot and tells
nothing. When its greedy play is looked at such cells are left out, which helps it. MaskablePPO has
no self-play: the other seat moves at random, in the environment.
"""

from __future__ import annotations

import importlib
import math
import time
from functools import partial
from typing import Any

import numpy as np
from bench_case import CASES, Array, greedy_turns, layouts
from bench_tools import serve

SETTINGS = {"learning_rate": 0.003, "n_steps": 8, "gamma": 0.9, "ent_coef": 0.02}
"""Of A2C."""

GAMES = {"tictactoe": (3, 3, 3, False), "connect4": (6, 7, 4, True)}
"""By name: rows, columns, stones in a line, and whether stones fall."""

ENVS = 16
LOOK_EVERY = 4000
"""Moves between two looks at how well it plays; their time does not count."""


class Case:
    """A game of a case as an environment: an action is a shot, and pays 1 if it hits, less 0.3."""

    def __init__(self, fleets: Array, rng: np.random.Generator) -> None:
        self.size, self.actions, self.low = fleets.shape[1], fleets.shape[1], -1
        self.fleets, self.rng, self.ships = fleets, rng, int(fleets[0].sum())

    def reset(self, **_: Any) -> tuple[Array, dict[str, Any]]:
        self.fleet = self.fleets[self.rng.integers(len(self.fleets))]
        self.board = np.full(len(self.fleet), -1, np.float32)
        self.left, self.shots = self.ships, 0
        return self.board.copy(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        hit = self.board[action] < 0 and bool(self.fleet[action])
        self.board[action] = self.fleet[action]
        self.left -= hit
        self.shots += 1
        over = self.left == 0
        return self.board.copy(), hit - 0.3, over, self.shots >= 4 * len(self.board), {}


class Lines:
    """k in a row against random play: an action is a cell or a column; a win pays 1, a loss -1."""

    def __init__(self, game: str, rng: np.random.Generator) -> None:
        self.rows, self.columns, self.line, self.falls = GAMES[game]
        self.actions = self.columns if self.falls else self.rows * self.columns
        self.size, self.low, self.rng = 2 * self.rows * self.columns, 0, rng

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


def build(algorithm: Any, kind: type, what: Any, seed: int, **settings: Any) -> Any:
    """A model that learns in ENVS environments of a kind, such as Case(what, rng)."""
    vectors: Any = importlib.import_module("stable_baselines3.common.vec_env")
    gymnasium: Any = importlib.import_module("gymnasium")
    importlib.import_module("torch").set_num_threads(1)

    made = type("Env", (kind, gymnasium.Env), {})

    def env(rng: np.random.Generator) -> Any:
        one = made(what, rng)
        one.observation_space = gymnasium.spaces.Box(one.low, 1, (one.size,), np.float32)
        one.action_space = gymnasium.spaces.Discrete(one.actions)
        return one

    rngs = np.random.default_rng(seed).spawn(ENVS)
    envs = vectors.DummyVecEnv([partial(env, rng) for rng in rngs])
    return algorithm("MlpPolicy", envs, seed=seed, device="cpu", **settings)


def a2c(case: int, seconds: float, until: float, units: int, seed: int) -> dict[str, Any]:
    """Learn for `seconds`, or until all layouts take at most `until` turns on average."""
    torch: Any = importlib.import_module("torch")
    sb3: Any = importlib.import_module("stable_baselines3")
    fleets = layouts(*CASES[case])
    arch = {"net_arch": [units, units]}
    model = build(sb3.A2C, Case, fleets, seed, policy_kwargs=arch, **SETTINGS)

    def scores(boards: Array) -> Array:
        with torch.no_grad():
            results = model.policy.get_distribution(torch.from_numpy(boards))
        logits: Array = results.distribution.logits.numpy()
        return logits

    turns, looked, paused = math.inf, 0, 0.0
    start = time.perf_counter()

    def spent() -> float:
        return time.perf_counter() - start - paused

    def goes_on(*_: Any) -> bool:
        nonlocal turns, looked, paused
        if until and model.num_timesteps - looked >= LOOK_EVERY:
            begun, looked = time.perf_counter(), model.num_timesteps
            turns = greedy_turns(fleets, scores)
            paused += time.perf_counter() - begun
        return turns > until and spent() < seconds

    model.learn(10**9, callback=goes_on)
    return {
        "speed": model.num_timesteps / spent(),
        "seconds": spent(),
        "turns": turns,
        "reached": turns <= until,
    }


def maskable_ppo(game: str, seconds: float, seed: int, **settings: Any) -> dict[str, Any]:
    """Moves per second of processor time, from the start of a rollout to that of another one.

    settings: of MaskablePPO; units: of each hidden layer.
    """
    contrib: Any = importlib.import_module("sb3_contrib")
    if units := settings.pop("units", None):
        relu = importlib.import_module("torch").nn.ReLU
        settings["policy_kwargs"] = {"net_arch": units, "activation_fn": relu}
    model = build(contrib.MaskablePPO, Lines, game, seed, **settings)
    rollouts: list[tuple[int, float]] = []

    def goes_on(variables: dict[str, Any], _: Any) -> bool:
        if not variables["n_steps"]:
            rollouts.append((model.num_timesteps, time.process_time()))
        return len(rollouts) < 2 or time.process_time() - rollouts[0][1] < seconds

    model.learn(10**9, callback=goes_on)
    (first, began), (last, ended) = rollouts[0], rollouts[-1]
    return {"speed": (last - first) / (ended - began)}


if __name__ == "__main__":
    serve(lambda **words: (a2c if "case" in words else maskable_ppo)(**words))
