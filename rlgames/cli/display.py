"""The tables of trainings, evaluations and arenas."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlgames.commands.evaluate import result_fields
from rlgames.core.text import json_text, printable
from rlgames.training.run import TrainingResult

COMMON_TILE_RATE = 0.995
"""Tiles that more games reach are not listed."""

Rows = list[tuple[str, str]]


def print_fields(result: dict[str, Any]) -> None:
    """The fields of a result, a line each: for a command without a printer of its own."""
    for name, value in result.items():
        print(printable(f"{name}: {value if isinstance(value, str) else json_text(value)}"))


def print_result(result: TrainingResult) -> None:
    """The table at the end of a training."""
    evaluation, game = result.evaluation, result.game
    games = "all layouts" if evaluation.is_exact else f"{evaluation.games:,} games"
    fields = result_fields(game, evaluation)
    if game.spec.goal == "outcome":
        rows = _seat_rows(fields)
        rows.append(("exploitability", _number(result.exploitability)))
        _print_table(f"trained, greedy, against {result.opponent}, {games}", rows)
    else:
        estimate = evaluation.turns if game.spec.goal == "turns" else evaluation.score
        value = _interval(estimate.mean, [estimate.low, estimate.high], evaluation.is_exact)
        rows = _reference_rows(result.random, "trained, greedy", value, result.optimal)
        if result.held_out is not None:
            held_out, exact = result.held_out.turns, result.held_out.is_exact
            value = _interval(held_out.mean, [held_out.low, held_out.high], exact)
            rows.append(("trained, held-out layouts", value))
            games = (
                "all training layouts" if evaluation.is_exact else f"{games} on training layouts"
            )
        rows += _reach_rows(fields.get("reach", {}))
        _print_table(f"{game.spec.goal} per game, {games}", rows)
    print(printable(f"{result.seconds:.1f} s, in {result.directory}"))


def print_evaluation(report: dict[str, Any]) -> None:
    """The table of `rlgames eval`."""
    games = "all layouts" if report["exact"] else f"{report['games']:,} games"
    if "seats" in report:
        player = report["player"] + _search_suffix(report["search"])
        opponent = report["opponent"] + _search_suffix(report["opponent_search"])
        _print_table(f"{player} against {opponent}, {games}", _outcome_rows(report))
    else:
        goal = "score" if "score" in report else "turns"
        search = _search_suffix(report["search"])
        _print_table(f"{goal} per game{search}, {games}", _figure_rows(report, goal))
    print(f"{report['moves_per_s']:,.0f} moves/s, {report['seconds']:.1f} s of play")


def _outcome_rows(report: dict[str, Any]) -> Rows:
    """The rows of an evaluation in a game with two seats."""
    rows = _seat_rows(report)
    turns = report["moves"]
    rows.append(("turns per game", _interval(turns["mean"], turns["ci95"], report["exact"])))
    rows.append(("exploitability", _number(report["exploitability"])))
    if report["exact_seats"]:
        rows.append(("computed exactly", "won / drawn / lost"))
        for name, seat in zip(("first seat", "second seat"), report["exact_seats"], strict=True):
            rates = [seat[outcome] for outcome in ("win", "draw", "loss")]
            rows.append((name, " / ".join(f"{rate:.2%}" for rate in rates)))
    if "proven_moves" in report:
        rows.append(("moves proven optimal", f"{report['proven_moves']:.1%}"))
    return rows


def _figure_rows(report: dict[str, Any], goal: str) -> Rows:
    """The rows of an evaluation in a game with one seat; goal: turns or score."""
    figure, reference = report["score" if goal == "score" else "moves"], report["reference"]
    value = _interval(figure["mean"], figure["ci95"], report["exact"])
    rows = _reference_rows(reference["random"], report["player"], value, reference["optimal"])
    spread = f"{figure['median']:g}, {figure['min']:g}, {figure['max']:g}"
    rows.append(("median, min, max", spread))
    for field, name in (("trained_on", "training layouts"), ("held_out", "held-out layouts")):
        if field in report:
            part = report[field]
            rows.append((name, _interval(part["mean"], part["ci95"], part["exact"])))
    if reference["gap_to_optimal"] is not None:
        rows.append(("gap to the optimum", f"{reference['gap_to_optimal']:.2%}"))
    return rows + _reach_rows(report.get("reach", {}))


def _search_suffix(search: dict[str, Any] | None) -> str:
    if search is None:
        return ""
    size = f" ({search['simulations']:,} simulations)" if "simulations" in search else ""
    return f" with {search['name']}{size}"


def print_arena(report: dict[str, Any]) -> None:
    """The cross table of `rlgames arena`, the strongest player first."""
    players = sorted(enumerate(report["players"]), key=lambda numbered: -float(numbered[1]["elo"]))
    table = Table(title=f"points of row against column, {report['games']:,} games per pair")
    table.add_column("", overflow="fold")
    table.add_column("Elo, 95 %", justify="right", overflow="fold")
    for rank in range(len(players)):
        table.add_column(str(rank + 1), justify="right", overflow="fold")
    for rank, (_, player) in enumerate(players):
        low, high = player["ci95"]
        points = [player["points"][number] for number, _ in players]
        cells = ["-" if share is None else f"{share:.1%}" for share in points]
        elo = f"{player['elo']:+.0f} ({low:+.0f} to {high:+.0f})"
        table.add_row(plain_text(f"{rank + 1} {player['name']}"), elo, *cells)
    print_rich(table)


def _seat_rows(report: dict[str, Any]) -> Rows:
    """The rates of wins, draws and losses, in each seat and in both."""
    both = {name: report[name] for name in ("win", "draw", "loss")}
    low, high = both["win"]["ci95"]
    return [
        ("", "won / drawn / lost"),
        ("first seat", _rates(report["seats"][0])),
        ("second seat", _rates(report["seats"][1])),
        ("both", _rates(both)),
        ("win, 95 %", f"{low:.2%} to {high:.2%}"),
    ]


def _rates(seat: dict[str, Any]) -> str:
    return " / ".join(f"{seat[name]['rate']:.2%}" for name in ("win", "draw", "loss"))


def _reference_rows(random: float | None, name: str, value: str, optimal: float | None) -> Rows:
    rows = [] if random is None else [("random play", _number(random))]
    return [*rows, (name, value), ("exact optimum", _number(optimal))]


def _reach_rows(reach: dict[str, Any]) -> Rows:
    """The rates of the tiles that not nearly every game reaches."""
    rates = [(tile, share["rate"]) for tile, share in reach.items()]
    return [(f"reach {tile}", f"{rate:.2%}") for tile, rate in rates if rate < COMMON_TILE_RATE]


def _print_table(title: str, rows: Rows) -> None:
    table = Table(title=plain_text(title), show_header=False, min_width=len(title))
    table.add_column(overflow="fold")
    table.add_column(justify="right", overflow="fold")
    for name, value in rows:
        table.add_row(plain_text(name), value)
    print_rich(table)


def plain_text(text: str) -> Text:
    """Text without markup: brackets in a name are printed as they are."""
    return Text(printable(text))


def print_rich(table: Table) -> None:
    console = Console()
    with console.capture() as capture:
        console.print(table)
    print(capture.get(), end="")  # rich would exit where a pipe is closed


def _interval(mean: float, ci95: list[float], exact: bool) -> str:
    if exact:
        return f"{mean:.4f}"
    sign = "±" if (sys.stdout.encoding or "utf-8").lower().startswith("utf") else "+-"
    return f"{mean:.4f} {sign} {(ci95[1] - ci95[0]) / 2:.4f}"


def _number(value: float | None) -> str:
    return "not computed" if value is None else f"{value:.4f}"
