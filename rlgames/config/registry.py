"""The registry: what each `name:` in conf/ means, in every config group.

Nothing heavy is imported: an option's class is imported when a config first asks for it.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from rlgames.config.options.engines import ENGINES
from rlgames.config.options.games import GAMES
from rlgames.config.options.learners import LEARNERS
from rlgames.config.options.loggers import LOGGERS
from rlgames.config.options.players import PLAYERS
from rlgames.config.options.policies import POLICIES
from rlgames.config.options.rewards import REWARDS
from rlgames.config.options.sampling import SAMPLING_RULES
from rlgames.config.options.search import SEARCHES
from rlgames.config.schema import Option, OptionConfig, arguments
from rlgames.core import errors

REGISTRY: dict[str, dict[str, Option]] = {
    "game": GAMES,
    "reward": REWARDS,
    "policy": POLICIES,
    "sampling": SAMPLING_RULES,
    "learner": LEARNERS,
    "player": PLAYERS,
    "search": SEARCHES,
    "logger": LOGGERS,
    "engine": ENGINES,
}
"""Options by group and name; the groups are the folders of conf/ that hold options."""


def load_option(group: str, name: str) -> Any:
    """The class or function that makes an option; KeyError if there is none."""
    return REGISTRY[group][name].load()


def make(group: str, option: OptionConfig, *parts: Any, hint: str = "", **more: Any) -> Any:
    """What an option makes: its class, called with these parts and the option's keys.

    more: other keys, or other values of them. Raises ConfigError, with the hint, for what the class
    refuses.
    """
    with errors.value_errors(hint=hint):
        made = load_option(group, option.name)(*parts, **arguments(option) | more)
        if group == "game":
            resolve_name("rlgames.games.capabilities:check_declared")(made)
        return made


def check_installed(group: str, name: str) -> None:
    """Raises ConfigError for an option whose package is not installed."""
    if extra := REGISTRY[group][name].extra:
        errors.check_installed(f"{group}={name}", extra, extra)
