"""The registry: every option of every config group, with its schema and what makes it.

Schemas, building, help, completion, Gymnasium ids and the pages of the documents are derived from
it. Nothing heavy is imported: a part's class is imported when a config first asks for it.
"""

from __future__ import annotations

from importlib.util import find_spec
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
from rlgames.config.schema import Part
from rlgames.core.errors import ConfigError

REGISTRY: dict[str, dict[str, Part]] = {
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

PLAYER_KEYS = ("player", "opponent", "eval_opponent", "teacher")
"""Keys that hold a player, each with the options of the group `player`."""

SHARED_GROUPS = {**dict.fromkeys(PLAYER_KEYS, "player"), "opponent_search": "search"}
"""The group whose options a key has, where that is not the group of its own name."""

LIST_GROUPS = ("logger",)
"""Groups of which a config may name several options, or none. Such a group holds a node of keys for
each option, as in logger.csv.name."""

TRAINING_ONLY_PLAYERS = tuple(name for name, part in PLAYERS.items() if part.training_only)


def group_of(key: str) -> str:
    """The group whose options a key has."""
    return SHARED_GROUPS.get(key, key)


def options_of(key: str) -> dict[str, Part]:
    """The options that a key can name; none for a key that holds no group."""
    return REGISTRY.get(group_of(key), {})


def schema_of(key: str, name: str) -> type:
    """The schema of an option; KeyError where there is none."""
    return options_of(key)[name].schema


def load_part(group: str, name: str) -> Any:
    """The class or function that makes an option; KeyError where there is none."""
    return REGISTRY[group][name].load()


def check_installed(group: str, name: str) -> None:
    """Raises ConfigError for an option whose package is not installed."""
    extra = REGISTRY[group][name].extra
    if extra is not None and find_spec(extra) is None:
        raise ConfigError(
            f"{group}={name} needs {extra}, which is not installed",
            f"pip install 'rlgames[{extra}]'",
        )
