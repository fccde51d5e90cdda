"""Positions on a terminal: the games of `rlgames watch` and the position of `rlgames show`."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live

from rlgames.commands.show import ShownPosition, exact_text
from rlgames.commands.watch import Replay
from rlgames.core.text import number_text, printable
from rlgames.terminal.boards import format_parts, stack_parts
from rlgames.terminal.tables import Column, print_table

MAX_LISTED_MOVES = 10
"""Moves of a position that are listed, the most likely first."""

ROUNDING_ERROR = 1e-9
"""Exact values that differ by less are equal."""

COLUMNS = {"probability": "probability", "score": "value", "exact": "exact", "plies": "plies"}
"""The fields of a move, with the headings of their columns."""


def print_games(replay: Replay) -> None:
    """Games move by move: on a terminal each board replaces the one before after the delay;
    elsewhere, and without a delay, one below the other."""
    console = Console()
    for game in replay.games:
        if not sys.stdout.isatty() or console.is_dumb_terminal or not replay.delay:
            for frame in game:
                print(format_parts(*frame.parts), end="\n\n")
            continue
        with Live(console=console, auto_refresh=False) as live:
            for number, frame in enumerate(game):
                time.sleep(replay.delay if number else 0)
                live.update(stack_parts(*frame.parts), refresh=True)
    if replay.picture is not None:
        print(f"picture: {printable(replay.picture)}")


def print_position(position: ShownPosition) -> None:
    """The board of `rlgames show`, its value and its moves."""
    report = position.fields
    if position.picture is not None:
        print(f"picture: {printable(position.picture)}")
    print(format_parts(position.board))
    if report["over"] is not None:
        print(report["over"])
        return
    if report["value"] is not None:
        value = number_text(round(report["value"], 6) + 0.0)
        print(printable(f"{report['player']} expects a return of {value}"))
    if report["exact"] is not None:
        _print_best_moves(report)
    elif position.solve_seconds:
        print(f"exact: not found within {position.solve_seconds:g} s (solve_seconds=)")
    columns = [
        name for name in COLUMNS if any(action[name] is not None for action in report["actions"])
    ]
    if not columns:
        return
    listed = report["actions"][:MAX_LISTED_MOVES]
    table = [Column("move", [action["action"] for action in listed], is_text=True)]
    for name in columns:
        cells = [_cell(name, action[name], report) for action in listed]
        table.append(Column(COLUMNS[name], cells))
    print()
    print_table("moves", table, "table")
    hidden = len(report["actions"]) - MAX_LISTED_MOVES
    if hidden > 0:
        print(f"and {hidden} more; format=json lists all")


def _print_best_moves(report: dict[str, Any]) -> None:
    """The exact value of a position, and the moves that reach it."""
    best = [
        action["action"]
        for action in report["actions"]
        if _is_equal(action["exact"], report["exact"])
    ]
    more = f" and {len(best) - MAX_LISTED_MOVES} more" if len(best) > MAX_LISTED_MOVES else ""
    value = exact_text(report["exact"], report["unit"])
    print(f"exact: {value}, by {', '.join(best[:MAX_LISTED_MOVES])}{more}")


def _cell(name: str, value: float | None, report: dict[str, Any]) -> str:
    if value is None:
        return "-"
    if name == "probability":
        return f"{value:.1%}"
    if name == "score":
        return f"{round(value, 4) + 0.0:.4f}"  # not -0.0000
    if name == "plies":
        return f"{value:.0f}"
    star = " *" if _is_equal(value, report["exact"]) else "  "
    return exact_text(value, report["unit"]) + star


def _is_equal(value: float | None, best: float | None) -> bool:
    """Whether two exact values are equal except for rounding."""
    return value is not None and best is not None and abs(value - best) < ROUNDING_ERROR
