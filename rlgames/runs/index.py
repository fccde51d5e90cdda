"""Finds and summarizes runs by their files, whatever these contain; imports nothing heavy."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, nearest_path
from rlgames.core.metrics import direction, goal_of
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.files import MetricsFollower, flatten, last_metrics, read_config, read_run
from rlgames.runs.summary import RunSummary


def find_runs(directories: list[str]) -> list[Path]:
    """The runs in each of the directories in turn, sorted by name; each run once.

    Raises ConfigError for a directory that does not exist or contains no run.
    """
    runs: dict[Path, Path] = {}
    for name in directories:
        top = Path(name)
        if not top.exists():
            raise ConfigError(
                f"there is no directory {name}", nearest_path(name, is_directory=True)
            )
        inside = list(_runs_inside(top))
        if not inside:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        for path in inside:
            runs.setdefault(path.resolve(), path)
    return list(runs.values())


def newest_run(top: Path) -> Path | None:
    """The run inside a directory with the newest checkpoint, None if there is none."""
    runs = [run for run in _runs_inside(top) if any((run / "checkpoints").glob("*.safetensors"))]
    return max(runs, key=lambda run: (run / "checkpoints").stat().st_mtime, default=None)


def _runs_inside(top: Path) -> Iterator[Path]:
    """Sorted by name, with numbers by size. Hidden directories and links are skipped, and so is
    what lies inside a run. A directory without permission counts as an unreadable run."""
    stack = [top]
    while stack:
        directory = stack.pop()
        try:
            with os.scandir(directory) as scan:
                entries = list(scan)
        except NotADirectoryError:
            continue
        except OSError:
            yield directory
            continue
        if any(entry.name == "run.json" for entry in entries):
            yield directory
            continue
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders = [name for name in folders if not name.startswith(".")]
        stack += [directory / name for name in sorted(folders, key=_number_first, reverse=True)]


def _number_first(name: str) -> tuple[int, str]:
    """A sort key by which 10_lr=1 comes after 9_lr=2."""
    match = re.match(r"[0-9]{1,9}", name)
    return (int(match[0]) if match else -1), name


def read_summary(path: Path) -> RunSummary:
    """Summarize a run; what its files lack or get wrong is left out."""
    run, config = read_run(path), _as_json(read_config(path))
    status = run.get("status")
    status = status if isinstance(status, str) else "unknown"
    is_done = status == "done"
    results, final_results = (
        _numbers(run.get(name)) if is_done else {} for name in ("results", "final_results")
    )
    best_games = finite_or_none(run.get("best_games")) if is_done else None
    seconds, games = finite_or_none(run.get("seconds")), finite_or_none(run.get("games"))
    if status != "done" or seconds is None:
        latest = last_metrics(path)
        if seconds is None:
            seconds = finite_or_none(latest.get("time/seconds"))
        if games is None or status == "running":
            games = finite_or_none(latest.get("games"))
    if status == "running" and is_process_gone(run):
        status = "died"
    figure, best_by = run.get("figure"), run.get("best_by")
    best_so_far, latest = ({}, {}) if is_done else _evaluations(path, figure, best_by)
    return RunSummary(
        path=path,
        status=status,
        config=config,
        settings=flatten(config),
        figure=figure if isinstance(figure, str) else None,
        best_by=best_by if isinstance(best_by, str) else None,
        results=results,
        final_results=final_results,
        best_games=None if best_games is None else int(best_games),
        games=int(games or 0),
        seconds=seconds,
        best_so_far=best_so_far,
        latest=latest,
    )


def _evaluations(
    path: Path, figure: object, best_by: object
) -> tuple[dict[str, float], dict[str, float]]:
    """The best evaluation of a run that is not done, by best_by, and the last one."""
    sign = direction(goal_of(figure), best_by) if isinstance(best_by, str) else 0
    best: dict[str, float] = {}
    latest: dict[str, float] = {}
    for line in MetricsFollower(path).new_lines()[1]:
        values = {name[5:]: value for name, value in line.items() if name.startswith("eval/")}
        metrics = _numbers(values)
        latest = metrics or latest
        if best_by in metrics and sign * (metrics[best_by] - best.get(best_by, -sign * inf)) > 0:
            best = metrics
    return best, latest


def _numbers(values: Any) -> dict[str, float]:
    """The finite numbers of a dict; empty for anything else."""
    if not isinstance(values, dict):
        return {}
    numbers = {name: finite_or_none(value) for name, value in values.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def is_process_gone(run: dict[str, Any]) -> bool:
    """Whether the process of a running run has certainly died: it may have been killed."""
    pid = run.get("pid")
    if run.get("host") != platform.node() or type(pid) is not int or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _as_json(value: Any) -> Any:
    """A value of YAML as one that JSON has."""
    if isinstance(value, dict):
        return {str(name): _as_json(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # Python refuses to write huge integers as decimals
    is_json = value is None or isinstance(value, bool | int | float | str)
    return value if is_json else str(value)
