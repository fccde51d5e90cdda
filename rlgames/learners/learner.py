"""The contract of every learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rlgames.policies.policy import Network
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import NonFiniteError as NonFiniteError


class Learner(ABC):
    """Learns and does not play."""

    policy_class: type[Any] = Network
    """The policies that it can teach: this class and those made from it."""

    trains_value_head = False
    """Whether it teaches the policy's value head, always."""

    trains_afterstates = False
    """Whether networks that it teaches value what moves lead to, rather than score the moves."""

    learns_logits = False
    """Whether the policy's scores are logits that it learns, rather than values."""

    learns_from_rewards = True
    """Whether it matters to it what is paid."""

    learns_from_records = False
    """Whether it learns from recorded games as from those just played."""

    bootstraps = False
    """Whether it learns from windows of games, going on from the value of where one ends."""

    supports_distributed = False
    """Whether several processes can teach one policy: each of its steps is made by all of them."""

    @abstractmethod
    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        """Learn from moves once, and from how their games ended.

        progress, 0 to 1, is how much of the run has been played.

        Returns metrics by name. Raises BadNumber, leaving the weights as they were.
        """

    def state_dict(self) -> dict[str, Any]:
        """What the next updates depend on, beside the policy's weights and the generator: a tree of
        tensors and plain numbers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or RuntimeError for what does not fit."""
        if state:
            raise ValueError("this learner keeps nothing between two updates")
