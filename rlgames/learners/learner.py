"""The contract of every learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from rlgames.core.errors import NonFiniteError
from rlgames.games.game import Game
from rlgames.policies.policy import Network
from rlgames.rewards import Reward
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Sampling

Source = Literal["rewards", "records", "windows", "search", "teacher", "earlier_weights"]
Trained = Literal["logits", "value_head", "afterstates"]
Need = Literal["scaled_temperature", "score_deltas", "log_prob", "float64"]


MAX_COMPARED = 1 << 14
"""Values of a table that are compared with the initial one."""


@dataclass(frozen=True)
class LearnerContext:
    """What every learner is built from. rng: the generator of its random numbers."""

    game: Game[Any]
    policy: Any
    sampling: Sampling
    reward: Reward
    rng: torch.Generator


class Learner(ABC):
    """Updates a policy from trajectories. Subclasses declare what fits them, which
    training/checks.py checks."""

    policy_class: type[Any] = Network
    """The policies that it can train: this class and its subclasses."""

    learns_from: frozenset[Source] = frozenset({"rewards"})
    """records: recorded games as well as games just played. windows: unfinished games, by the value
    of the state where a window ends. search: a search around the agent, and nothing else. teacher:
    the player that teacher= names. earlier_weights: games that were played some updates ago."""

    trains: frozenset[Trained] = frozenset()
    """logits: the policy's scores are logits rather than values. value_head: always, not only if a
    baseline needs it. afterstates: networks value afterstates rather than score actions."""

    needs: frozenset[Need] = frozenset()
    """scaled_temperature: scores are values that make no sense in a softmax at temperature 1.
    score_deltas: the policy compares moves by the change in score and the value that follows, and
    any other reward that is paid per move would be missing then. log_prob: Trajectories.log_prob,
    and state_value if sampling.is_softmax. float64: on the policy's device, which some devices do
    not have."""

    learns_while_playing = False
    """Whether it plays the games of a batch itself, by play_and_learn instead of update."""

    num_gradient_steps = 0
    """In this process."""

    def __init__(self, context: LearnerContext) -> None:
        self.game, self.policy, self.sampling = context.game, context.policy, context.sampling
        self.reward, self.rng = context.reward, context.rng

    @property
    def evaluated_policy(self) -> Any:
        """The policy of evaluations and checkpoints; by default the one that plays and learns."""
        return self.policy

    @abstractmethod
    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        """Learn from one batch of games and return metrics by name.

        progress: the fraction of the run's games that have been played, 0 to 1.
        Raises NonFiniteError before a non-finite number reaches the weights.
        """

    def play_and_learn(
        self, pool: GamePool, plies: int | None, progress: float
    ) -> tuple[FinalStates, dict[str, float]]:
        """Play the games of a pool, to their ends or for a window of plies, and learn meanwhile.

        Returns how the games ended, and metrics and errors as update. Its random numbers are the
        pool's.
        """
        raise NotImplementedError(f"{type(self).__name__} does not play")

    def evaluate(self, held_out: Callable[[], Trajectories]) -> dict[str, float]:
        """What else an evaluation measures. held_out: moves that are not learned from."""
        return {}

    def has_converged(self, metrics: dict[str, float]) -> bool:
        """Whether to stop after an evaluation with these metrics."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """What later updates depend on besides the policy's weights and the generator: a tree of
        tensors and plain numbers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or RuntimeError for a state of another kind."""
        if state:
            raise ValueError("this learner has no state")


def unlearned_entries(policy: Any) -> dict[str, float]:
    """The fraction of a table's values that are the initial one; of a large table's, among some
    random ones, always the same. policy: a table has values and an initial_value."""
    if not hasattr(policy, "initial_value"):
        return {}
    values = policy.values
    if len(values) > MAX_COMPARED:
        rng = torch.Generator().manual_seed(0)
        rows = torch.randint(len(values), (MAX_COMPARED,), generator=rng)
        values = values[rows.to(values.device)]
    return {"unlearned_entries": float((values == policy.initial_value).float().mean())}


def return_metrics(
    trajectories: Trajectories, returns: torch.Tensor, reward: torch.Tensor
) -> dict[str, float]:
    """The mean and the spread of the returns, float32 [M], and the fraction of the games in which
    a reward, float32 [M], is not 0."""
    total = reward.new_zeros(trajectories.num_games).index_add_(
        0, trajectories.game, reward.detach().abs()
    )
    return {
        "return": float(returns.mean()),
        "return_std": float(returns.std(correction=0)),
        "rewarded_games": float((total > 0).float().mean()),
    }


def check_all_finite(name: str, values: torch.Tensor) -> None:
    """Raises NonFiniteError, with the name of the values, where one is NaN or infinite."""
    if not torch.isfinite(values).all():
        raise NonFiniteError(f"{name} is not a finite number")
