"""What a person sees: the progress of a run, and tables of what came of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rlgames.cli.live_view import LiveScreen, RenderedView
from rlgames.cli.progress import ProgressCallback
from rlgames.commands.evaluate import result_fields
from rlgames.commands.show import ShownPosition
from rlgames.commands.watch import Replay
from rlgames.core.errors import detach_stdout
from rlgames.core.text import json_text, printable
from rlgames.drawing.terminal import grouped, printed
from rlgames.training.callbacks import Callback
from rlgames.training.run import TrainingResult

MAX_LISTED_MOVES = 10
"""So many of the likeliest moves of a position are shown."""


@contextmanager
def training_view(total: int) -> Iterator[Callback]:
    """A live view on a terminal; elsewhere a plain line at every tenth of the games."""
    console = Console()
    if not sys.stdout.isatty() or console.is_dumb_terminal:
        yield PlainProgress(total)
        return
    viewer = ProgressCallback(total)
    with LiveScreen(RenderedView(lambda: viewer.view), console):
        yield viewer


class PlainProgress(Callback):
    """Prints a line after an evaluation, one for each tenth of the games, of what is new."""

    shown = ("turns", "score", "points", "exploitability")

    def __init__(self, total: int) -> None:
        self._total, self._tenth = total, 0
        self._latest: dict[str, float] = {}

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self._latest.update(metrics)
        evaluated = any(name.startswith("eval/") for name in metrics)
        if evaluated and games * 10 // self._total > self._tenth:
            self._tenth = games * 10 // self._total
            try:
                print(f"{games:>10,} of {self._total:,} games: {self._line()}", flush=True)
            except BrokenPipeError:  # nobody reads along any more; the run goes on
                detach_stdout()
            self._latest = {}

    def _line(self) -> str:
        latest, shown = self._latest, self.shown
        speed = latest.get("time/games_per_s")
        parts = [] if speed is None else [f"{speed:,.0f} games/s"]
        for name in shown:
            if f"train/{name}" in latest and not (name == "turns" and "train/score" in latest):
                parts.append(f"{name} {latest[f'train/{name}']:.2f}")
        greedy = [f"{n} {latest[f'eval/{n}']:.3f}" for n in shown if f"eval/{n}" in latest]
        if greedy:
            parts.append("greedy " + " ".join(greedy))
        return ", ".join(parts)


def print_result(trained: TrainingResult) -> None:
    """The table at the end of a run."""
    found, game = trained.evaluation, trained.game
    what = "every layout" if found.is_exact else f"{found.games:,} games"
    if game.spec.goal == "outcome":
        parts = result_fields(game, found)
        rows = _seat_rows(parts)
        rows.append(("exploitability", _number(trained.exploitability)))
        _table(f"trained, greedy, against {trained.opponent}, {what}", rows)
    else:
        figure = found.turns if game.spec.goal == "turns" else found.score
        rows = _reference_rows(
            trained.random,
            "trained, greedy",
            _interval(figure.mean, [figure.low, figure.high], found.is_exact),
            trained.optimal,
        )
        if trained.held_out is not None:
            figure, exact = trained.held_out.turns, trained.held_out.is_exact
            value = _interval(figure.mean, [figure.low, figure.high], exact)
            rows.append(("the same, layouts held out", value))
            what += " trained on"
        if found.tile_rates:
            rows += _reach_rows(result_fields(game, found)["reach"])
        _table(f"{game.spec.goal} a game, over {what}", rows)
    print(printable(f"{trained.seconds:.1f} s, in {trained.directory}"))


def print_fields(result: dict[str, Any]) -> None:
    """The fields of a result, a line each: the printer of a command that has none of its own."""
    for name, value in result.items():
        print(printable(f"{name}: {value if isinstance(value, str) else json_text(value)}"))


def print_evaluation(report: dict[str, Any]) -> None:
    """The table of `rlgames eval`."""
    what = "every layout" if report["exact"] else f"{report['games']:,} games"
    if "seats" in report:
        rows = _seat_rows(report)
        moves = report["moves"]
        rows.append(("turns a game", _interval(moves["mean"], moves["ci95"], report["exact"])))
        rows.append(("exploitability", _number(report["exploitability"])))
        if report["exact_seats"]:
            rows.append(("worked out exactly", "won / drawn / lost"))
            for name, seat in zip(
                ("first seat", "second seat"), report["exact_seats"], strict=True
            ):
                shares = [seat[result] for result in ("win", "draw", "loss")]
                rows.append((name, " / ".join(f"{share:.2%}" for share in shares)))
        if "proven_moves" in report:
            rows.append(("moves proven to be best", f"{report['proven_moves']:.1%}"))
        player = report["player"] + _by(report["search"])
        opponent = report["opponent"] + _by(report["opponent_search"])
        _table(f"{player} against {opponent}, {what}", rows)
    else:
        goal = "score" if "score" in report else "turns"
        figure = report["score" if goal == "score" else "moves"]
        reference = report["reference"]
        rows = _reference_rows(
            reference["random"],
            report["player"],
            _interval(figure["mean"], figure["ci95"], report["exact"]),
            reference["optimal"],
        )
        rows.append(
            ("median, least, most", f"{figure['median']:g}, {figure['min']:g}, {figure['max']:g}")
        )
        for part, name in (("trained_on", "layouts trained on"), ("held_out", "layouts held out")):
            if part in report:
                own = report[part]
                rows.append((name, _interval(own["mean"], own["ci95"], own["exact"])))
        if reference["gap_to_optimal"] is not None:
            rows.append(("gap to the optimum", f"{reference['gap_to_optimal']:.2%}"))
        rows += _reach_rows(report.get("reach", {}))
        _table(f"{goal} a game{_by(report['search'])}, over {what}", rows)
    print(f"{report['moves_per_s']:,.0f} moves/s, {report['seconds']:.1f} s of play")


def _by(search: dict[str, Any] | None) -> str:
    if search is None:
        return ""
    size = f" of {search['simulations']:,}" if "simulations" in search else ""
    return f" by {search['name']}{size}"


def print_games(replay: Replay) -> None:
    """Games move by move: on a terminal each board replaces the one before after the delay;
    elsewhere, and without a delay, one below the other."""
    console = Console()
    for game in replay.games:
        if not sys.stdout.isatty() or console.is_dumb_terminal or not replay.delay:
            for frame in game:
                print(printed(*frame), end="\n\n")
            continue
        with Live(console=console, auto_refresh=False) as live:
            for number, frame in enumerate(game):
                time.sleep(replay.delay if number else 0)
                live.update(grouped(*frame), refresh=True)


def print_position(position: ShownPosition) -> None:
    """The board of `rlgames show`, and the values of its moves."""
    report = position.fields
    print(printed(position.board))
    if report["over"] is not None:
        print(report["over"])
        return
    unit = report["unit"]
    if report["value"] is not None:
        print(printable(f"{report['player']} expects a return of {report['value']:.4g}"))
    if report["exact"] is not None:
        best = [each["action"] for each in report["actions"] if _is(each["exact"], report["exact"])]
        more = f" and {len(best) - MAX_LISTED_MOVES} more" if len(best) > MAX_LISTED_MOVES else ""
        print(
            f"exact: {_worth(report['exact'], unit)}, by {', '.join(best[:MAX_LISTED_MOVES])}{more}"
        )
    kinds = {"probability": "probability", "score": "worth", "exact": "exact"}
    known = [kind for kind in kinds if any(each[kind] is not None for each in report["actions"])]
    if not known:
        return
    table = Table()
    for name in ("move", *(kinds[kind] for kind in known)):
        table.add_column(name, justify="left" if name == "move" else "right", overflow="fold")
    for action in report["actions"][:MAX_LISTED_MOVES]:
        cells = [_cell(kind, action[kind], report) for kind in known]
        table.add_row(_text(action["action"]), *cells)
    _show(table)
    if len(report["actions"]) > MAX_LISTED_MOVES:
        print(f"and {len(report['actions']) - MAX_LISTED_MOVES} more; format=json has them all")


def _cell(kind: str, value: float | None, report: dict[str, Any]) -> str:
    if value is None:
        return "-"
    if kind == "probability":
        return f"{value:.1%}"
    if kind == "score":
        return f"{value:.4f}"
    return _worth(value, report["unit"]) + (" *" if _is(value, report["exact"]) else "  ")


def _is(value: float | None, best: float | None) -> bool:
    """Whether they are the same but for rounding."""
    return value is not None and best is not None and abs(value - best) < 1e-9


def _worth(value: float, unit: str) -> str:
    if unit == "outcome":
        return {1.0: "won", 0.0: "drawn", -1.0: "lost"}.get(value, f"{value:+.4f}")
    return f"{value:.4f} {unit}"


def print_arena(report: dict[str, Any]) -> None:
    """The cross table of `rlgames arena`, the strongest first."""
    players = sorted(enumerate(report["players"]), key=lambda numbered: -float(numbered[1]["elo"]))
    table = Table(title=f"points of row against column, {report['games']:,} games a pair")
    table.add_column("", overflow="fold")
    table.add_column("Elo, 95 %", justify="right", overflow="fold")
    for place in range(len(players)):
        table.add_column(str(place + 1), justify="right", overflow="fold")
    for place, (_, player) in enumerate(players):
        low, high = player["ci95"]
        points = [player["points"][number] for number, _ in players]
        cells = ["-" if share is None else f"{share:.1%}" for share in points]
        elo = f"{player['elo']:+.0f} ({low:+.0f} to {high:+.0f})"
        table.add_row(_text(f"{place + 1} {player['name']}"), elo, *cells)
    _show(table)


def _seat_rows(parts: dict[str, Any]) -> list[tuple[str, str]]:
    """Won, drawn and lost, in each seat and in both."""
    rows = []
    both = {name: parts[name] for name in ("win", "draw", "loss")}
    for name, seat in [("first seat", parts["seats"][0]), ("second seat", parts["seats"][1])]:
        rows.append((name, _rates(seat)))
    return [("", "won / drawn / lost"), *rows, ("both", _rates(both)), ("win, 95 %", _wilson(both))]


def _rates(seat: dict[str, Any]) -> str:
    return " / ".join(f"{seat[name]['rate']:.2%}" for name in ("win", "draw", "loss"))


def _wilson(seat: dict[str, Any]) -> str:
    low, high = seat["win"]["ci95"]
    return f"{low:.2%} to {high:.2%}"


def _reference_rows(
    random: float | None, name: str, value: str, optimal: float | None
) -> list[tuple[str, str]]:
    rows = [] if random is None else [("random play", _number(random))]
    return [*rows, (name, value), ("exact optimum", _number(optimal))]


def _reach_rows(reach: dict[str, Any]) -> list[tuple[str, str]]:
    """The tiles that not nearly every game reaches."""
    rare = [(tile, share) for tile, share in reach.items() if share["rate"] < 0.995]
    return [(f"reach {tile}", f"{share['rate']:.2%}") for tile, share in rare]


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(title=_text(title), show_header=False, min_width=len(title))
    table.add_column(overflow="fold")
    table.add_column(justify="right", overflow="fold")
    for name, value in rows:
        table.add_row(_text(name), value)
    _show(table)


def _text(text: str) -> Text:
    """Text as it stands: a name in brackets is no markup."""
    return Text(printable(text))


def _show(table: Table) -> None:
    console = Console()
    with console.capture() as drawn:
        console.print(table)
    print(drawn.get(), end="")  # rich would end the process where a pipe is closed


def _interval(mean: float, ci95: list[float], exact: bool) -> str:
    if exact:
        return f"{mean:.4f}"
    sign = "±" if (sys.stdout.encoding or "utf-8").lower().startswith("utf") else "+-"
    return f"{mean:.4f} {sign} {(ci95[1] - ci95[0]) / 2:.4f}"


def _number(value: float | None) -> str:
    return "not computed" if value is None else f"{value:.4f}"
