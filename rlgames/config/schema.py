"""Schemas: the keys of an option with their defaults, ranges, choices and explanations."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

POSITIVE = 1e-300
"""As the low end of a range: more than 0."""

MAX_BATCH = 1 << 24


def key(
    default: Any = MISSING,
    low: float = -math.inf,
    high: float = math.inf,
    of: Any = (),
    help: str = "",
    is_text: bool = False,
    takes_word: bool = False,
) -> Any:
    """A field of a schema: its default, its range from low to high or its choices, and its help.

    is_text: it holds a path or another text with any characters, which Hydra needs in quotes.
    takes_word: a list of words that may be typed as a single word.
    """
    metadata = {"low": low, "high": high, "of": tuple(of), "help": help, "is_text": is_text}
    metadata["takes_word"] = takes_word
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def defaults(schema: type) -> dict[str, Any]:
    """The keys of a schema that have a default, with it."""
    values = {}
    for item in fields(schema):
        if item.default_factory is not MISSING:
            values[item.name] = item.default_factory()
        elif item.default is not MISSING:
            values[item.name] = item.default
    return values


@dataclass(frozen=True)
class Part:
    """What a config can name in one of its groups.

    schema: a dataclass of its keys; the first one, `name`, is the option's name.
    make: the class or function that is called with them, or where it is, as "module:name"; it is
        imported when a config first asks for it. None for what is not made by a class of its own.
    training_only: only a training knows this player.
    is_quick: this player moves at once, so that a training may measure random play against it
        before its first game.
    gym_id: the game's name among Gymnasium's environments.
    extra: the package that this option needs, which the extra of the same name installs.
    viewer: the command that shows what this logger wrote, with RUN for the run's directory.
    """

    schema: type
    make: str | Callable[..., Any] | None = None
    training_only: bool = False
    is_quick: bool = False
    gym_id: str | None = None
    extra: str | None = None
    viewer: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class or function itself."""
        if not isinstance(self.make, str):
            return self.make
        module, _, name = self.make.partition(":")
        return getattr(importlib.import_module(module), name)
