"""Checks a training before its policy is built: each part what it needs, and here what concerns
several parts."""

from __future__ import annotations

from rlgames.build.policies import check_policy_fits
from rlgames.config.registry import load_option
from rlgames.core.errors import ConfigError
from rlgames.learners.learner import Plan


def check_fits(plan: Plan) -> None:
    """Raises ConfigError for the first conflict, and for a replay buffer that does not fit in
    memory."""
    cfg = plan.cfg
    check_policy_fits(cfg.policy.name, cfg.learner.name)
    load_option("learner", cfg.learner.name).check(plan)
    _check_seats(plan)
    _check_records(plan)
    if plan.is_held_out and cfg.search is not None:
        raise ConfigError(
            "holdout= and search= cannot be combined in training",
            "the search plays on held-out layouts; remove one of the two",
        )
    if cfg.restart_fraction and not cfg.window:
        raise ConfigError(
            f"restart_fraction={cfg.restart_fraction} needs games in progress, and whole games "
            "leave none",
            "add window=N, or remove restart_fraction=",
        )
    if cfg.engine.name != "local" and cfg.opponent.name == "past":
        raise ConfigError(
            "opponent=past changes while it trains, and the actors of "
            f"engine={cfg.engine.name} do not see it",
            "use opponent=self or a fixed opponent",
        )


def _check_seats(plan: Plan) -> None:
    """Raises ConfigError for keys that need another number of seats."""
    cfg, spec = plan.cfg, plan.game.spec
    if spec.seats == 1 and cfg.opponent.name != "self":
        raise ConfigError(f"{spec.name} is a one-player game", "remove opponent=")
    if spec.seats == 1 and cfg.eval_opponent.name != "random":
        raise ConfigError(f"{spec.name} is a one-player game", "remove eval_opponent=")
    if spec.seats == 2 and cfg.window:
        text = f"window={cfg.window} is for one-player games, and {spec.name} has two seats"
        raise ConfigError(text, "remove window=")


def _check_records(plan: Plan) -> None:
    """Raises ConfigError for recorded games, or a teacher, that are not used or cannot be."""
    cfg = plan.cfg
    learns_from = load_option("learner", cfg.learner.name).learns_from
    is_cloned = "teacher" in learns_from and cfg.teacher is None
    for key in ("demos_per_batch", "demonstrator"):
        if getattr(cfg, key) and not cfg.demonstrations:
            raise ConfigError(
                f"{key}={getattr(cfg, key)} needs recorded games", "add demonstrations=FILE"
            )
    if cfg.demonstrations and not cfg.demos_per_batch and not is_cloned:
        raise ConfigError("demonstrations= has no effect here", "add demos_per_batch=N")
    if cfg.demonstrations and plan.is_held_out:
        raise ConfigError(
            "holdout= and demonstrations= cannot be combined",
            "recorded games may be on held-out layouts; remove one of the two",
        )
    if cfg.teacher is not None and cfg.teacher.name == "human":
        raise ConfigError(
            "teacher=human would be asked for thousands of games",
            "record some by play record=FILE, and use demonstrations=FILE",
        )
