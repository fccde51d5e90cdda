"""The registry: every option of every config group, with its schema and what makes it.

Schemas, help, Gymnasium ids and the pages of the documents are derived from it. Nothing
heavy is imported: an option's class is imported when a config first asks for it.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

from rlgames.config.options.engines import ENGINES
from rlgames.config.options.games import GAMES
from rlgames.config.options.learners import LEARNERS
from rlgames.config.options.loggers import LOGGERS
from rlgames.config.options.players import PLAYERS
from rlgames.config.options.policies import POLICIES
from rlgames.config.options.rewards import REWARDS
from rlgames.config.options.sampling import SAMPLING_RULES
from rlgames.config.options.search import HPARAMS_SEARCHES, SEARCHES
from rlgames.config.schema import Option, defaults, kind_in_words, kind_of, names_of
from rlgames.config.training import LaunchConfig, SweepConfig, TrainConfig
from rlgames.core import errors

REGISTRY: dict[str, dict[str, Option]] = {
    "game": GAMES,
    "reward": REWARDS,
    "policy": POLICIES,
    "sampling": SAMPLING_RULES,
    "learner": LEARNERS,
    "player": PLAYERS,
    "search": SEARCHES,
    "hparams_search": HPARAMS_SEARCHES,
    "logger": LOGGERS,
    "engine": ENGINES,
}
"""Options by group and name."""

LAUNCHERS = {
    "basic": "",
    "joblib": "joblib",
    "ray": "ray",
    "submitit_local": "submitit",
    "submitit_slurm": "submitit",
}
"""Hydra's launchers, with the extra that installs each of them."""

TOP_KEYS = {key for schema in (TrainConfig, LaunchConfig, SweepConfig) for key in names_of(schema)}
"""Keys that are typed without a prefix, like the keys of a game."""


def load_option(group: str, name: str) -> Any:
    """The class or function that makes an option; KeyError if there is none."""
    return REGISTRY[group][name].load()


def check_installed(group: str, name: str) -> None:
    """Raises ConfigError for an option whose package is not installed."""
    if extra := REGISTRY[group][name].extra:
        errors.check_installed(f"{group}={name}", extra, extra)


def check_schema(group: str, name: str, schema: type) -> None:
    """Raises ValueError for a schema whose keys a config cannot have."""
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{group}={name} cannot be typed: letters, digits and _ can")
    keys = defaults(schema) if is_dataclass(schema) else {}
    taken = [key for key in keys if group == "game" and key in TOP_KEYS]
    if taken:
        raise ValueError(f"game={name} cannot have the key {taken[0]}, which a training has")
    if keys.get("name") != name or len(keys) != len(fields(schema)):
        raise ValueError(
            f"{group}={name} needs a dataclass with name: str = {name!r} and defaults for all keys"
        )
    for key in keys:
        if "value" in kind_in_words(kind_of(schema, key)):
            raise ValueError(f"{group}={name} cannot have the key {key}: its type is not of YAML")
