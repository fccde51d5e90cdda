"""The tables of trainings, evaluations and arenas."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from rlgames.commands.evaluate import result_fields
from rlgames.config.plugins import command_for_run
from rlgames.config.registry import REGISTRY
from rlgames.core.text import counted, printable
from rlgames.evaluation.evaluate import OUTCOMES
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.terminal.tables import Column, fits, print_table
from rlgames.training.evaluator import EvaluationResult
from rlgames.training.train import TrainingResult

COMMON_TILE_RATE = 0.995
"""Tiles that more games reach are not listed."""

MAX_ASYMMETRY = 0.1
"""Intervals whose ends are less alike, relative to their width, are shown with both ends."""

COMPUTED = RANDOM_PLAY, OPTIMUM, GAP, EXPLOITABILITY = (
    "random play", "exact optimum", "gap to the optimum", "exploitability",
)  # fmt: skip
"""The names of rows that are computed where exact results of a player are."""

Rows = list[tuple[str, str]]


def print_result(result: TrainingResult) -> None:
    """The table at the end of a training, with a column for each checkpoint that was evaluated."""
    game, evaluation = result.game, result.best.evaluation
    columns = {BEST_IN_WORDS: result.best, FINAL_IN_WORDS: result.final}
    if result.final is result.best:
        columns = {f"{BEST_IN_WORDS} and {FINAL_IN_WORDS}": result.best}
    games = _games_in_words(
        evaluation.games, evaluation.distinct_games, evaluation.is_exact, game.spec.seats
    )
    if game.spec.goal == "outcome":
        title = f"trained, greedy, against {result.opponent}, {games}"
    else:
        if result.best.held_out is not None:
            games = games.replace("layouts", "training layouts")
            games = games if evaluation.is_exact else f"{games} on training layouts"
        title = f"{game.spec.goal} per game, {games}"
    rows_of_each = [_result_rows(result, each) for each in columns.values()]
    _print_columns(title, list(columns), rows_of_each)
    print(printable(f"{result.seconds:.1f} s, in {result.directory}"))


def print_next_commands(run: Path, modules: list[str], loggers: Iterable[str]) -> None:
    """The commands that people type next for a run that needs these plugins."""
    commands = [command_for_run(name, run, modules) for name in ("eval", "play")]
    viewers = [REGISTRY["logger"][name].viewer for name in loggers]
    for viewer in filter(None, viewers):
        commands.append(shlex.join(str(run) if word == "RUN" else word for word in viewer))
    for number, command in enumerate(commands):
        print(printable(("      " if number else "next: ") + command))


def _result_rows(result: TrainingResult, checkpoint: EvaluationResult) -> Rows:
    """The rows of one checkpoint in the table at the end of a training."""
    game, evaluation = result.game, checkpoint.evaluation
    fields = result_fields(game, evaluation)
    if game.spec.goal == "outcome":
        exploitability = _number(checkpoint.metrics.get("exploitability"))
        rows = [*_seat_rows(fields), (EXPLOITABILITY, exploitability)]
        return rows + _opponent_rows(checkpoint.opponent_statistics.get("proven_moves"))
    estimate = evaluation.turns if game.spec.goal == "turns" else evaluation.score
    value = _mean(estimate.as_dict(), evaluation.is_exact)
    references = result.references
    rows = _reference_rows(references.random, "trained, greedy", value, references.optimal)
    if checkpoint.held_out is not None:
        value = _mean(checkpoint.held_out.turns.as_dict(), checkpoint.held_out.is_exact)
        rows.append(("trained, held-out layouts", value))
        rows.append(("exact optimum, held-out layouts", _number(references.held_out_optimal)))
    return rows + _reach_rows(fields.get("reach", {}))


def print_evaluation(report: dict[str, Any]) -> None:
    """The table of `rlgames eval`."""
    num_seats = 2 if "seats" in report else 1
    games = _games_in_words(report["games"], report["distinct_games"], report["exact"], num_seats)
    if "seats" in report:
        player = report["player"] + _search_suffix(report["search"])
        opponent = report["opponent"] + _search_suffix(report["opponent_search"])
        rows = _checkpoint_rows(report) + _outcome_rows(report)
        title = f"{player} against {opponent}, {games}"
        if report["exact"] or not report["exact_seats"]:
            _print_columns(title, [], [rows])
        else:
            seats = report["exact_seats"]
            mean = {name: sum(seat[name] for seat in seats) / len(seats) for name in seats[0]}
            _print_computed(title, rows, _rate_rows([*seats, mean]))
    else:
        goal = "score" if "score" in report else "turns"
        search = _search_suffix(report["search"])
        rows = _checkpoint_rows(report) + _metric_rows(report, goal)
        title, exact = f"{goal} per game{search}, {games}", report["exact_mean"]
        if report["exact"] or exact is None:
            _print_columns(title, [], [rows])
        else:
            _print_computed(title, rows, [(report["player"], _number(exact))])
    print(f"{report['moves_per_s']:,.0f} moves/s, {report['seconds']:.1f} s of play")


def _games_in_words(games: int, distinct: int | None, is_exact: bool, seats: int) -> str:
    if is_exact:
        every = "all layouts" if seats == 1 else f"all {games:,} possible games"
        words = {1: "the only possible game", 2: "both possible games"}
        return f"{words.get(games, every)} (exact)"
    if distinct is None or distinct == games:
        return counted(games, "game")
    return f"{games:,} games, {distinct:,} of them different"


def _checkpoint_rows(report: dict[str, Any]) -> Rows:
    """Which checkpoint of a run was evaluated, in words."""
    if "checkpoint" not in report:
        return []
    games = f"{report['checkpoint_games']:,} games"
    return [("checkpoint", report["checkpoint"]), ("trained for", games)]


def _outcome_rows(report: dict[str, Any]) -> Rows:
    """The rows of an evaluation in a game with two seats."""
    rows = _seat_rows(report)
    rows.append(("turns per game", _mean(report["moves"], report["exact"])))
    rows.append((EXPLOITABILITY, _number(report["exploitability"])))
    if "proven_moves" in report:
        rows.append(("moves proven optimal", f"{report['proven_moves']:.1%}"))
    return rows + _opponent_rows(report.get("opponent_proven_moves"))


def _opponent_rows(proven_moves: float | None) -> Rows:
    """How much of the opponent's play is exact, where its search has a limit."""
    if proven_moves is None:
        return []
    return [("opponent's moves proven optimal", f"{proven_moves:.1%}")]


