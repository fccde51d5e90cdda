"""Earlier selves: copies of a policy taken while it learns, to play against."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import checked_float, checked_int
from rlgames.games.game import State
from rlgames.players.player import Agent, Player


class PastSelves(Player):
    """Each batch is played by one of the copies, drawn at random.

    every: games between two copies. keep: how many are kept, the latest; the first is untrained.
    """

    def __init__(self, agent: Agent, every: int, keep: int) -> None:
        self._agent, self._every, self._keep = agent, every, keep
        self._copies: list[Agent] = []
        self._due = 0
        self._now = agent
        self.start_batch(0, torch.Generator())

    def state_dict(self) -> dict[str, Any]:
        copies = {
            str(place): {"policy": each.policy.state_dict(), "progress": each.progress}
            for place, each in enumerate(self._copies)
        }
        return {"copies": copies, "due": self._due}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._copies, self._due = [], checked_int(state["due"], 0)
        for place in range(checked_int(len(state["copies"]), 1, self._keep)):
            found, frozen = state["copies"][str(place)], self._frozen()
            load_weights(frozen.policy, found["policy"])
            frozen.progress = checked_float(found["progress"], 0, 1)
            self._copies.append(frozen)

    def _frozen(self) -> Agent:
        """The agent as it is now."""
        own = self._agent
        frozen = Agent(own.game, copy.deepcopy(own.policy).eval(), own.sampling)
        frozen.progress = own.progress
        return frozen

    def start_batch(self, played: int, rng: torch.Generator) -> None:
        """Take a copy if one is due after so many games, and draw who plays the next batch."""
        if played >= self._due:
            self._due = played + self._every
            self._copies = [*self._copies, self._frozen()][-self._keep :]
        count = len(self._copies)
        self._now = self._copies[int(torch.randint(count, (), generator=rng, device=rng.device))]

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return self._now.choose(state, rng)
