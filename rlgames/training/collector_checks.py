"""Keys about where games come from: which of them fit together."""

from __future__ import annotations

from omegaconf import DictConfig

from rlgames.config.registry import REGISTRY, check_installed, load_part
from rlgames.core import distributed
from rlgames.core.errors import ConfigError
from rlgames.learners.behavior_cloning import BehaviorCloning
from rlgames.learners.learner import Learner
from rlgames.players.player import Agent
from rlgames.policies.policy import Network
from rlgames.rollouts.holdout import Split


def check_collector(cfg: DictConfig, agent: Agent, learner: Learner, split: Split | None) -> None:
    """Raises ConfigError for keys that do not fit together."""
    _check_windows(cfg, agent, learner)
    _check_demonstration_keys(cfg, agent, learner)
    _check_teacher(cfg, learner)
    _check_engine(cfg, learner)
    clones_record = isinstance(learner, BehaviorCloning) and cfg.get("teacher") is None
    if cfg.demonstrations and not (cfg.demos_per_batch or cfg.clone_epochs or clones_record):
        raise ConfigError(
            "demonstrations= is given, and not used", "add demos_per_batch=N or clone_epochs=N"
        )
    if cfg.demos_per_batch:
        _check_batched(cfg, f"demos_per_batch={cfg.demos_per_batch}")
    if cfg.opponent.name != "self":
        _check_batched(cfg, f"opponent={cfg.opponent.name}")
    if split is not None and cfg.demonstrations:
        raise ConfigError(
            "holdout= and demonstrations= cannot be combined",
            "recorded games may be on held-out layouts; leave one of the two out",
        )
    if split is not None and cfg.get("search") is not None:
        raise ConfigError(
            "holdout= and search= cannot be combined in training",
            "the search plays on held-out layouts; leave one of the two out",
        )


def _check_batched(cfg: DictConfig, setting: str) -> None:
    """Raises ConfigError where a setting, given as typed, and the learner's compiled kernel are
    asked for together."""
    if cfg.learner.get("backend") == "numba":
        raise ConfigError(
            f"{setting} needs the batched learner, and learner.backend=numba plays and learns "
            "without it",
            "leave learner.backend= out",
        )
    if cfg.learner.get("threads", 1) > 1:
        raise ConfigError(
            f"{setting} needs the batched learner, which has one thread, not "
            f"learner.threads={cfg.learner.threads}",
            "use learner.threads=1",
        )


def _check_windows(cfg: DictConfig, agent: Agent, learner: Learner) -> None:
    if cfg.window and not learner.bootstraps:
        raise ConfigError(
            f"learner={cfg.learner.name} learns from whole games, not from window={cfg.window} "
            "moves of them",
            "leave window= out, or use learner=ppo or learner=td",
        )
    if cfg.window and agent.game.spec.seats == 2:
        raise ConfigError(
            f"window={cfg.window} is for games of one seat, and {agent.game.spec.name} has two",
            "leave window= out",
        )
    if cfg.restart_fraction and not cfg.window:
        raise ConfigError(
            f"restart_fraction={cfg.restart_fraction} needs games in progress, and whole games "
            "leave none",
            "add window=N, or leave restart_fraction= out",
        )


def _check_demonstration_keys(cfg: DictConfig, agent: Agent, learner: Learner) -> None:
    for key in ("demos_per_batch", "clone_epochs", "demonstrator"):
        if cfg[key] and not cfg.demonstrations:
            raise ConfigError(f"{key}={cfg[key]} needs recorded games", "add demonstrations=FILE")
    if cfg.demos_per_batch and not learner.learns_from_records:
        raise ConfigError(
            f"learner={cfg.learner.name} does not learn from recorded games", "learner=ppo does"
        )
    if cfg.clone_epochs and not isinstance(agent.policy, Network):
        raise ConfigError(
            f"clone_epochs={cfg.clone_epochs} fits networks, and policy={cfg.policy.name} is none",
            "policy=mlp learner=ppo fits",
        )


def _check_teacher(cfg: DictConfig, learner: Learner) -> None:
    clones, teacher = isinstance(learner, BehaviorCloning), cfg.get("teacher")
    if teacher is not None and not learner.has_teacher:
        names = [name for name in REGISTRY["learner"] if load_part("learner", name).has_teacher]
        raise ConfigError(
            f"learner={cfg.learner.name} has no teacher",
            "these have: " + ", ".join(f"learner={name}" for name in names),
        )
    if teacher is not None and teacher.name == "human":
        raise ConfigError(
            "teacher=human would be asked for thousands of games",
            "record some by play record=FILE, and use demonstrations=FILE",
        )
    if clones and teacher is None and (not cfg.demonstrations or cfg.demos_per_batch):
        raise ConfigError(
            "learner=behavior_cloning needs a teacher to learn from, or a record",
            "add teacher=NAME, teacher=RUN, or demonstrations=FILE without demos_per_batch=",
        )
    if learner.has_teacher and not clones and teacher is None:
        raise ConfigError(
            f"learner={cfg.learner.name} needs a teacher to learn from", "add teacher=RUN"
        )


def _check_engine(cfg: DictConfig, learner: Learner) -> None:
    """What several actors cannot play, or several processes cannot play by actors."""
    name = cfg.engine.name
    if name == "local":
        return
    if not learner.supports_actors:
        names = [name for name in REGISTRY["learner"] if load_part("learner", name).supports_actors]
        raise ConfigError(
            f"learner={cfg.learner.name} learns only from games of its latest weights, and the "
            f"actors of engine={name} play with earlier ones",
            "these can: " + ", ".join(f"learner={each}" for each in names),
        )
    if cfg.opponent.name == "past":
        raise ConfigError(
            f"opponent=past changes while it trains, and the actors of engine={name} do not see it",
            "opponent=self and fixed opponents fit",
        )
    if distributed.world_size() > 1:
        raise ConfigError(
            f"engine={name} starts its own processes and cannot be combined with torchrun",
            "start with rlgames train",
        )
    check_installed("engine", name)
