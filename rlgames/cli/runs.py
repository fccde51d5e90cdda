"""`rlgames runs`: a list of runs with status, age and size; deletes and prunes them."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rlgames.cli.text_tables import Column, print_table
from rlgames.config.commands import RunsConfig
from rlgames.config.compose import load_config
from rlgames.config.schema import as_typed, changed
from rlgames.core.errors import ConfigError
from rlgames.core.text import counted, json_text, printable
from rlgames.runs import cleanup
from rlgames.runs.index import RunSummary
from rlgames.runs.summary_cache import read_summaries
from rlgames.runs.where import check_column, matching, sorted_by, values_of

COLUMNS = ("run", "game", "learner", "status", "started", "size", "metric", "value")
"""The columns that are shown by default."""

RANKS = {"learner": 4, "game": 3, "metric": 2, "size": 1}
"""The importance of columns, see Column; others are always shown, and those that are asked for."""

YES = ("y", "yes")


@dataclass(frozen=True)
class ListedRun:
    """A run with the values of its columns, by name."""

    summary: RunSummary

    @cached_property
    def size(self) -> int:
        """The bytes of all its files."""
        return cleanup.size_of(self.summary.path)

    @property
    def names(self) -> list[str]:
        return [*values_of(self.summary), *OWN]

    def value(self, name: str) -> Any:
        """What a column shows, or a sort uses; None: unknown."""
        return OWN[name](self) if name in OWN else values_of(self.summary).get(name)

    @property
    def is_in_progress(self) -> bool:
        return self.summary.status == "running"


def _headline(run: ListedRun) -> float | None:
    known = run.summary.results if run.summary.status == "done" else run.summary.so_far
    return known.get(run.summary.best_by)


OWN: dict[str, Callable[[ListedRun], Any]] = {
    "run": lambda run: str(run.summary.path),
    "status": lambda run: run.summary.status,
    "size": lambda run: run.size,
    "metric": lambda run: run.summary.best_by or None,
    "value": _headline,
}
"""What columns may name besides keys of configs, metrics and the fields of a condition."""


@dataclass(frozen=True)
class Removal:
    """What would be removed of a run: a name for it, its bytes, and the call that does it."""

    run: ListedRun
    what: str
    num_bytes: int
    apply: Callable[[], None]


@dataclass(frozen=True)
class RunList:
    """The runs that match, in order, and the names of the columns to show."""

    runs: list[ListedRun]
    columns: list[str]
    num_matching: int

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        names = dict.fromkeys((*COLUMNS, "played", "seconds", *self.columns))
        return {
            "runs": [{name: run.value(name) for name in names} for run in self.runs],
            "num_matching": self.num_matching,
        }


def list_runs(directories: Sequence[str], cfg: RunsConfig) -> RunList:
    """The runs in some directories, the newest first. Raises ConfigError."""
    summaries = read_summaries([*directories] or ["outputs"], {})
    runs = [ListedRun(run) for run in matching(summaries, cfg.where)]
    known = [*dict.fromkeys([*COLUMNS, *(name for run in runs for name in run.names)])]
    for name in cfg.columns:
        check_column("columns", name, ["all", *known])
    name = cfg.sort.removeprefix("-")
    check_column("sort", name, known)
    shown = sorted_by(runs, lambda run: run.value(name), cfg.sort.startswith("-"))[: cfg.top]
    columns = list(cfg.columns)
    if not columns or "all" in columns:
        names = known if columns else COLUMNS
        columns = [name for name in names if any(run.value(name) is not None for run in shown)]
    return RunList(shown, columns, len(runs))


def removals(runs: RunList, cfg: RunsConfig) -> list[Removal]:
    """What delete= or prune= would remove; never anything of a run in progress or damaged."""
    if cfg.delete and cfg.prune:
        raise ConfigError("delete=true and prune=true contradict each other", "use one of them")
    plan = []
    for run in runs.runs:
        if run.is_in_progress or run.summary.damage:
            continue
        if cfg.delete:
            path = run.summary.path
            plan.append(Removal(run, "run", run.size, partial(cleanup.delete_run, path)))
        else:
            plan += _prunings(run, cfg.keep)
    return plan


def _prunings(run: ListedRun, keep: Sequence[str]) -> list[Removal]:
    """The checkpoints beyond those to keep, and the resume state of a run that is done."""
    path, plan = run.summary.path, []
    if extra := cleanup.checkpoints_beyond(path, [*keep, "latest"]):
        size = sum(each.stat().st_size for each in extra)
        apply = partial(cleanup.remove_checkpoints, path, extra)
        plan.append(Removal(run, f"{len(extra)} checkpoints", size, apply))
    size = cleanup.resume_state_bytes(path) if run.summary.status == "done" else 0
    if size:
        plan.append(Removal(run, "resume state", size, partial(cleanup.drop_resume_state, path)))
    return plan


def age_in_words(started: str | None, now: datetime.datetime) -> str:
    """The time since the start of a run: 3d, 2h, 5min, 10s."""
    if started is None:
        return ""
    seconds = (now - datetime.datetime.fromisoformat(started).astimezone()).total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def bytes_in_words(num_bytes: int) -> str:
    """Bytes with three digits: 2.91 GiB."""
    size, units = float(num_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}" if size < 999.5 else f"{size:.0f} {units[0]}"


def runs_command(directories: list[str], overrides: list[str]) -> int:
    """List runs, and delete or prune them; the exit code. Raises ConfigError."""
    cfg = load_config(RunsConfig, overrides)
    if changed(cfg, "keep") and not cfg.prune:
        raise ConfigError("keep= is for prune=true", "add prune=true, or omit keep=")
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
        entries = [
            {"run": str(each.run.summary.path), "what": each.what, "bytes": each.num_bytes}
            for each in removed
        ]
        print(json_text({"removed": entries}))
    elif is_confirmed:
        print(f"removed {bytes_in_words(sum(each.num_bytes for each in removed))}")
    return 3 if is_confirmed and len(removed) < len(plan) else 0


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
    print_table(f"{counted(len(listing.runs), 'run')}, {total} to remove", columns, "table")
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
            RANKS.get(name, 0) if {*listing.columns} <= {*COLUMNS} else 0,
            is_text=not all(_is_number(run.value(name)) for run in listing.runs),
        )
        for name in listing.columns
    ]
    size = bytes_in_words(sum(run.size for run in listing.runs))
    first = f", the first {len(listing.runs):,}" if len(listing.runs) < listing.num_matching else ""
    title = f"{counted(listing.num_matching, 'run')}{first}, {size}"
    print_table(title, columns, "table")


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
    if name == "status":
        return run.summary.status_in_words
    if isinstance(value, float) and name not in run.summary.settings:
        return f"{value:z.4f}"
    return as_typed(value)
