"""Plugins: the modules of plugins=, and the options that they register."""

from __future__ import annotations

import importlib
import math
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, make_dataclass
from pathlib import Path
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    WORDS,
    Option,
    OptionConfig,
    default_of,
    key,
    names_of,
)
from rlgames.core.errors import ConfigError, nearest

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
"""A module that plugins= may name."""


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
        for name in _modules(word):
            _import(name)


def _modules(word: str) -> list[str]:
    """The names in plugins=[...]; raises ConfigError for anything that is not a module's name."""
    match = re.fullmatch(r"plugins=(?:\[(.*)\]|([^\[\],]+))", word)
    text = (match[1] or match[2] or "") if match else ""
    names = text.split(",") if text.strip() else []
    names = [name.strip(" '\"") for name in names]
    if match is None or names == ["null"] or not all(map(MODULE.fullmatch, names)):
        raise ConfigError(
            f"{word!r} does not list modules by name", "plugins=[mine] imports mine.py"
        )
    return names


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
        lines = [
            f", line {frame.lineno} of {frame.filename}"
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).stem == name.rpartition(".")[2]
        ]
        message = " ".join(str(error).split())
        raise ConfigError(
            f"plugins=[{name}] fails: {type(error).__name__}: {message}" + "".join(lines[-1:])
        ) from None
    local_file = Path(here, *name.split(".")).with_suffix(".py")
    if local_file.exists() and not local_file.samefile(module.__file__ or "."):
        raise ConfigError(
            f"plugins=[{name}] is {module.__file__ or 'a part of Python'}, not {local_file}",
            "give the file another name",
        )


def add_option(group: str, name: str, make: Callable[..., Any], keys: Mapping[str, Any]) -> None:
    """Add an option to the registry and to Hydra's config store, which takes the place of a file in
    conf/. See rlgames.register.

    Raises ValueError for a name or keys that a config cannot have.
    """
    from hydra.core.config_store import ConfigStore

    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{group}={name} cannot be typed: letters, digits and _ can")
    taken = names_of(TrainConfig) if group == "game" else ["name"]
    items: list[tuple[str, Any, Any]] = []
    for word, value in keys.items():
        if word in taken:
            raise ValueError(f"{group}={name} cannot have the key {word}, which is taken")
        field = value if isinstance(value, Field) else key(value=value)
        items.append((word, _kind(f"{group}={name}", word, field), field))
    schema = make_dataclass(
        f"{name}_keys", items, bases=(OptionConfig,), init=False, eq=False, repr=False
    )
    schema.__doc__ = (make.__doc__ or "").strip()
    values = {"name": name} | {word: default_of(field) for word, _, field in items}
    REGISTRY[group][name] = Option(schema, make, values)
    package = f"logger.{name}" if group == "logger" else None
    ConfigStore.instance().store(name, values, group, package)


def _kind(option: str, word: str, field: Field[Any]) -> Any:
    """The type of a key by its value. Null may also be a number if the key has a range, otherwise a
    text. Raises ValueError for a value that no config can have."""
    value = default_of(field)
    if value is None:
        return float | None if field.metadata["high"] < math.inf else str | None
    if type(value) in (bool, *WORDS):
        return type(value)
    if isinstance(value, list) and {*map(type, value)} <= {*WORDS} and value:
        return list[type(value[0])]  # type: ignore[misc]
    raise ValueError(f"{option} needs a number, a text, true, null or a list for its key {word}")
