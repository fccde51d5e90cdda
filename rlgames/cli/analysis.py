"""The tables of `rlgames analyze`."""

from __future__ import annotations

from typing import Any

from rlgames.core.text import counted, number_text, printable
from rlgames.terminal.tables import Column, print_table


def print_analysis(report: dict[str, Any]) -> None:
    """The losses by phase and by turn, what a search changes, and the worst positions."""
    player = report["player"] + (f"+{report['search']['name']}" if report["search"] else "")
    games = "" if report["games"] is None else f", {counted(report['games'], 'game')}"
    opponent = f" against {report['opponent']}" if report["opponent"] else ""
    exact = " (exact)" if report["exact"] else ""
    unit = report["unit"]
    _print_losses(f"{player}{opponent}{games}{exact}", "", list(report["losses"].items()), unit)
    ends = [(each["first"], each["last"]) for each in report["turns"]]
    names = [f"{first}" if first == last else f"{first}-{last}" for first, last in ends]
    if len(names) > 1:
        print()
        _print_losses("by turn", "turn", list(zip(names, report["turns"], strict=True)), unit)
    if report["per_game"] is not None:
        print(f"\nlost per game against perfect play: {report['per_game']:.4f} {unit}")
    if (changes := report["search_losses"]) is not None:
        before = changes["without"]["all"]
        print(
            f"\nwithout the search {_percent(before['rate'])} of these moves lose value; "
            f"it repairs {changes['repaired']:,} of {changes['mistakes']:,} mistakes and "
            f"spoils {changes['spoiled']:,} other moves"
        )
    for place, worst in enumerate(report["worst"], 1):
        times = f", met {worst['times']:,} times" if worst["times"] > 1 else ""
        best = ", ".join(worst["best"][:4]) + ", ..." * (len(worst["best"]) > 4)
        move = f"{place}. turn {worst['turn']}{times}: {worst['move']}"
        print("\n" + printable(f"{move} loses {number_text(worst['loss'])}; best: {best}"))
        print(printable(f"   {worst['command']}"))


def _print_losses(
    title: str, heading: str, rows: list[tuple[str, dict[str, Any]]], unit: str
) -> None:
    columns = [
        Column(heading, [name for name, _ in rows], is_text=not heading),
        Column("solved", [_solved(each) for _, each in rows], 2),
        Column("could\nlose", [f"{each['allow']:,}" for _, each in rows], 3),
        Column("lose\nvalue", [_percent(each["rate"]) for _, each in rows]),
        Column("95%", [_interval(each["ci95"], 100, ".1f") for _, each in rows], 1),
        Column(f"mean loss\n({unit})", [_number(each["loss"]["mean"]) for _, each in rows]),
        Column("95%", [_interval(each["loss"]["ci95"], 1, ".4f") for _, each in rows], 1),
    ]
    print_table(title, [each for each in columns if any(each.cells)], "table")


def _solved(each: dict[str, Any]) -> str:
    """How many positions have values, of how many."""
    known, met = each["positions"], each["met"]
    return f"{known:,}" if known == met else f"{known:,} of {met:,}"


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(ends: list[float] | None, factor: float, form: str) -> str:
    return "" if ends is None else " to ".join(f"{factor * end:{form}}" for end in ends)
