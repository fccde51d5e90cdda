"""Two-player games as PettingZoo environments, where the agents take turns.

`env(game="tictactoe")`, with the game's own keys, has the wrappers of PettingZoo's classic games:
an illegal action ends the game, and the reward of the agent that chose it is -1.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers
from torch import Tensor

from rlgames.config.registry import make
from rlgames.core.errors import ConfigError
from rlgames.envs.batched_env import make_config
from rlgames.envs.gymnasium_env import (
    RENDER_MODES,
    check_render_mode,
    draw_board,
    make_spaces,
    read_actions,
    to_numpy,
)
from rlgames.games.game import Game
from rlgames.rng import Rng
from rlgames.rollouts.play import START

Observation = dict[str, Any]


def env(render_mode: str | None = None, **keys: Any) -> Any:
    """The environment of a game, by its name and keys, in PettingZoo's wrappers.

    Raises ConfigError for invalid keys and for one-player games.
    """
    terminating = wrappers.TerminateIllegalWrapper(
        TwoPlayerEnv(render_mode, **keys), illegal_reward=-1
    )
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(terminating))


class TwoPlayerEnv(AECEnv[str, Observation, Any]):
    """The agents player_0 and player_1 by seat; the reward is the growth of an agent's score.

    An agent observes `observation`, float32 of Spec.observation, the current position from its own
    side, and `action_mask`, int8 [A], without legal actions while the other agent is to move.
    """

    def __init__(self, render_mode: str | None = None, **keys: Any) -> None:
        super().__init__()
        check_render_mode(render_mode)
        for name in keys:
            if name.partition(".")[0] in ("reward", "opponent", "seat", "illegal"):
                raise ConfigError(f"{name}= has no meaning if both seats are agents")
        rules = make_config(**keys).game
        assert rules is not None
        self.game: Game[Any] = make("game", rules)
        if self.game.spec.seats != 2:
            raise ConfigError(f"{self.game.spec.name} is a one-player game", "use gymnasium.make")
        self.metadata = {
            "name": f"{self.game.spec.name}_v0",
            "render_modes": [*RENDER_MODES],
            "is_parallelizable": False,
        }
        self.render_mode = render_mode
        self.possible_agents = ["player_0", "player_1"]
        observation, action = make_spaces(self.game)
        mask = Box(0, 1, (self.game.spec.actions,), np.int8)
        self._observation_spaces = {
            agent: Dict({"observation": observation, "action_mask": mask})
            for agent in self.possible_agents
        }
        self._action_spaces = {agent: Discrete(int(action.n)) for agent in self.possible_agents}
        self.rng, self.episode = Rng(secrets.randbits(63)).rows(1), 0

    def observation_space(self, agent: str) -> Dict:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game; without a seed the random numbers go on."""
        if seed is not None:
            self.rng, self.episode = Rng(seed).rows(1), 0
        self.episode += 1
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.position = self.game.initial(1, self._places(START))
        self._select_mover()

    def _places(self, ply: int | Tensor) -> Rng:
        """The random numbers of a ply, by its number, in the present game."""
        return self.rng.fold_in(self.episode).fold_in(ply)

    def observe(self, agent: str) -> Observation:
        legal = self.game.legal_action_mask(self.position)[0].to(torch.int8)
        is_mover = agent == self.agent_selection and not self.terminations.get(agent, True)
        view = self.game.view_from_seat(self.position, self.possible_agents.index(agent))
        return {
            "observation": to_numpy(self.game.observe(view)[0]),
            "action_mask": to_numpy(legal * is_mover),
        }

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        before = self.position
        chosen = read_actions(action, (), self.game)[None]
        self.position = self.game.step(before, chosen, self._places(self.game.ply(before)))
        rewards = (self.position.score - before.score)[0].tolist()
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.possible_agents, rewards, strict=True))
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, bool(self.position.done[0]))
        self._select_mover()

    def render(self) -> Any:
        """The board as the agent to move sees it, drawn as by GameEnv."""
        return draw_board(self.game, self.position, 0, self.render_mode)

    def _select_mover(self) -> None:
        self.agent_selection = self.possible_agents[int(self.position.current_seat[0])]
