"""Parts of one's own: the modules of plugins= and the folder of --config-dir."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import traceback
from pathlib import Path

from rlgames.config import catalogue
from rlgames.core.errors import ConfigError, nearest

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
"""What plugins= may name."""


def plugins_override(names: object) -> str:
    """Modules as they are typed; nothing for what a file holds in the place of their names."""
    words = [str(name) for name in names] if isinstance(names, list) else []
    named = words and all(MODULE.fullmatch(word) for word in words)
    return f"plugins=[{','.join(words)}]" if named else ""


def command_for_run(name: str, run: Path, modules: object, *words: str) -> str:
    """A command as it is typed for a run, with the modules that it needs."""
    return " ".join(
        filter(None, ["rlgames", name, shlex.quote(str(run)), *words, plugins_override(modules)])
    )


def load_plugins(words: list[str]) -> list[str]:
    """The words without --config-dir DIR, whose options take part from now on, as do those of the
    modules in plugins=.

    Only what the words themselves name is ever imported; names in files are text. Raises
    ConfigError for a folder or a module that is not there, and for a module that fails.
    """
    kept, coming = [], iter(words)
    for word in coming:
        flag, equals, folder = word.partition("=")
        if flag != "--config-dir":
            kept.append(word)
            continue
        folder = folder if equals else next(coming, "")
        if not os.path.isdir(folder):
            raise ConfigError(f"--config-dir {folder} is not a folder", "write --config-dir DIR")
        catalogue.FOLDERS[1:] = [Path(folder).absolute()]
    for word in [word for word in kept if word.startswith("plugins=")][-1:]:
        for name in _modules(word):
            _import(name)
    return kept


def _modules(word: str) -> list[str]:
    """The names in plugins=[...]; raises ConfigError for anything that is not a module's name."""
    plugins_override = re.fullmatch(r"plugins=\[(.*)\]", word)
    names = (
        plugins_override[1].split(",") if plugins_override and plugins_override[1].strip() else []
    )
    names = [name.strip(" '\"") for name in names]
    if plugins_override is None or not all(MODULE.fullmatch(name) for name in names):
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
            found = nearest(name, [path.stem for path in Path().glob("*.py")])
            hint = found if found.startswith("did") else "it is looked for here and in PYTHONPATH"
            raise ConfigError(f"no module is called {name!r}", hint) from None
        lines = [
            f", line {frame.lineno} of {frame.filename}"
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).stem == name.rpartition(".")[2]
        ]
        told = " ".join(str(error).split())
        raise ConfigError(
            f"plugins=[{name}] fails: {type(error).__name__}: {told}" + "".join(lines[-1:])
        ) from None
    meant = Path(here, *name.split(".")).with_suffix(".py")
    if meant.exists() and not meant.samefile(module.__file__ or "."):
        raise ConfigError(
            f"plugins=[{name}] is {module.__file__ or 'a part of Python'}, not {meant}",
            "give the file another name",
        )