def _metric_rows(report: dict[str, Any], goal: str) -> Rows:
    """The rows of an evaluation in a game with one seat; goal: turns or score."""
    result, reference = report["score" if goal == "score" else "moves"], report["reference"]
    value = _mean(result, report["exact"])
    rows = _reference_rows(reference["random"], report["player"], value, reference["optimal"])
    spread = f"{result['median']:g}, {result['min']:g}, {result['max']:g}"
    if reference["gap_to_optimal"] is not None:
        rows.append((GAP, f"{reference['gap_to_optimal']:z.2%}"))
    rows.append(("median, min, max", spread))
    for field, name in (("trained_on", "training layouts"), ("held_out", "held-out layouts")):
        if field in report:
            rows.append((name, _mean(report[field], report[field]["exact"])))
            optimum = report[field]["reference"]["optimal"]
            rows.append((f"exact optimum, {name}", _number(optimum)))
    if "exact_moves" in report:
        rows.append(("moves by exact counts", f"{report['exact_moves']:.1%}"))
    return rows + _reach_rows(report.get("reach", {}))


def _search_suffix(search: dict[str, Any] | None) -> str:
    if search is None:
        return ""
    # The simulations of search=rollout are for each action, and only where worlds are not listed.
    has_simulations = "simulations" in search and search["name"] != "rollout"
    size = f" ({search['simulations']:,} simulations)" if has_simulations else ""
    return f" with {search['name']}{size}"


def print_arena(report: dict[str, Any]) -> None:
    """The ranking and the cross table of `rlgames arena`, the strongest player first; for a
    one-player game the differences on the same boards and random numbers."""
    if "metric" in report:
        _print_paired(report)
        return
    order = sorted(report["players"], key=lambda player: -float(player["elo"]))
    _print_ranking(order, report["games"])
    _print_cross_table(order, report)
    for pair in report["pairs"]:
        distinct = pair["distinct_games"]
        if not pair["exact"] and distinct is not None and 2 * distinct <= pair["games"]:
            games = _games_in_words(pair["games"], distinct, False, 2)
            print(printable(f"{' against '.join(pair['players'])}: {games}"))
    for player in order:
        if "proven_moves" in player:
            share = f"{player['proven_moves']:.1%} of its moves proven optimal"
            print(printable(f"{player['name']}: {share}"))


def _print_ranking(players: list[dict[str, Any]], games: int) -> None:
    means = [fmean(each for each in player["points"] if each is not None) for player in players]
    intervals = [player["ci95"] for player in players]
    columns = [
        Column("", [str(rank) for rank, _ in enumerate(players, 1)]),
        Column("player", [player["name"] for player in players], is_text=True),
        Column("Elo", [f"{player['elo']:+.0f}" for player in players]),
        Column("95%", ["" if ci is None else "{:+.0f} to {:+.0f}".format(*ci) for ci in intervals]),
        Column("points", [f"{mean:.1%}" for mean in means], 1),
    ]
    title = f"ranking, {games:,} games per pair"
    print_table(title, [each for each in columns if any(each.cells)], "table")


