"""Plugins: the modules of plugins=, and the options that they register."""

from __future__ import annotations

import importlib
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.overrides import parse_word
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import WORDS, Option, OptionConfig, key, make_schema, names_of
from rlgames.core.errors import ConfigError, nearest, own_place

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
"""A module that plugins= may name."""

KINDS = {
    "game": "rlgames.games.game:Game",
    "reward": "rlgames.rewards:Reward",
    "policy": "rlgames.policies.policy:Policy",
    "sampling": "rlgames.sampling:Sampling",
    "learner": "rlgames.learners.learner:Learner",
    "player": "rlgames.players.player:Player",
    "search": "rlgames.players.player:Player",
    "logger": "rlgames.runs.loggers:Logger",
}
"""The base class of the parts of each group that takes parts of one's own."""


def plugins_override(names: object) -> str:
    """The override plugins=[...] for these modules; empty unless all are names of modules."""
    words = [str(name) for name in names] if isinstance(names, list) else []
    named = words and all(MODULE.fullmatch(word) for word in words)
    return f"plugins=[{','.join(words)}]" if named else ""


def command_for_run(name: str, run: Path, modules: object, *words: str) -> str:
    """The command line for a run, with the plugins that it needs."""
    listed = plugins_override(modules)
    return shlex.join(["rlgames", name, str(run), *words, *([listed] if listed else [])])


def import_plugins(words: Sequence[str]) -> None:
    """Import the modules of plugins=.

    Only modules named on the command line are imported, never modules named in files. Raises
    ConfigError for a module that does not exist or fails.
    """
    for word in [word for word in words if word.startswith("plugins=")][-1:]:
        names = parse_word(word).options
        if names is None or not all(map(MODULE.fullmatch, names)):
            hint = "plugins=[mine] imports mine.py"
            raise ConfigError(f"{word!r} does not list modules by name", hint)
        for name in names:
            _import(name)


def _import(name: str) -> None:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            here_too = [path.stem for path in Path().glob("*.py")]
            hint = nearest(name, here_too, "it is looked for here and in PYTHONPATH")
            raise ConfigError(f"no module is called {name!r}", hint) from None
        message, place = " ".join(str(error).split()), own_place(error)
        raise ConfigError(
            f"plugins=[{name}] fails: {type(error).__name__}: {message}",
            f"it was raised in {place}" if place else "",
        ) from None
    local_file = Path(here, *name.split(".")).with_suffix(".py")
    if local_file.exists() and not local_file.samefile(module.__file__ or "."):
        raise ConfigError(
            f"plugins=[{name}] is {module.__file__ or 'a part of Python'}, not {local_file}",
            "give the file another name",
        )


def add_option(group: str, name: str, make: Callable[..., Any], keys: Mapping[str, Any]) -> None:
    """Add an option to the registry and to Hydra's config store, instead of a file in conf/. See
    rlgames.register.

    Raises ValueError for a part that its group does not take, for a name that is taken, and for a
    name or keys that a config cannot have.
    """
    from hydra.core.config_store import ConfigStore

    from rlgames.config.hydra_version import REPLACE

    if group not in KINDS:
        raise ValueError(f"no group is called {group!r}; {nearest(group, list(KINDS))}")
    option, kind, registered = f"{group}={name}", resolve_name(KINDS[group]), REGISTRY[group]
    # The capabilities of policies and learners are read from their classes, before one is made.
    is_kind = (
        issubclass(make, kind) if isinstance(make, type) else group not in ("policy", "learner")
    )
    if not is_kind:
        raise ValueError(f"{option} is not made by a class derived from {kind.__name__}")
    is_built_in = name in registered and registered[name].values is None
    if is_built_in or (name in registered and _origin(registered[name].load()) != _origin(make)):
        raise ValueError(f"{option} is taken")
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{option} cannot be typed: letters, digits and _ can")
    taken = names_of(TrainConfig) if group == "game" else ["name"]
    if unusable := [word for word in keys if word in taken]:
        raise ValueError(f"{option} cannot have the key {unusable[0]}, which is taken")
    fields = {
        word: each if isinstance(each, Field) else key(value=each) for word, each in keys.items()
    }
    items = {word: (_kind(option, word, field), field) for word, field in fields.items()}
    schema = make_schema(f"{name}_keys", OptionConfig, items, (make.__doc__ or "").strip())
    values = {"name": name} | {word: field.metadata["value"] for word, field in fields.items()}
    checked = resolve_name("rlgames.core.own_parts:checked")
    registered[name] = Option(schema, checked(group, name, make), values=values)
    ConfigStore.instance().store(
        name, values, group, f"logger.{name}" if group == "logger" else None, **REPLACE
    )


def _origin(make: Any) -> tuple[str, str]:
    """Where a class or function is defined: the same after its module is reloaded."""
    return getattr(make, "__module__", ""), getattr(make, "__qualname__", "")


def _kind(option: str, word: str, field: Field[Any]) -> Any:
    """The type of a key by its value. Null may also be a number if the key has a range, otherwise a
    text. Raises ValueError for a value that no config can have."""
    value = field.metadata["value"]
    if value is None:
        return float | None if field.metadata["high"] < math.inf else str | None
    if type(value) in (bool, *WORDS):
        return type(value)
    kinds = {*map(type, value)} if isinstance(value, list) else set()
    if kinds == {int, float}:
        return list[float]
    if len(kinds) == 1 and kinds <= {*WORDS}:
        return list[kinds.pop()]  # type: ignore[misc]
    raise ValueError(
        f"{option} needs a number, a text, true, null or a list of numbers or of texts for its key "
        f"{word}"
    )
