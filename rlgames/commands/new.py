"""`rlgames new game NAME`: a plugin with a small game, and its conformance test."""

from __future__ import annotations

import keyword
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlgames.config.commands import FormatConfig
from rlgames.config.compose import load_config
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError, nearest

TEMPLATES = Path(__file__).parent / "templates"
"""A file for each kind, of the game of its first line, and a test."""

KINDS = ("game",)

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


def new_command(names: list[str], words: list[str]) -> dict[str, Any]:
    """Write NAME.py and test_NAME.py to the current folder.

    {written: [file], commands: [command]}. Existing files are not changed: raises ConfigError.
    """
    load_config(FormatConfig, words)
    if len(names) != 2 or names[0] not in KINDS:
        hint = "as in: rlgames new game mygame"
        if names and names[0] not in KINDS:
            hint = f"{nearest(names[0], list(KINDS))}; {hint}"
        raise ConfigError("new needs what to write, and its name", hint)
    name = names[1]
    texts = {
        Path(f"{name}.py"): (TEMPLATES / "game.txt").read_text(encoding="utf-8"),
        Path(f"test_{name}.py"): (TEMPLATES / "test_game.txt").read_text(encoding="utf-8"),
    }
    for path in texts:
        if path.exists() or path.is_symlink():
            raise ConfigError(f"{path} exists, and is not overwritten", "use another name")
    _check_name(name)
    try:
        for path, text in texts.items():
            with open(path, "x", encoding="utf-8") as file:
                file.write(_renamed(text, name))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    plugin = shlex.quote(plugins_override([name]))
    return {
        "written": [str(path) for path in texts],
        "commands": [
            f"{Path(sys.executable).name} -m pytest test_{name}.py",
            f"rlgames games {name} {plugin}",
            f"rlgames train {plugin} game={name} reward=outcome policy=table learner=td "
            f"sampling=epsilon_greedy lr=0.2 games=5000 batch=64 out={name}",
            f"rlgames eval {name} {plugin} opponent=exact",
            f"rlgames play {name} {plugin}",
        ],
    }


def _check_name(name: str) -> None:
    """Raises ConfigError unless a module and a game can have this name."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} is not a name for a game", "use a lowercase word, such as mygame"
        )
    if name in REGISTRY["game"]:
        raise ConfigError(f"there is a game called {name}", "use another name")
    if find_spec(name) is not None:
        raise ConfigError(f"there is a module called {name}", "use another name")


def _renamed(text: str, name: str) -> str:
    """The template, whose game is called Col, for another name."""
    class_name = "".join(part.capitalize() for part in name.split("_"))
    text = re.sub(r"\bCol(?=State\b|Config\b|\b)", class_name, text)
    return re.sub(r"\bcol\b", name, text)
