"""Gymnasium environments, one game or many side by side; keys as in EnvConfig.

An observation is float32 of Spec.observation, as the agent's seat sees the game. An action is an
index of the game's actions; `info["action_mask"]`, int8, marks the legal ones, as does
`action_masks()`, bool. An illegal action changes nothing and its reward is `illegal`, -1 by
default; after 100 of them in a row the game is truncated. The reward is paid for each move in the
config group `reward`, undiscounted; the default has the name of the game's goal. If the opponent
wins before the agent's first move, the first step pays it and terminates, whatever its action.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.error import InvalidAction
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.drawing.images import draw_scene
from rlgames.drawing.pictures import position_scene
from rlgames.envs.batched_env import BatchedEnv, make_config
from rlgames.games.game import Game, State
from rlgames.games.notation import render
from rlgames.rng import Rng

Array = np.ndarray[Any, Any]

ONLY = torch.zeros(1, dtype=torch.int64)
"""The row of a single game."""

RENDER_MODES = ("ansi", "rgb_array")
"""Boards as text, and as pictures, uint8 [height, width, 3]."""


def make_spaces(game: Game[Any]) -> tuple[Box, Discrete]:
    """The spaces of observations and actions."""
    low, high = game.spec.observation_range
    box = Box(low, high, game.spec.observation, np.float32)
    return box, Discrete(game.spec.actions)


def to_numpy(tensor: Tensor) -> Array:
    """A copy, which the caller may change."""
    return tensor.numpy().copy()


def read_actions(actions: Any, shape: tuple[int, ...], game: Game[Any]) -> Tensor:
    """Actions of a game, int64 of this shape. Raises InvalidAction for anything else."""
    try:
        array = np.asarray(actions)
    except ValueError:  # lists of different lengths
        array = np.empty(0)
    num_actions = game.spec.actions
    is_integer = array.dtype.kind in "iu" and array.shape == shape
    if is_integer and ((array >= 0) & (array < num_actions)).all():
        return torch.from_numpy(array.astype(np.int64))
    given = textwrap.shorten(repr(actions), 80)
    count = f"{shape[0]} integers" if shape else "an integer"
    raise InvalidAction(f"action {given} is not {count} from 0 to {num_actions - 1}")


def check_render_mode(render_mode: str | None) -> None:
    """Raise ConfigError for a render mode that there is not."""
    if render_mode not in (None, *RENDER_MODES):
        raise ConfigError(f"render_mode={render_mode} is not {' or '.join(RENDER_MODES)}")


def draw_board(game: Game[Any], state: State, row: int, render_mode: str | None) -> Any:
    """The public board: text or, for rgb_array, a picture."""
    public = game.public(state)
    if render_mode != "rgb_array":
        return render(game, public, row)
    return np.array(draw_scene(position_scene(game, public, row, title="")))


def draw_rng(random: np.random.Generator, num_games: int) -> Rng:
    """Random numbers for so many games."""
    return Rng(int(random.integers(2**63))).rows(num_games)


def read_reset_mask(options: dict[str, Any] | None, num_envs: int) -> Array:
    """Bool [num_envs], as the vector environments of Gymnasium read options["reset_mask"]: all
    without it. Raises TypeError or ValueError for anything else."""
    mask = (options or {}).get("reset_mask", np.ones(num_envs, dtype=np.bool_))
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"reset_mask={mask!r} is not a NumPy array of bool")
    if mask.shape != (num_envs,) or not mask.any():
        raise ValueError(f"reset_mask={mask} needs {num_envs} values, one of them True at least")
    return mask


class GameEnv(gymnasium.Env[Any, Any]):
    """One game."""

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 1}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **keys: Any) -> None:
        check_render_mode(render_mode)
        self.games, self.render_mode = BatchedEnv(make_config(**keys), 1), render_mode
        self.observation_space, self.action_space = make_spaces(self.games.game)
        self.games.seed(ONLY, draw_rng(self.np_random, 1))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start a new game; without a seed the random numbers go on."""
        super().reset(seed=seed)
        if seed is not None:
            self.games.seed(ONLY, draw_rng(self.np_random, 1))
        self.games.reset(torch.ones(1, dtype=torch.bool))
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward = float(self.games.step(read_actions(action, (), self.games.game)[None])[0])
        terminated, truncated = bool(self.games.terminated[0]), bool(self.games.truncated[0])
        return self._observation(), reward, terminated, truncated, self._info()

    def action_masks(self) -> Array:
        """Bool [A], as sb3-contrib expects it."""
        return to_numpy(self.games.legal_action_mask()[0])

    def render(self) -> Any:
        """The public board: text or, with render_mode="rgb_array", uint8 [height, width, 3]."""
        return draw_board(self.games.game, self.games.state, 0, self.render_mode)

    def _observation(self) -> Array:
        return to_numpy(self.games.observe()[0])

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8)}


class GameVectorEnv(VectorEnv[Any, Array, Array]):
    """Many games, played as one batch. The step after the end of a game starts a new one: its
    action for that game is ignored, and its reward is 0."""

    metadata = GameEnv.metadata | {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **keys: Any) -> None:
        if type(num_envs) is not int or num_envs < 1:
            raise ConfigError(f"num_envs={num_envs} is not a whole number from 1")
        check_render_mode(render_mode)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.games = BatchedEnv(make_config(**keys), num_envs)
        box, discrete = make_spaces(self.games.game)
        self.single_observation_space, self.single_action_space = box, discrete
        self.observation_space = batch_space(box, num_envs)
        self.action_space = batch_space(discrete, num_envs)
        self._seed_all()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """Start new games, in all rows or in the rows of options["reset_mask"].

        seed: a number for all games, or a list: game i then is the one that
            GameEnv.reset(seed=seed[i]) starts; None: the random numbers go on.
        """
        mask = read_reset_mask(options, self.num_envs)
        if seed is None or isinstance(seed, (int, np.integer)):
            super().reset(seed=seed)
            if seed is not None:
                self._seed_all()
        else:
            self._seed_each(seed, mask)
        self.games.reset(torch.from_numpy(mask))
        return self._observation(), self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        is_new = self.games.needs_reset
        reward = self.games.step(read_actions(actions, (self.num_envs,), self.games.game))
        self.games.reset(is_new)
        terminated = self.games.terminated & ~is_new  # what ended at the start ends with a step
        result = to_numpy(reward), to_numpy(terminated), to_numpy(self.games.truncated)
        return self._observation(), *result, self._info()

    def action_masks(self) -> Array:
        """Bool [num_envs, A]."""
        return to_numpy(self.games.legal_action_mask())

    def render(self) -> tuple[Any, ...]:
        """The board of each game, as GameEnv draws it."""
        look = self.games.game, self.games.state
        return tuple(draw_board(*look, row, self.render_mode) for row in range(self.num_envs))

    def _seed_all(self) -> None:
        rows = torch.arange(self.num_envs)
        self.games.seed(rows, draw_rng(self.np_random, self.num_envs))

    def _seed_each(self, seeds: Sequence[int | None], mask: Array) -> None:
        """Seed each game in the mask; None: its random numbers go on."""
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed={seeds} needs {self.num_envs} seeds, one for each game")
        for row, (seed, is_new) in enumerate(zip(seeds, mask, strict=True)):
            if is_new and seed is not None:
                rng = draw_rng(seeding.np_random(seed)[0], 1)
                self.games.seed(torch.tensor([row]), rng)

    def _observation(self) -> Array:
        return to_numpy(self.games.observe())

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "_action_mask": np.ones(self.num_envs, dtype=np.bool_),  # which games have a mask
        }
