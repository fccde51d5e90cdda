"""The contract of every learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

import torch

from rlgames.config.commands import TrainConfig
from rlgames.config.options.sampling import StochasticConfig
from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError, NonFiniteError
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import Network, learning
from rlgames.rewards import Reward
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Sampling

if TYPE_CHECKING:
    from rlgames.search.search import Search

P = ParamSpec("P")
R = TypeVar("R")

Source = Literal["rewards", "records", "windows", "search", "teacher", "earlier_weights"]


MAX_COMPARED = 1 << 14
"""Values of a table that are compared with the initial one."""


@dataclass(frozen=True)
class Plan:
    """A training that is checked before its policy, which may be large, is built.

    is_held_out: whether some of the hidden layouts are.
    """

    cfg: TrainConfig
    game: Game[Any]
    reward: Reward
    is_held_out: bool


@dataclass(frozen=True)
class LearnerContext:
    """What every learner is built from. generator: of its random numbers; each update
    seeds it anew."""

    game: Game[Any]
    policy: Any
    sampling: Sampling
    reward: Reward
    generator: torch.Generator


class GamesToPlay(Protocol):
    """The games of one update, which are played when a learner asks for them, by either method.

    plies: of a window; None: games are played to their ends.
    """

    plies: int | None

    def play(self) -> tuple[Trajectories, FinalStates]:
        """Play them: the moves of all players, and how the games ended."""

    def examples(
        self, trajectories: Trajectories, final_states: FinalStates
    ) -> tuple[Trajectories, FinalStates]:
        """The moves among them to learn from: the agent's, and recorded ones."""

    def pool(self) -> GamePool:
        """The games for a learner that plays them itself."""


class Learner(ABC):
    """Learns from games. Subclasses declare what they learn from and what their policy outputs, and
    check what else they need."""

    policy_class: type[Any] = Network
    """The policies that it can train: this class and its subclasses."""

    learns_from: frozenset[Source] = frozenset({"rewards"})
    """records: recorded games as well as games just played. windows: unfinished games, by the value
    of the state where a window ends. search: a search around the agent, and nothing else. teacher:
    the player that teacher= names. earlier_weights: games that were played some updates ago."""

    trains_logits = False
    """Whether the scores of its policy are logits rather than values."""

    trains_afterstates = False
    """Whether its networks value afterstates rather than score actions."""

    needs_log_prob = False
    """Whether it reads Trajectories.log_prob, and state_value if sampling.is_softmax."""

    num_gradient_steps = 0
    """In this process."""

    def __init__(self, context: LearnerContext) -> None:
        self.game, self.policy, self.sampling = context.game, context.policy, context.sampling
        self.reward, self.generator = context.reward, context.generator

    @classmethod
    def check(cls, plan: Plan) -> None:
        """Raises ConfigError, with a remedy, unless the learner supports the game, reward, sampling
        rule and sources of a training.

        A subclass calls this first, which checks the sources.
        """
        check_sources(cls, plan)

    @classmethod
    def has_value_head(cls, keys: Any) -> bool:
        """Whether its networks have a value head; keys: the learner's, as configured."""
        return False

    @classmethod
    def floats_per_weight(cls, keys: Any) -> int:
        """The memory for each weight of a table, in float32: it, and a number for its update."""
        return 2

    @classmethod
    def self_play(cls, keys: Any, agent: Agent, search: Search) -> Player:
        """The player of the games of a learner that learns from a search around its agent."""
        from rlgames.search.self_play import SearchSelfPlay

        return SearchSelfPlay(agent, search)

    @property
    def evaluated_policy(self) -> Any:
        """The policy of evaluations and checkpoints; by default the one that plays and learns."""
        return self.policy

    @abstractmethod
    def learn(self, games: GamesToPlay, progress: float) -> tuple[FinalStates, dict[str, float]]:
        """Have games played and learn from them: how they ended, and metrics by name.

        progress: the fraction of the run's games that have been played, 0 to 1.
        Raises NonFiniteError before a non-finite number reaches the weights.
        """

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


