"""Games for two as an environment of PettingZoo, whose agents take turns.

`env(game="tictactoe")`, with the game's own keys, is wrapped as PettingZoo's classic games are: an
action that is not legal ends the game, and whoever took it gets -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv  # type: ignore[import-untyped]
from pettingzoo.utils import wrappers  # type: ignore[import-untyped]

from rlgames.core.errors import ConfigError
from rlgames.envs.gymnasium_env import Array, array, spaces_of
from rlgames.envs.seated import checked
from rlgames.factory.components import build_game
from rlgames.games.game import Game

Seen = dict[str, Array]


def env(render_mode: str | None = None, **keys: Any) -> Any:
    """The environment of a game, by its name and keys, in PettingZoo's wrappers.

    Raises ConfigError for bad keys and for a game that is played alone.
    """
    bare = TwoSeats(render_mode, **keys)
    ending = wrappers.TerminateIllegalWrapper(bare, illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(ending))


class TwoSeats(AECEnv[str, Seen, Any]):  # type: ignore[misc]
    """Agents player_0 and player_1 by seat; each is paid what its score grows by.

    An agent observes `observation`, float32 of Spec.observation, from its own side, and
    `action_mask`, int8 [A]; while the other is to move, what it saw before its last move, with
    nothing legal.
    """

    def __init__(self, render_mode: str | None = None, **keys: Any) -> None:
        super().__init__()
        for name in keys:
            if name.partition(".")[0] in ("reward", "opponent", "seat", "illegal"):
                raise ConfigError(f"{name}= has no meaning where both seats are agents")
        self.game: Game[Any] = build_game(checked(**keys))
        if self.game.spec.seats != 2:
            raise ConfigError(
                f"{self.game.spec.name} is played alone", "gymnasium.make makes an environment"
            )
        self.metadata = {
            "name": f"{self.game.spec.name}_v0",
            "render_modes": ["ansi"],
            "is_parallelizable": False,
        }
        self.render_mode = render_mode
        self.possible_agents = ["player_0", "player_1"]
        observation, action = spaces_of(self.game)
        mask = Box(0, 1, (self.game.spec.actions,), np.int8)
        self._observes = {
            agent: Dict({"observation": observation, "action_mask": mask})
            for agent in self.possible_agents
        }
        self._acts = {agent: Discrete(int(action.n)) for agent in self.possible_agents}
        self.rng = torch.Generator()
        self.rng.seed()

    def observation_space(self, agent: str) -> Dict:
        return self._observes[agent]

    def action_space(self, agent: str) -> Discrete:
        return self._acts[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a new game, the next one of its seed where none is given."""
        if seed is not None:
            self.rng.manual_seed(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.position = self.game.initial(1, self.rng)
        blank = np.zeros(self.game.spec.observation, dtype=np.float32)
        self._seen = dict.fromkeys(self.agents, blank)
        self._look()

    def observe(self, agent: str) -> Seen:
        legal = self.game.legal_action_mask(self.position)[0].to(torch.int8)
        to_move = agent == self.agent_selection and not self.terminations.get(agent, True)
        return {"observation": self._seen[agent].copy(), "action_mask": array(legal * to_move)}

    def step(self, action: Any) -> None:
        current_seat = self.agent_selection
        if self.terminations[current_seat] or self.truncations[current_seat]:
            self._was_dead_step(action)
            return
        before = self.position
        self.position = self.game.step(before, torch.tensor([int(action)]), self.rng)
        gained = (self.position.score - before.score)[0].tolist()
        self._cumulative_rewards[current_seat] = 0.0
        self.rewards = dict(zip(self.possible_agents, gained, strict=True))
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, bool(self.position.done[0]))
        self._look()

    def render(self) -> str:
        """The board as the agent to move sees it, as text."""
        return self.game.render(self.game.public(self.position), 0)

    def close(self) -> None:
        """There is nothing to close."""

    def _look(self) -> None:
        """Show the mover the board."""
        self.agent_selection = self.possible_agents[int(self.position.current_seat[0])]
        self._seen[self.agent_selection] = array(self.game.observe(self.position)[0])
