"""The words of a command line: runs, which come first, and overrides, quoted for Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlgames.config.catalogue import quoted
from rlgames.config.command import Command
from rlgames.config.command_schemas import TEXT_KEYS
from rlgames.config.registry import PLAYER_KEYS
from rlgames.core.errors import ConfigError, nearest_directory
from rlgames.runs.hub import PREFIX, download
from rlgames.runs.shipped import shipped_agent

LATEST_RUN = "latest"
"""Names the newest run in outputs/, where a run can be named."""


def arguments(command: Command, words: list[str]) -> list[Any]:
    """What the function of a command is called with: its runs, if it takes any, and the words.

    Raises ConfigError for runs that the command does not take or that do not exist.
    """
    if command.runs == "many":
        names = [word for word in words if is_path(word) or "=" not in word]
        overrides = [quote_text(word) for word in words if word not in names]
        return [[_run_name(name) for name in names], overrides]
    first = words[0] if words else ""
    has_run = bool(first) and first[0] != "-" and (is_path(first) or "=" not in first)
    if command.runs == "none":
        if has_run and is_path(first):
            raise ConfigError(f"{command.name} takes no run, and {first} is one", "omit it")
        return [[quote_text(word) for word in words]]
    _check_run_is_first(command, words, has_run)
    path = Path(_run_name(first)) if has_run else None
    if path is not None and not is_path(str(path)):
        raise ConfigError(f"there is no run at {first}", nearest_directory(first))
    if command.runs == "required" and not has_run:
        raise ConfigError(f"{command.name} needs a run", f"as in: {command.example}")
    return [path, [quote_text(word) for word in words[has_run:]]]


def _check_run_is_first(command: Command, words: list[str], has_run: bool) -> None:
    """Raises ConfigError for a run behind an override."""
    later = [word for word in words[1:] if "=" not in word and word[:1] not in "-+~"]
    later = [word for word in later if is_path(word) or _stands_for_run(word)]
    if not later:
        return
    if has_run:
        raise ConfigError(f"{command.name} takes one run, and {later[0]} is another", "omit it")
    rest = " ".join(word for word in words if word != later[0])
    raise ConfigError(
        f"the run comes first, before {words[0]}",
        f"write rlgames {command.name} {later[0]} {rest}",
    )


def _stands_for_run(word: str) -> bool:
    return word == LATEST_RUN or word.startswith(PREFIX)


def _run_name(word: str) -> str:
    """The path that names a run: the newest one for `latest`, RUN for RUN/checkpoints, the folder
    of the download for hf:user/name, and the agent that comes with rlgames for the name of a game.

    Raises ConfigError where there is no newest run, or the hub has no such agent.
    """
    if word == LATEST_RUN and not is_path(word):
        from rlgames.runs.index import newest_run

        run = newest_run(Path("outputs"))
        if run is None:
            raise ConfigError("there is no latest run in outputs/", "name the directory of a run")
        return str(run)
    name, plus, search = word.partition("+")  # of a player of an arena
    if word.startswith(PREFIX) and not is_path(word):
        return f"{download(name)}{plus}{search}"
    agent = shipped_agent(name)
    if agent is not None and not is_path(name):
        return f"{agent}{plus}{search}"
    path = Path(word)
    is_folder = path.name == "checkpoints" and is_path(str(path.parent / "run.json"))
    return str(path.parent) if is_folder else word


def is_path(word: str) -> bool:
    """Whether a word is the path of something that exists."""
    try:
        return Path(word).exists()
    except OSError:  # too long for a path, for example
        return False


def quote_text(word: str) -> str:
    """An override as Hydra reads it: a text is quoted, whatever characters are in it."""
    name, equals, value = word.partition("=")
    value = value.strip() if name == "state" else value
    if equals and value and (name in PLAYER_KEYS or name == "init_from"):
        value = _run_name(value)
        word = f"{name}={value}"
    if name not in TEXT_KEYS or not equals or value[:1] in ("'", '"') or value == "null":
        return word
    return f"{name}={quoted(value)}"