class BatchLearner(Learner):
    """Updates a policy from the moves of a batch of games."""

    def learn(self, games: GamesToPlay, progress: float) -> tuple[FinalStates, dict[str, float]]:
        moves, final_states = games.play()
        examples = games.examples(moves, final_states)
        if not len(examples[0]):  # an opponent may have won before the agent moved
            return final_states, {}
        steps = self.num_gradient_steps
        with learning(self.policy):
            metrics = self.update(*examples, progress)
        steps = self.num_gradient_steps - steps
        return final_states, metrics | ({"gradient_steps": float(steps)} if steps else {})

    @abstractmethod
    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        """Learn from one batch of games and return metrics by name; progress and errors as in
        learn, which calls it."""


def check_sources(learner: type[Learner], plan: Plan) -> None:
    """Raises ConfigError for games of a kind that a learner does not learn from, naming those that
    do, and for a source that it lacks."""
    cfg = plan.cfg
    asked: list[tuple[str, Source, object, str]] = [
        ("search", "search", cfg.search, "a search"),
        ("window", "windows", cfg.window, f"unfinished games, as with window={cfg.window}"),
        ("demos_per_batch", "records", cfg.demos_per_batch, "recorded games"),
        ("teacher", "teacher", cfg.teacher, "a teacher"),
        (
            "engine",
            "earlier_weights",
            cfg.engine.name != "local",
            f"games of earlier weights, as the actors of engine={cfg.engine.name} play them",
        ),
    ]
    for key, source, is_used, games in asked:
        if is_used and source not in learner.learns_from:
            options = REGISTRY["learner"].items()
            names = [name for name, option in options if source in option.load().learns_from]
            raise ConfigError(
                f"learner={cfg.learner.name} does not learn from {games}",
                f"remove {key}=; these do: " + ", ".join(f"learner={name}" for name in names),
            )
    if "search" in learner.learns_from and cfg.search is None:
        text = f"learner={cfg.learner.name} learns from a search, and none is named"
        raise ConfigError(text, "use search=mcts")
    counts_turns = plan.reward.scored == "turns" and plan.game.spec.goal == "outcome"
    if "rewards" in learner.learns_from and counts_turns:
        raise ConfigError(
            f"{plan.game.spec.name} is won or lost, and reward={cfg.reward.name} counts turns only",
            "use reward=outcome",
        )


def check_values_are_not_sampled(plan: Plan) -> None:
    """Raises ConfigError for a softmax at temperature 1, which makes no sense of values."""
    sampling = plan.cfg.sampling
    if isinstance(sampling, StochasticConfig) and sampling.temperature == 1:
        raise ConfigError(
            f"learner={plan.cfg.learner.name} outputs action values, but sampling=stochastic "
            "treats them as logits",
            "use sampling=epsilon_greedy",
        )


def check_afterstate_reward(plan: Plan) -> None:
    """Raises ConfigError for a reward per move that the values of afterstates would miss: what the
    other seat's reply is paid."""
    if plan.game.spec.seats == 2 and not plan.reward.is_final:
        raise ConfigError(
            f"learner={plan.cfg.learner.name} values positions after a move, and "
            f"reward={plan.cfg.reward.name} may also pay for the other seat's reply",
            "use reward=outcome",
        )


def as_in_play(method: Callable[P, R]) -> Callable[P, R]:
    """Makes a method of a learner compute without gradient, its policy in evaluation mode."""

    @wraps(method)
    def compute(*arguments: P.args, **keys: P.kwargs) -> R:
        learner: Any = arguments[0]
        with torch.no_grad(), learning(learner.policy, False):
            return method(*arguments, **keys)

    return compute


def unlearned_entries(policy: Any) -> dict[str, float]:
    """The fraction of a table's values that are the initial one; of a large table's, among some
    random ones, always the same. policy: a table has values and an initial_value."""
    if not hasattr(policy, "initial_value"):
        return {}
    values = policy.values
    if len(values) > MAX_COMPARED:
        generator = torch.Generator().manual_seed(0)
        rows = torch.randint(len(values), (MAX_COMPARED,), generator=generator)
        values = values[rows.to(values.device)]
    return {"unlearned_entries": float((values == policy.initial_value).float().mean())}


def return_metrics(
    trajectories: Trajectories, returns: torch.Tensor, reward: torch.Tensor
) -> dict[str, float]:
    """The mean and the spread of the returns, float32 [M], and the fraction of games with a
    reward, float32 [M], other than 0."""
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
