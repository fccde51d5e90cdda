"""Gymnasium's environments, one game or many side by side; keys as in EnvConfig.

An observation is the game's, from the side that the agent sits on, float32 of Spec.observation. An
action is a number of the game's; `info["action_mask"]`, int8, says which are legal, as does
`action_masks()`, bool. One that is not legal changes nothing and is paid `illegal`, by default -1;
after 100 of them in a row the game is truncated. The reward is that of each move in the config
group `reward`, undiscounted, and named like what the game is about where none is named.
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

from rlgames.envs.seated import Seated, checked
from rlgames.games.game import Game

Array = np.ndarray[Any, Any]


def spaces_of(game: Game[Any]) -> tuple[Box, Discrete]:
    """What is observed, and what can be done."""
    low, high = game.spec.observation_range
    box = Box(low, high, game.spec.observation, np.float32)
    return box, Discrete(game.spec.actions)


def array(tensor: Tensor) -> Array:
    """A copy: whoever gets it may change it."""
    return tensor.numpy().copy()


def seed_of(random: np.random.Generator) -> int:
    return int(random.integers(2**63))


class GameEnv(gymnasium.Env[Any, Any]):
    """One game."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **keys: Any) -> None:
        self.seated, self.render_mode = Seated(checked(**keys), 1), render_mode
        self.observation_space, self.action_space = spaces_of(self.seated.game)
        self.seated.rng.manual_seed(seed_of(self.np_random))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin a new game, the next one of its seed where none is given."""
        super().reset(seed=seed)
        if seed is not None:
            self.seated.rng.manual_seed(seed_of(self.np_random))
        self.seated.begin(torch.ones(1, dtype=torch.bool))
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward = float(self.seated.apply_action(torch.tensor([int(action)]))[0])
        terminated, truncated = bool(self.seated.done[0]), bool(self.seated.given_up[0])
        return self._observation(), reward, terminated, truncated, self._info()

    def action_masks(self) -> Array:
        """Bool [A], as sb3-contrib wants it."""
        return array(self.seated.legal_action_mask()[0])

    def render(self) -> str:
        """The board as text, hidden things left out."""
        return self.seated.game.render(self.seated.game.public(self.seated.state), 0)

    def _observation(self) -> Array:
        return array(self.seated.observe()[0])

    def _info(self) -> dict[str, Any]:
        return {"action_mask": array(self.seated.legal_action_mask()[0].to(torch.int8))}


class GameVectorEnv(VectorEnv[Any, Array, Array]):
    """Many games, played as one batch. A game that is over begins anew with the next step, which
    pays nothing and whose action for it is not looked at."""

    metadata = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **keys: Any) -> None:
        self.num_envs, self.render_mode = num_envs, render_mode
        self.seated = Seated(checked(**keys), num_envs)
        box, discrete = spaces_of(self.seated.game)
        self.single_observation_space, self.single_action_space = box, discrete
        self.observation_space = batch_space(box, num_envs)
        self.action_space = batch_space(discrete, num_envs)
        self.over = torch.ones(num_envs, dtype=torch.bool)
        self.seated.rng.manual_seed(seed_of(self.np_random))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.seated.rng.manual_seed(seed_of(self.np_random))
        self.over = torch.zeros_like(self.over)
        self.seated.begin(~self.over)
        return self._observation(), self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        begun = self.over
        reward = self.seated.apply_action(torch.as_tensor(actions, dtype=torch.int64)) * ~begun
        self.seated.begin(begun)
        terminated, truncated = self.seated.done, self.seated.given_up
        self.over = terminated | truncated
        told = array(reward), array(terminated), array(truncated)
        return self._observation(), *told, self._info()

    def action_masks(self) -> Array:
        """Bool [num_envs, A]."""
        return array(self.seated.legal_action_mask())

    def render(self) -> tuple[str, ...]:
        public = self.seated.game.public(self.seated.state)
        return tuple(self.seated.game.render(public, row) for row in range(self.num_envs))

    def _observation(self) -> Array:
        return array(self.seated.observe())

    def _info(self) -> dict[str, Any]:
        told = np.ones(self.num_envs, dtype=np.bool_)
        return {
            "action_mask": array(self.seated.legal_action_mask().to(torch.int8)),
            "_action_mask": told,
        }
