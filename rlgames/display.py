"""What a person sees: the progress of a run, and its closing table. The only user of rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rlgames.training import Progress as Report
from rlgames.training import Trained


@contextmanager
def training(total: int) -> Iterator[Report]:
    """A live bar on a terminal; elsewhere a plain line at every tenth of the games."""
    latest: dict[str, float] = {}

    def line() -> str:
        parts = [f"{latest.get('time/games_per_s', 0):,.0f} games/s"]
        if "train/turns" in latest:
            parts.append(f"{latest['train/turns']:.2f} turns")
        if "eval/turns" in latest:
            parts.append(f"greedy {latest['eval/turns']:.3f}")
        return ", ".join(parts)

    if not sys.stdout.isatty():
        told = 0

        def plain(games: int, metrics: dict[str, float]) -> None:
            nonlocal told
            latest.update(metrics)
            if "eval/turns" in metrics and games * 10 // total > told:
                told = games * 10 // total
                print(f"{games:>10,} of {total:,} games: {line()}", flush=True)

        yield plain
        return
    columns = (
        TextColumn("{task.percentage:>3.0f}%"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("starting", total=total)

        def live(games: int, metrics: dict[str, float]) -> None:
            latest.update(metrics)
            bar.update(task, completed=games, description=line())

        yield live


def closing(trained: Trained, random_turns: float | None) -> None:
    """The table at the end of a run."""
    found = trained.evaluation
    rows: list[tuple[str, str]] = []
    if random_turns is not None:
        rows.append(("random play", f"{random_turns:.4f}"))
    rows.append(("trained, greedy", _interval(found.mean, found.low, found.high, found.exact)))
    rows.append(("exact optimum", _optimal(trained.optimal)))
    what = "every layout" if found.exact else f"{found.games} games"
    _table(f"turns a game, over {what}", rows)
    print(f"{trained.seconds:.1f} s, in {trained.directory}")


def evaluation(report: dict[str, Any]) -> None:
    """The table of `rlgames eval`."""
    moves, reference = report["moves"], report["reference"]
    rows = [
        (
            report["player"],
            _interval(moves["mean"], moves["ci95"][0], moves["ci95"][1], report["exact"]),
        )
    ]
    rows.append(("median, least, most", f"{moves['median']:g}, {moves['min']}, {moves['max']}"))
    if reference["random"] is not None:
        rows.append(("random play", f"{reference['random']:.4f}"))
    rows.append(("exact optimum", _optimal(reference["optimal"])))
    if reference["gap_to_optimal"] is not None:
        rows.append(("gap to the optimum", f"{reference['gap_to_optimal']:.2%}"))
    what = "every layout" if report["exact"] else f"{report['games']} games"
    _table(f"turns a game, over {what}", rows)


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(title=title, show_header=False, min_width=len(title))
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(escape(name), value)
    Console().print(table)


def _interval(mean: float, low: float, high: float, exact: bool) -> str:
    return f"{mean:.4f}" if exact else f"{mean:.4f} ± {(high - low) / 2:.4f}"


def _optimal(value: float | None) -> str:
    return "not computed" if value is None else f"{value:.4f}"
