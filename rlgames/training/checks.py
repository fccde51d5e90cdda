"""Which learner, policy, game, search, sampling rule and device work together, and what else would.

SOURCES and RULES are the whole table. Learners declare what they learn from, train and need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.registry import REGISTRY, load_option
from rlgames.core.devices import has_float64, no_float64
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory
from rlgames.games.game import Game
from rlgames.games.state import Spec
from rlgames.learners.learner import Learner, Source
from rlgames.policies.policy import Network
from rlgames.rewards import Reward
from rlgames.rollouts.trajectories import bytes_per_position
from rlgames.runs.agents import check_policy_fits


@dataclass(frozen=True)
class Plan:
    """A training whose parts are checked before the policy, which may be large, is built.

    is_held_out: whether some of the hidden layouts are.
    """

    cfg: TrainConfig
    game: Game[Any]
    reward: Reward
    is_held_out: bool

    @property
    def learner(self) -> type[Learner]:
        """The class of the learner, which declares what works with it."""
        learner: type[Learner] = load_option("learner", self.cfg.learner.name)
        return learner

    @property
    def spec(self) -> Spec:
        return self.game.spec

    @property
    def is_clone(self) -> bool:
        """Whether the learner imitates a teacher or a record."""
        return "teacher" in self.learner.learns_from

    @property
    def scores_actions(self) -> bool:
        """Whether the policy is a network with a score for each action."""
        is_network = issubclass(load_option("policy", self.cfg.policy.name), Network)
        return is_network and "afterstates" not in self.learner.trains


SOURCES: dict[str, tuple[Source, str]] = {
    "search": ("search", "from a search"),
    "window": ("windows", "from unfinished games, as with window={cfg.window}"),
    "demos_per_batch": ("records", "from recorded games"),
    "teacher": ("teacher", "from a teacher"),
    "engine": (
        "earlier_weights",
        "from games of earlier weights, as the actors of engine={cfg.engine.name} play them",
    ),
}
"""By the key that adds games of some kind: what the learner must learn from, and that in words."""

Rule = tuple[Callable[[Plan], object], str, str]
"""A conflict of a plan, what is wrong then, and what to do. {} are attributes of the plan."""

RULES: tuple[Rule, ...] = (
    (
        lambda plan: "search" in plan.learner.learns_from and plan.cfg.search is None,
        "learner={cfg.learner.name} learns from a search, and none is named",
        "use search=mcts",
    ),
    (
        lambda plan: plan.is_held_out and plan.cfg.search is not None,
        "holdout= and search= cannot be combined in training",
        "the search plays on held-out layouts; remove one of the two",
    ),
    (
        lambda plan: (
            "scaled_temperature" in plan.learner.needs
            and getattr(plan.cfg.sampling, "temperature", None) == 1
        ),
        "learner={cfg.learner.name} outputs action values, but sampling=stochastic treats them as "
        "logits",
        "use sampling=epsilon_greedy",
    ),
    (
        lambda plan: (
            "rewards" in plan.learner.learns_from
            and plan.reward.scored == "turns"
            and plan.spec.goal == "outcome"
        ),
        "{spec.name} is won or lost, and reward={cfg.reward.name} counts turns only",
        "use reward=outcome",
    ),
    (
        lambda plan: (
            "score_deltas" in plan.learner.needs
            and not plan.reward.is_final
            and plan.spec.seats == 2
        ),
        "learner={cfg.learner.name} values positions after a move, and reward={cfg.reward.name} "
        "may also pay for the other seat's reply",
        "use reward=outcome",
    ),
    (
        lambda plan: plan.spec.seats == 1 and plan.cfg.opponent.name != "self",
        "{spec.name} is a one-player game",
        "remove opponent=",
    ),
    (
        lambda plan: plan.spec.seats == 1 and plan.cfg.eval_opponent.name != "random",
        "{spec.name} is a one-player game",
        "remove eval_opponent=",
    ),
    (
        lambda plan: plan.cfg.opponent.name != "self" and plan.learner.learns_while_playing,
        "learner={cfg.learner.name} learns from games against itself, not from "
        "opponent={cfg.opponent.name}",
        "remove opponent=, or use policy=mlp learner=ppo",
    ),
    (
        lambda plan: plan.cfg.window and plan.spec.seats == 2,
        "window={cfg.window} is for one-player games, and {spec.name} has two seats",
        "remove window=",
    ),
    (
        lambda plan: plan.cfg.restart_fraction and not plan.cfg.window,
        "restart_fraction={cfg.restart_fraction} needs games in progress, and whole games leave "
        "none",
        "add window=N, or remove restart_fraction=",
    ),
    (
        lambda plan: (
            getattr(plan.cfg.learner, "average_start", None) is not None
            and (plan.cfg.schedule_games or plan.cfg.games) < plan.cfg.games
        ),
        "learner.average_start={cfg.learner.average_start} averages until "
        "schedule_games={cfg.schedule_games}, and games={cfg.games} go on after it",
        "remove schedule_games=",
    ),
    *(
        (
            lambda plan, key=key: getattr(plan.cfg, key) and not plan.cfg.demonstrations,
            f"{key}={{cfg.{key}}} needs recorded games",
            "add demonstrations=FILE",
        )
        for key in ("demos_per_batch", "demonstrator")
    ),
    (
        lambda plan: (
            plan.cfg.demonstrations
            and not plan.cfg.demos_per_batch
            and not (plan.is_clone and plan.cfg.teacher is None)
        ),
        "demonstrations= is given, and not used",
        "add demos_per_batch=N",
    ),
    (
        lambda plan: plan.is_held_out and plan.cfg.demonstrations,
        "holdout= and demonstrations= cannot be combined",
        "recorded games may be on held-out layouts; remove one of the two",
    ),
    (
        lambda plan: plan.cfg.teacher is not None and plan.cfg.teacher.name == "human",
        "teacher=human would be asked for thousands of games",
        "record some by play record=FILE, and use demonstrations=FILE",
    ),
    (
        lambda plan: (
            plan.is_clone
            and plan.cfg.teacher is None
            and (not plan.cfg.demonstrations or plan.cfg.demos_per_batch)
        ),
        "learner=behavior_cloning needs a teacher to learn from, or a record",
        "add teacher=NAME, teacher=RUN, or demonstrations=FILE without demos_per_batch=",
    ),
    (
        lambda plan: plan.cfg.engine.name != "local" and plan.cfg.opponent.name == "past",
        "opponent=past changes while it trains, and the actors of engine={cfg.engine.name} do not "
        "see it",
        "opponent=self and fixed opponents fit",
    ),
)


def check_fits(plan: Plan) -> None:
    """Raises ConfigError for the first conflict, and for a replay buffer that does not fit in
    memory."""
    cfg, game = plan.cfg, plan.game
    check_policy_fits(cfg.policy.name, cfg.learner.name)
    for key, (source, words) in SOURCES.items():
        value = getattr(cfg, key)
        is_used = value and getattr(value, "name", "") != "local"
        if is_used and source not in plan.learner.learns_from:
            options = REGISTRY["learner"].items()
            names = [name for name, option in options if source in option.load().learns_from]
            raise ConfigError(
                f"learner={cfg.learner.name} does not learn {words.format(cfg=cfg)}",
                f"remove {key}=; these do: " + ", ".join(f"learner={name}" for name in names),
            )
    for is_broken, error, hint in RULES:
        if is_broken(plan):
            raise ConfigError(error.format(cfg=cfg, spec=plan.spec, reward=plan.reward), hint)
    if "float64" in plan.learner.needs and not has_float64(game.device):
        raise no_float64(f"learner={cfg.learner.name}", game.device)
    buffer_size, minibatch_size = (
        getattr(cfg.learner, key, None) for key in ("buffer_size", "minibatch_size")
    )
    if buffer_size and minibatch_size:
        _check_replay_memory(buffer_size, minibatch_size, cfg.search is not None, game)


def _check_replay_memory(
    buffer_size: int, minibatch_size: int, has_search: bool, game: Game[Any]
) -> None:
    """Raises ConfigError if buffer_size moves, or a step on minibatch_size of them, do not fit in
    free memory.

    Counted per move: its position, 32 bytes for reward and links, and a search target if any.
    """
    spec = game.spec
    move = bytes_per_position(game.public(game.example_state())) + 32
    move += 4 * spec.actions if has_search else 0
    step = 8 * math.prod(spec.observation) + 17 * spec.actions
    check_memory("learner.buffer_size", buffer_size, move, "for the replay buffer")
    check_memory("learner.minibatch_size", minibatch_size, step, "for a step")
