"""The words of a command line: runs, which come first, and overrides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlgames.cli.table import Command, last_value
from rlgames.core.errors import ConfigError
from rlgames.runs.names import LATEST_RUN, find_run, run_path

NEEDS_RUNS = "chooses among runs, and none of these words names several"


def arguments(command: Command, words: list[str]) -> list[Any]:
    """What the function of a command is called with: its runs or names, if it takes any, and the
    words.

    Raises ConfigError for runs that the command does not take or that do not exist.
    """
    if command.runs == "names":
        names = [word for word in words if "=" not in word]
        return [names, [word for word in words if word not in names]]
    if command.runs == "many":
        names = [word for word in words if _names_run(word)]
        overrides = [word for word in words if word not in names]
        where = last_value("where", words)
        if where and command.takes_players:
            names = [each for name in names for each in (_matching(name, where) or [name])]
            if all(name in words for name in names):
                raise ConfigError(f"where={where} {NEEDS_RUNS}", f"use {LATEST_RUN} or a folder")
        return [[_run_name(name) for name in names], overrides]
    first = words[0] if words else ""
    has_run = bool(first) and first[0] != "-" and _names_run(first)
    if command.runs == "none":
        return [words]
    _check_run_is_first(command, words, has_run)
    if where := last_value("where", words):
        chosen = _matching(first, where) if has_run else []
        if not chosen:
            raise ConfigError(f"where={where} {NEEDS_RUNS}", f"use {LATEST_RUN} or a folder")
        return [Path(chosen[0]), words[1:]]
    path = find_run(first, is_player=False) if has_run else None
    if command.runs == "required" and not has_run:
        raise ConfigError(f"{command.name} needs a run", f"as in: {command.example}")
    return [path, words[has_run:]]


def _names_run(word: str) -> bool:
    """Whether a word is a run and no override; the runs of sweeps have = in their names."""
    key = word.partition("=")[0]
    is_path = "/" in key and not key.startswith("hydra/")
    return key == word or is_path or os.path.exists(word)


def _matching(name: str, where: str) -> list[str]:
    """The runs in a folder, or in outputs/ for `latest`, for which conditions hold, the newest
    first; none for the name of anything else. Raises ConfigError if no run matches."""
    from rlgames.runs.index import read_summaries
    from rlgames.runs.where import matching, sorted_by

    top = Path("outputs" if name == LATEST_RUN and not os.path.exists(name) else name)
    if not top.is_dir() or (top / "run.json").exists():
        return []
    runs = matching(read_summaries([str(top)], {}), where)
    runs = sorted_by(runs, lambda run: run.start, is_descending=True)
    return [str(run.path) for run in runs]


def _run_name(word: str) -> str:
    """The path of a run, or the name of a player; of an arena with a search behind a plus."""
    if os.path.exists(word):
        return str(run_path(word))
    name, plus, search = word.partition("+")
    return f"{run_path(name)}{plus}{search}"


def _check_run_is_first(command: Command, words: list[str], has_run: bool) -> None:
    """Raises ConfigError for a run behind an override."""
    later = [word for word in words[1:] if "=" not in word and word[:1] not in "-+~"]
    later = [word for word in later if os.path.exists(word) or word == LATEST_RUN]
    if not later:
        return
    if has_run:
        raise ConfigError(f"{command.name} takes one run, and {later[0]} is another", "omit it")
    rest = " ".join(word for word in words if word != later[0])
    raise ConfigError(
        f"the run comes first, before {words[0]}",
        f"use rlgames {command.name} {later[0]} {rest}",
    )
