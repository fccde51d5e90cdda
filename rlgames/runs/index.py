"""Runs in directories, from their files alone, whatever these hold; nothing heavy is imported."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, nearest_directory
from rlgames.runs.files import finite_or_none, flatten, last_metrics, read_config, read_run
from rlgames.runs.summary import RunSummary


def find_runs(where: list[str]) -> list[Path]:
    """The runs in directories, each directory's own first, by name; each run once.

    Raises ConfigError for a directory that is not there or has no run in it.
    """
    found: dict[Path, Path] = {}
    for name in where:
        top = Path(name)
        if not top.exists():
            raise ConfigError(f"there is no directory {name}", nearest_directory(name))
        own = list(_inside(top))
        if not own:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        found |= {path.resolve(): path for path in own if path.resolve() not in found}
    return list(found.values())


def newest_run(top: Path) -> Path | None:
    """The run in a directory that was written to last, of those that have a checkpoint."""
    runs = [run for run in _inside(top) if any((run / "checkpoints").glob("*.safetensors"))]
    return max(runs, key=lambda run: (run / "checkpoints").stat().st_mtime, default=None)


def _inside(top: Path) -> Iterator[Path]:
    """By name, numbers by size; hidden directories and links are left out, and runs hold no runs.

    What may not be looked into is told as a run that cannot be read.
    """
    waiting = [top]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                inside = list(entries)
        except NotADirectoryError:
            continue
        except OSError:
            yield here
            continue
        if any(entry.name == "run.json" for entry in inside):
            yield here
            continue
        folders = [entry.name for entry in inside if entry.is_dir(follow_symlinks=False)]
        folders = [name for name in folders if not name.startswith(".")]
        waiting += [here / name for name in sorted(folders, key=_by_number, reverse=True)]


def _by_number(name: str) -> tuple[int, str]:
    """Job 10 comes after job 9, whatever stands behind the number."""
    finite_or_none = re.match(r"[0-9]{1,9}", name)
    return (int(finite_or_none[0]) if finite_or_none else -1), name


def read_summary(path: Path) -> RunSummary:
    """Whatever a run's files hold."""
    facts, settings = read_run(path), read_config(path)
    status = facts.get("status")
    status = status if isinstance(status, str) and facts else "unknown"
    results = facts.get("results")
    results = results if isinstance(results, dict) and status == "done" else {}
    figures = {name: finite_or_none(value) for name, value in results.items()}
    seconds, games = finite_or_none(facts.get("seconds")), finite_or_none(facts.get("games"))
    if status != "done" or seconds is None:
        last = last_metrics(path)
        seconds = finite_or_none(last.get("time/seconds")) if seconds is None else seconds
        games = finite_or_none(last.get("games")) if status == "running" or games is None else games
    if status == "running" and _has_ended(facts):
        status = "died"
    figure, best_by = facts.get("figure"), facts.get("best_by")
    own = _plain(settings)
    return RunSummary(
        path=path,
        status=status,
        config=own,
        settings=flatten(own),
        figure=figure if isinstance(figure, str) else None,
        best_by=best_by if isinstance(best_by, str) else None,
        results={name: value for name, value in figures.items() if value is not None},
        games=int(games or 0),
        seconds=seconds,
    )


def _has_ended(facts: dict[str, Any]) -> bool:
    """Whether a run's process is known to be gone, without a word: killed, say."""
    pid = facts.get("pid")
    if facts.get("host") != platform.node() or type(pid) is not int or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _plain(value: Any) -> Any:
    """A value of YAML as JSON can have it."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # Python refuses to write the longest ones as decimals
    known = value is None or isinstance(value, bool | int | float | str)
    return value if known else str(value)
