"""Plugins: the modules of plugins=."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

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
