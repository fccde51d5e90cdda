"""Which learner, policy, game, search, sampling rule and device work together, and what else would.

Each entry of `conflicts` is a condition, what is wrong if it holds, and what to use instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.registry import REGISTRY, load_option
from rlgames.core.devices import has_float64, no_float64
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, Source
from rlgames.policies.policy import Network
from rlgames.rewards import Reward
from rlgames.rollouts.trajectories import bytes_per_position
from rlgames.runs.agents import check_policy_fits

Conflict = tuple[bool, str, str]


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


def check_fits(plan: Plan) -> None:
    """Raises ConfigError for the first conflict, and for a replay buffer that does not fit in
    memory."""
    cfg, game = plan.cfg, plan.game
    check_policy_fits(cfg.policy.name, cfg.learner.name)
    for is_conflict, error, hint in conflicts(plan):
        if is_conflict:
            raise ConfigError(error, hint)
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


def conflicts(plan: Plan) -> Iterator[Conflict]:
    """What does not fit together in a plan."""
    yield from _search(plan)
    yield from _rewards(plan)
    yield from _players(plan)
    yield from _windows(plan)
    yield from _schedules(plan)
    yield from _records(plan)
    yield from _teachers(plan)
    yield from _engine(plan)
    yield from _networks(plan)


def _search(plan: Plan) -> Iterator[Conflict]:
    cfg, learner, name = plan.cfg, plan.learner, plan.cfg.learner.name
    yield (
        "search" in learner.learns_from and cfg.search is None,
        f"learner={name} learns from a search, and none is named",
        "add search=mcts search.leaf=value",
    )
    yield (
        cfg.search is not None and "search" not in learner.learns_from,
        f"learner={name} does not learn from a search",
        "use learner=alphazero, or remove search=",
    )
    yield (
        plan.is_held_out and cfg.search is not None,
        "holdout= and search= cannot be combined in training",
        "the search plays on held-out layouts; remove one of the two",
    )


def _rewards(plan: Plan) -> Iterator[Conflict]:
    cfg, spec, reward = plan.cfg, plan.game.spec, plan.reward
    learner, name = plan.learner, cfg.learner.name
    compares = "score_deltas" in learner.needs and not reward.is_final
    yield (
        "scaled_temperature" in learner.needs and getattr(cfg.sampling, "temperature", None) == 1,
        f"learner={name} learns values, and sampling=stochastic takes scores for logits",
        "sampling=epsilon_greedy fits, or a sampling.temperature of the values' size",
    )
    yield (
        "rewards" in learner.learns_from and reward.scored == "turns" and spec.goal == "outcome",
        f"{spec.name} is won or lost, and reward={cfg.reward.name} counts turns only",
        "reward=outcome fits",
    )
    yield (
        compares and spec.seats == 2,
        f"learner={name} values positions after a move, and reward.scored={reward.scored} also "
        "pays for the other seat's reply",
        "reward=outcome fits",
    )
    yield (
        compares and reward.scored != "score_delta" and reward.constant is None,
        f"learner={name} compares moves by the change in score and the value that follows; "
        f"reward.scored={reward.scored} pays something else for a move",
        "reward.scored=score_delta fits, learner=ppo takes any",
    )


def _players(plan: Plan) -> Iterator[Conflict]:
    cfg, spec = plan.cfg, plan.game.spec
    for key, usual in (("opponent", "self"), ("eval_opponent", "random")):
        yield (
            spec.seats == 1 and getattr(cfg, key).name != usual,
            f"{spec.name} is a one-player game",
            f"remove {key}=",
        )
    yield (
        cfg.opponent.name != "self" and plan.learner.learns_while_playing,
        f"learner={cfg.learner.name} learns from games against itself, not from "
        f"opponent={cfg.opponent.name}",
        "remove opponent=, or use policy=mlp learner=ppo",
    )


def _windows(plan: Plan) -> Iterator[Conflict]:
    cfg, spec = plan.cfg, plan.game.spec
    yield (
        bool(cfg.window) and "windows" not in plan.learner.learns_from,
        f"learner={cfg.learner.name} learns from whole games, not from window={cfg.window} "
        "moves of them",
        "remove window=, or use learner=ppo or learner=td",
    )
    yield (
        bool(cfg.window) and spec.seats == 2,
        f"window={cfg.window} is for one-player games, and {spec.name} has two seats",
        "remove window=",
    )
    yield (
        bool(cfg.restart_fraction) and not cfg.window,
        f"restart_fraction={cfg.restart_fraction} needs games in progress, and whole games "
        "leave none",
        "add window=N, or remove restart_fraction=",
    )


def _schedules(plan: Plan) -> Iterator[Conflict]:
    cfg = plan.cfg
    start, end = getattr(cfg.learner, "average_start", None), cfg.schedule_games
    yield (
        start is not None and end is not None and end < cfg.games,
        f"learner.average_start={start} averages until schedule_games={end}, and games={cfg.games} "
        "go on after it",
        "remove schedule_games=",
    )


def _records(plan: Plan) -> Iterator[Conflict]:
    cfg, learner, name = plan.cfg, plan.learner, plan.cfg.learner.name
    clones = "teacher" in learner.learns_from
    for key in ("demos_per_batch", "clone_epochs", "demonstrator"):
        yield (
            bool(getattr(cfg, key)) and not cfg.demonstrations,
            f"{key}={getattr(cfg, key)} needs recorded games",
            "add demonstrations=FILE",
        )
    yield (
        bool(cfg.demos_per_batch) and "records" not in learner.learns_from,
        f"learner={name} does not learn from recorded games",
        "learner=ppo does",
    )
    yield (
        bool(cfg.demonstrations)
        and not (cfg.demos_per_batch or cfg.clone_epochs or (clones and cfg.teacher is None)),
        "demonstrations= is given, and not used",
        "add demos_per_batch=N or clone_epochs=N",
    )
    yield (
        plan.is_held_out and bool(cfg.demonstrations),
        "holdout= and demonstrations= cannot be combined",
        "recorded games may be on held-out layouts; remove one of the two",
    )


def _teachers(plan: Plan) -> Iterator[Conflict]:
    cfg, name = plan.cfg, plan.cfg.learner.name
    learner, teacher = plan.learner, cfg.teacher
    clones = "teacher" in learner.learns_from
    yield (
        teacher is not None and "teacher" not in learner.learns_from,
        f"learner={name} has no teacher",
        _learners_from("teacher") if teacher is not None else "",
    )
    yield (
        teacher is not None and teacher.name == "human",
        "teacher=human would be asked for thousands of games",
        "record some by play record=FILE, and use demonstrations=FILE",
    )
    yield (
        clones and teacher is None and (not cfg.demonstrations or bool(cfg.demos_per_batch)),
        "learner=behavior_cloning needs a teacher to learn from, or a record",
        "add teacher=NAME, teacher=RUN, or demonstrations=FILE without demos_per_batch=",
    )


def _engine(plan: Plan) -> Iterator[Conflict]:
    cfg, learner = plan.cfg, plan.learner
    engine = cfg.engine.name
    is_local = engine == "local"
    yield (
        not is_local and "earlier_weights" not in learner.learns_from,
        f"learner={cfg.learner.name} learns only from games of its latest weights, and the "
        f"actors of engine={engine} play with earlier ones",
        "" if is_local else _learners_from("earlier_weights"),
    )
    yield (
        not is_local and cfg.opponent.name == "past",
        f"opponent=past changes while it trains, and the actors of engine={engine} do not see it",
        "opponent=self and fixed opponents fit",
    )


def _networks(plan: Plan) -> Iterator[Conflict]:
    cfg = plan.cfg
    trains = plan.learner.trains
    scores_actions = issubclass(load_option("policy", cfg.policy.name), Network)
    scores_actions &= "afterstates" not in trains
    for key, usual, hint in (
        ("clone_epochs", 0, "policy=mlp learner=ppo fits"),
        ("precision", "float32", "remove precision="),
    ):
        yield (
            getattr(cfg, key) != usual and not scores_actions,
            f"{key}={getattr(cfg, key)} fits networks that score actions, not "
            f"policy={cfg.policy.name} of learner={cfg.learner.name}",
            hint,
        )


def _learners_from(source: Source) -> str:
    """The learners that learn from something, which imports all of them."""
    options = REGISTRY["learner"].items()
    names = [name for name, option in options if source in option.load().learns_from]
    return "these do: " + ", ".join(f"learner={name}" for name in names)
