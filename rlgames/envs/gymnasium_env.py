"""Gymnasium environments, one game or many side by side; keys as in EnvConfig.

An observation is float32 of Spec.observation, as the agent's seat sees the game. An action is an
index of the game's actions; `info["action_mask"]`, int8, marks the legal ones, as does
`action_masks()`, bool. An illegal action changes nothing and its reward is `illegal`, -1 by
default; after 100 of them in a row the game is truncated. The reward is that of each move in the
config group `reward`, undiscounted; the default has the name of the game's goal.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from rlgames.envs.batched_env import BatchedEnv, make_config
from rlgames.games.game import Game

Array = np.ndarray[Any, Any]


def make_spaces(game: Game[Any]) -> tuple[Box, Discrete]:
    """The spaces of observations and actions."""
    low, high = game.spec.observation_range
    box = Box(low, high, game.spec.observation, np.float32)
    return box, Discrete(game.spec.actions)


def to_numpy(tensor: Tensor) -> Array:
    """A copy, which the caller may change."""
    return tensor.numpy().copy()


def draw_seed(random: np.random.Generator) -> int:
    return int(random.integers(2**63))


class GameEnv(gymnasium.Env[Any, Any]):
    """One game."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **keys: Any) -> None:
        self.games, self.render_mode = BatchedEnv(make_config(**keys), 1), render_mode
        self.observation_space, self.action_space = make_spaces(self.games.game)
        self.games.rng.manual_seed(draw_seed(self.np_random))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start a new game; without a seed the random stream continues."""
        super().reset(seed=seed)
        if seed is not None:
            self.games.rng.manual_seed(draw_seed(self.np_random))
        self.games.reset(torch.ones(1, dtype=torch.bool))
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward = float(self.games.step(torch.tensor([int(action)]))[0])
        terminated, truncated = bool(self.games.terminated[0]), bool(self.games.truncated[0])
        return self._observation(), reward, terminated, truncated, self._info()

    def action_masks(self) -> Array:
        """Bool [A], as sb3-contrib expects it."""
        return to_numpy(self.games.legal_action_mask()[0])

    def render(self) -> str:
        """The public board as text."""
        return self.games.game.render(self.games.game.public(self.games.state), 0)

    def _observation(self) -> Array:
        return to_numpy(self.games.observe()[0])

    def _info(self) -> dict[str, Any]:
        return {"action_mask": to_numpy(self.games.legal_action_mask()[0].to(torch.int8))}


class GameVectorEnv(VectorEnv[Any, Array, Array]):
    """Many games, played as one batch. The step after the end of a game starts a new one: its
    action for that game is ignored, and its reward is 0."""

    metadata = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **keys: Any) -> None:
        self.num_envs, self.render_mode = num_envs, render_mode
        self.games = BatchedEnv(make_config(**keys), num_envs)
        box, discrete = make_spaces(self.games.game)
        self.single_observation_space, self.single_action_space = box, discrete
        self.observation_space = batch_space(box, num_envs)
        self.action_space = batch_space(discrete, num_envs)
        self.has_ended = torch.ones(num_envs, dtype=torch.bool)
        self.games.rng.manual_seed(draw_seed(self.np_random))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.games.rng.manual_seed(draw_seed(self.np_random))
        self.has_ended = torch.zeros_like(self.has_ended)
        self.games.reset(~self.has_ended)
        return self._observation(), self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        is_new = self.has_ended
        reward = self.games.step(torch.as_tensor(actions, dtype=torch.int64)) * ~is_new
        self.games.reset(is_new)
        terminated, truncated = self.games.terminated, self.games.truncated
        self.has_ended = terminated | truncated
        result = to_numpy(reward), to_numpy(terminated), to_numpy(truncated)
        return self._observation(), *result, self._info()

    def action_masks(self) -> Array:
        """Bool [num_envs, A]."""
        return to_numpy(self.games.legal_action_mask())

    def render(self) -> tuple[str, ...]:
        public = self.games.game.public(self.games.state)
        return tuple(self.games.game.render(public, row) for row in range(self.num_envs))

    def _observation(self) -> Array:
        return to_numpy(self.games.observe())

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": to_numpy(self.games.legal_action_mask().to(torch.int8)),
            "_action_mask": np.ones(self.num_envs, dtype=np.bool_),  # which games have a mask
        }