def _print_cross_table(players: list[dict[str, Any]], report: dict[str, Any]) -> None:
    """The points of each player against each other, if the terminal is wide enough."""
    places = {player["name"]: number for number, player in enumerate(report["players"])}
    exact = {
        names
        for pair in report["pairs"]
        if pair["exact"]
        for names in itertools.permutations(pair["players"])
    }

    def cell(row: dict[str, Any], column: dict[str, Any]) -> str:
        share = row["points"][places[column["name"]]]
        star = "*" * ((row["name"], column["name"]) in exact)
        return "-" if share is None else f"{share:.1%}{star}"

    labels = [f"{rank} {player['name']}" for rank, player in enumerate(players, 1)]
    columns = [Column("", labels, is_text=True)]
    for rank, other in enumerate(players, 1):
        columns.append(Column(str(rank), [cell(player, other) for player in players]))
    print()
    if fits(columns):
        print_table("points of row against column", columns, "table")
    else:
        print("the points of each pair need a wider terminal; a pipe and format=json have them")
    if exact:
        print("* exact: all games that these two can play")


def _print_paired(report: dict[str, Any]) -> None:
    """The metric of each player, then the difference of each pair; the best player first."""
    metric, is_exact = report["metric"], report["exact"]
    sign = 1 if metric == "turns" else -1
    players = sorted(report["players"], key=lambda player: sign * float(player["mean"]))
    games = _games_in_words(report["games"], None, is_exact, 1)
    columns = [[(player["name"], _mean(player, is_exact)) for player in players]]
    computed = [(p["name"], _number(p["exact_mean"])) for p in players if p["exact_mean"]]
    headings = ["played", "computed exactly"] if computed and not is_exact else []
    columns += [computed] if headings else []
    _print_columns(f"{metric} per game, {games}", headings, columns)
    order = [player["name"] for player in players]
    rows = []
    for pair in report["pairs"]:
        difference, (first, second) = pair["difference"], pair["players"]
        if order.index(first) > order.index(second):
            first, second, interval = second, first, difference["ci95"]
            ends = None if interval is None else [-interval[1], -interval[0]]
            difference = {"mean": -difference["mean"], "ci95": ends}
        correlation = pair["correlation"]
        r = "" if correlation is None else f", r = {correlation:.2f}"
        rows.append((f"{first} - {second}", _mean(difference, is_exact) + r))
    title = "differences on the same boards and random numbers, r: correlation"
    _print_columns(title, [], [rows])


def _seat_rows(report: dict[str, Any]) -> Rows:
    """The rates of wins, draws and losses, in each seat and in both."""
    seats = [*report["seats"], report]
    rows = _rate_rows([{name: seat[name]["rate"] for name in OUTCOMES} for seat in seats])
    if report["win"]["ci95"] is not None:
        low, high = report["win"]["ci95"]
        rows.append(("win, 95%", f"{low:.2%} to {high:.2%}"))
    return rows


def _rate_rows(rates: list[dict[str, float]]) -> Rows:
    """rates: in the first seat, the second, and both."""
    texts = [" / ".join(f"{seat[name]:.2%}" for name in OUTCOMES) for seat in rates]
    names = ("first seat", "second seat", "both")
    return [("", "won / drawn / lost"), *zip(names, texts, strict=True)]


def _reference_rows(random: float | None, name: str, value: str, optimal: float | None) -> Rows:
    rows = [] if random is None else [(RANDOM_PLAY, _number(random))]
    return [*rows, (name, value), (OPTIMUM, _number(optimal))]


def _reach_rows(reach: dict[str, Any]) -> Rows:
    """The rates of the tiles that not nearly every game reaches."""
    rates = [(tile, share["rate"]) for tile, share in reach.items()]
    return [(f"reach {tile}", f"{rate:.2%}") for tile, rate in rates if rate < COMMON_TILE_RATE]


def _print_computed(title: str, rows: Rows, exact: Rows) -> None:
    """A table with a column for exact results; rows: also those in COMPUTED, which belong there."""
    played = [(name, "" if name in COMPUTED else value) for name, value in rows]
    computed = [*exact, *((name, value) for name, value in rows if name in COMPUTED)]
    _print_columns(title, ["played", "computed exactly"], [played, computed])


def _print_columns(title: str, headings: list[str], columns: list[Rows]) -> None:
    """A table of rows that may have several values; the heading of each column, or none at all."""
    names = list(dict.fromkeys(name for rows in columns for name, _ in rows))
    values = [[dict(rows).get(name, "") for name in names] for rows in columns]
    several = map(Column, headings or [""] * len(columns), values)
    print_table(title, [Column("", names, is_text=True), *several], "table")


def _mean(estimate: dict[str, Any], is_exact: bool) -> str:
    """A mean with half its 95% interval, or with both ends where these are not alike."""
    mean, interval = estimate["mean"], estimate["ci95"]
    if is_exact:
        return f"{mean:.4f}"
    is_utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    if interval is None:
        return f"{mean:.4f} ± –" if is_utf else f"{mean:.4f} +- ?"
    low, high = interval
    if abs(low + high - 2 * mean) > MAX_ASYMMETRY * (high - low):
        return f"{mean:.4f} ({low:.4f} to {high:.4f})"
    return f"{mean:.4f} {'±' if is_utf else '+-'} {(high - low) / 2:.4f}"


def _number(value: float | None) -> str:
    return "not computed" if value is None else f"{value:.4f}"
