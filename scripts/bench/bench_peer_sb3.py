"""Stable-Baselines3's A2C on a case of the documents, as a plain gymnasium environment.

A2C knows no masks: a cell that was shot at may be shot at again, which costs a shot and tells
nothing. When its greedy play is looked at such cells are left out, which helps it.
"""

from __future__ import annotations

import importlib
import math
import time
from typing import Any

import numpy as np
from bench_case import CASES, Array, greedy_turns, layouts
from bench_tools import serve

SETTINGS = {"learning_rate": 0.003, "n_steps": 8, "gamma": 0.9, "ent_coef": 0.02}
ENVS = 16
LOOK_EVERY = 4000
"""Moves between two looks at how well it plays; their time does not count."""


class Case:
    """A game of a case as an environment: an action is a shot, and pays 1 if it hits, less 0.3."""

    def __init__(self, fleets: Array, rng: np.random.Generator) -> None:
        spaces: Any = importlib.import_module("gymnasium.spaces")
        cells = fleets.shape[1]
        self.observation_space = spaces.Box(-1, 1, (cells,), np.float32)
        self.action_space = spaces.Discrete(cells)
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


def answer(case: int, seconds: float, until: float, units: int, seed: int) -> dict[str, Any]:
    """Learn for `seconds`, or until all layouts take at most `until` turns on average."""
    torch: Any = importlib.import_module("torch")
    sb3: Any = importlib.import_module("stable_baselines3")
    callbacks: Any = importlib.import_module("stable_baselines3.common.callbacks")
    vectors: Any = importlib.import_module("stable_baselines3.common.vec_env")
    gymnasium: Any = importlib.import_module("gymnasium")
    torch.set_num_threads(1)
    fleets = layouts(*CASES[case])
    made = type("Env", (Case, gymnasium.Env), {})
    rngs = np.random.default_rng(seed).spawn(ENVS)
    envs = vectors.DummyVecEnv([lambda rng=rng: made(fleets, rng) for rng in rngs])
    arch = {"net_arch": [units, units]}
    model = sb3.A2C("MlpPolicy", envs, policy_kwargs=arch, seed=seed, device="cpu", **SETTINGS)

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

    model.learn(10**9, callback=callbacks.ConvertCallback(goes_on))
    return {
        "speed": model.num_timesteps / spent(),
        "seconds": spent(),
        "turns": turns,
        "reached": turns <= until,
    }


if __name__ == "__main__":
    serve(answer)
