"""`rlgames runs`: prints the list of runs, and asks before anything is removed."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from typing import Any

from rlgames.cli.text_tables import Column, print_table
from rlgames.commands.configs import RunsConfig
from rlgames.commands.runs import (
    COLUMNS,
    ListedRun,
    Removal,
    RunList,
    age_in_words,
    bytes_in_words,
    list_runs,
    removals,
)
from rlgames.config.compose import load_config
from rlgames.config.schema import as_typed
from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text, printable

RANKS = {"learner": 4, "game": 3, "metric": 2, "size": 1}
"""The importance of columns, see Column; others are always shown, and those that are asked for."""

YES = ("y", "yes")


def runs_command(directories: list[str], overrides: list[str]) -> int:
    """List runs, and delete or prune them; the exit code. Raises ConfigError."""
    cfg = load_config(RunsConfig, overrides)
    listing = list_runs(directories, cfg)
    is_removing = cfg.delete or cfg.prune
    if not is_removing:
        print(json_text(listing.as_dict())) if cfg.format == "json" else print_runs(listing)
        return 0
    plan = removals(listing, cfg)
    if cfg.format != "json":
        _print_plan(listing, plan)
    is_confirmed = bool(plan) and _is_confirmed(cfg, plan)
    removed = _remove(plan) if is_confirmed else []
    if cfg.format == "json":
        print(json_text({"removed": [*map(_as_dict, removed)]}))
    elif is_confirmed:
        print(f"removed {bytes_in_words(sum(each.num_bytes for each in removed))}")
    return 3 if is_confirmed and len(removed) < len(plan) else 0


def _as_dict(removal: Removal) -> dict[str, Any]:
    run = str(removal.run.summary.path)
    return {"run": run, "what": removal.what, "bytes": removal.num_bytes}


def _is_confirmed(cfg: RunsConfig, plan: Sequence[Removal]) -> bool:
    """Whether to go on. Raises ConfigError where nobody can be asked."""
    if cfg.yes:
        return True
    if not sys.stdin.isatty() or cfg.format == "json":
        raise ConfigError("nothing was removed", "add yes=true to remove what is listed")
    total = sum(each.num_bytes for each in plan)
    return input(f"remove {bytes_in_words(total)}? [y/N] ").strip().lower() in YES


def _print_plan(listing: RunList, plan: Sequence[Removal]) -> None:
    now = datetime.datetime.now().astimezone()
    columns = [
        Column("run", [str(each.run.summary.path) for each in plan], is_text=True),
        Column("removes", [each.what for each in plan], is_text=True),
        Column("size", [bytes_in_words(each.num_bytes) for each in plan]),
        Column("age", [age_in_words(each.run.summary.start, now) for each in plan], 1),
    ]
    total = bytes_in_words(sum(each.num_bytes for each in plan))
    print_table(f"{_count(len(listing.runs))}, {total} to remove", columns, "table")
    for run in listing.runs:
        if run.is_in_progress or run.summary.damage:
            why = "it is in progress" if run.is_in_progress else "it is damaged"
            print(printable(f"left alone, because {why}: {run.summary.path}"))


def _remove(plan: Sequence[Removal]) -> list[Removal]:
    """Remove what a plan says and return what could be removed; errors are printed."""
    removed = []
    for removal in plan:
        try:
            removal.apply()
            removed.append(removal)
        except (ConfigError, OSError) as error:
            print(printable(f"rlgames: {removal.run.summary.path}: {error}"), file=sys.stderr)
    return removed


def print_runs(listing: RunList) -> None:
    """Print a line for each run."""
    columns = [
        Column(
            "age" if name == "started" else name,
            [_shown(name, run) for run in listing.runs],
            RANKS.get(name, 0) if listing.columns == [*COLUMNS] else 0,
            is_text=not all(_is_number(run.value(name)) for run in listing.runs),
        )
        for name in listing.columns
    ]
    size = bytes_in_words(sum(run.size for run in listing.runs))
    first = f", the first {len(listing.runs):,}" if len(listing.runs) < listing.num_matching else ""
    title = f"{_count(listing.num_matching)}{first}, {size}"
    print_table(title, [each for each in columns if any(each.cells)], "table")


def _count(runs: int) -> str:
    return f"{runs:,} run{'s' * (runs != 1)}"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _shown(name: str, run: ListedRun) -> str:
    value = run.value(name)
    if value is None:
        return ""
    if name == "started":
        return age_in_words(value, datetime.datetime.now().astimezone())
    if name == "size":
        return bytes_in_words(value)
    if name == "status" and value not in ("done", "damaged") and run.progress is not None:
        return f"{value} at {run.progress:.0%}"
    if isinstance(value, float) and name not in run.summary.settings:
        return f"{value:z.4f}"
    return as_typed(value)
