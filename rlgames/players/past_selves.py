"""Past selves: copies of a policy, made while it trains, as opponents."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import checked_float, checked_int
from rlgames.games.game import State
from rlgames.players.player import Agent, Player
from rlgames.rng import Rng


class PastSelves(Player):
    """One of the copies, sampled for each batch, plays. The first copy is untrained."""

    changes_in_training = True

    def __init__(self, agent: Agent, every: int, keep: int) -> None:
        self._agent, self._every, self._keep = agent, every, keep
        self.wants = agent.wants
        self._copies: list[tuple[Agent, float]] = []  # and how far its training was
        self._next_copy_at = 0
        self.start_batch(0, 0.0, Rng())

    def state_dict(self) -> dict[str, Any]:
        copies = {
            str(index): {"policy": agent.policy.state_dict(), "progress": progress}
            for index, (agent, progress) in enumerate(self._copies)
        }
        return {"copies": copies, "due": self._next_copy_at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._copies, self._next_copy_at = [], checked_int(state["due"], 0)
        for index in range(checked_int(len(state["copies"]), 1, self._keep)):
            saved, restored = state["copies"][str(index)], self._copy_agent()
            load_weights(restored.policy, saved["policy"])
            self._copies.append((restored, checked_float(saved["progress"], 0, 1)))

    def _copy_agent(self) -> Agent:
        """A frozen copy of the agent."""
        agent = self._agent
        return Agent(agent.game, copy.deepcopy(agent.policy).eval(), agent.sampling)

    def start_batch(self, games_played: int, progress: float, rng: Rng) -> None:
        """Make a copy if one is due, and sample the copy that plays the next batch."""
        if games_played >= self._next_copy_at:
            self._next_copy_at = games_played + self._every
            self._copies = [*self._copies, (self._copy_agent(), progress)][-self._keep :]
        count = len(self._copies)
        self._current = self._copies[int(rng.integers(count, 1))]

    def choose(self, state: State, rng: Rng) -> Tensor:
        agent, progress = self._current
        return agent.choose(state, rng, progress)
