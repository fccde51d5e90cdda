"""Plugins: the modules of plugins=, and the options that they register."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import Field, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import (
    Option,
    OptionConfig,
    default_of,
    default_values,
    key,
    kind_in_words,
    kind_of,
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
            suggestion = nearest(name, [path.stem for path in Path().glob("*.py")])
            hint = (
                suggestion
                if suggestion.startswith("did")
                else "it is looked for here and in PYTHONPATH"
            )
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


def add_option(
    group: str, name: str, make: Callable[..., Any], schema: type | None, keys: dict[str, Any]
) -> None:
    """Add an option to the registry and to Hydra's config store, which replaces a file in
    conf/. See rlgames.register.

    Raises ValueError for a schema whose keys a config cannot have.
    """
    from hydra.core.config_store import ConfigStore

    schema = schema or _schema_of_keys(name, make.__doc__ or "", keys)
    _check_schema(group, name, schema)
    values = {"name": name} | default_values(schema)
    REGISTRY[group][name] = Option(schema, make, values)
    package = f"logger.{name}" if group == "logger" else None
    ConfigStore.instance().store(name, values, group, package)


def _schema_of_keys(name: str, help: str, keys: dict[str, Any]) -> type:
    """The schema of an option with these keys, each by its value or as key() makes it, which tells
    the type."""
    items: list[tuple[str, Any, Any]] = []
    for each, value in keys.items():
        item: Any = value if isinstance(value, Field) else key(value=value)
        default = default_of(item)
        kind: Any = type(default)
        if default and kind is list:
            kind = list[type(default[0])]  # type: ignore[misc]
        items.append((each, kind, item))
    config = make_dataclass(
        f"{name}_keys", items, bases=(OptionConfig,), init=False, eq=False, repr=False
    )
    config.__doc__ = help
    return config


def _check_schema(group: str, name: str, schema: type) -> None:
    """Raises ValueError for a schema whose keys a config cannot have."""
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{group}={name} cannot be typed: letters, digits and _ can")
    if not is_dataclass(schema):
        raise ValueError(f"{group}={name} needs a dataclass of its keys")
    keys = [item.name for item in fields(schema) if item.name != "name"]
    taken = [key for key in keys if group == "game" and key in names_of(TrainConfig)]
    if taken:
        raise ValueError(f"game={name} cannot have the key {taken[0]}, which a training has")
    values = default_values(schema)
    if missing := [key for key in keys if key not in values]:
        raise ValueError(f"{group}={name} needs a value for its key {missing[0]}")
    if values.get("name", name) != name:
        raise ValueError(f"{group}={name} cannot have the name {values['name']}")
    for item in keys:
        if "value" in kind_in_words(kind_of(schema, item)):
            raise ValueError(f"{group}={name} cannot have the key {item}: its type is not of YAML")
