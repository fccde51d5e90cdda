"""`rlgames arena`: a round-robin tournament, or in a one-player game a paired comparison."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from rlgames.build.agents import OpenRun, checkpoint_digest, open_run
from rlgames.build.players import build_player, opponent_agent, with_search
from rlgames.commands.evaluate import (
    check_games,
    games_in_words,
    mean_text,
    number,
    print_columns,
)
from rlgames.commands.match import matching_runs, option_name, report_directory
from rlgames.config.commands import ArenaConfig
from rlgames.config.registry import REGISTRY, make
from rlgames.config.typed import make_option, to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, own_place, to_user_error
from rlgames.core.metrics import Rank
from rlgames.core.text import counted, printable
from rlgames.evaluation.elo import Arena, compete
from rlgames.evaluation.estimates import MIN_GAMES
from rlgames.evaluation.evaluate import EvaluationSettings, useful_opening_turns
from rlgames.evaluation.paired import Comparison, compare_paired
from rlgames.evaluation.references import exact_mean
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.runs.find import find_run, run_name, run_path
from rlgames.runs.reports import check_report, keep_report
from rlgames.terminal.tables import Column, fits, print_note, print_titled

ROUGH_GAMES = 100
"""Fewer games of a pair give intervals that contain the truth in 82 to 98% of cases; see
tests/evaluation/test_elo.py."""


@dataclass(frozen=True)
class Result:
    """What `rlgames arena` prints.

    players: as they are called. statistics: of each, see Player.statistics. arena: of a two-player
    game, with indices of players. comparison, exact_means: of a one-player game; None where the
    mean is not known exactly. left_out: those that cannot play, with the reasons. opening_turns: at
    random, at the start of each game.
    """

    cfg: ArenaConfig
    players: list[str]
    statistics: list[dict[str, float]]
    arena: Arena | None = None
    comparison: Comparison | None = None
    exact_means: Sequence[float | None] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    opening_turns: int = 0

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        about = {"game": to_plain(self.cfg)["game"], "games": self.cfg.games, "seed": self.cfg.seed}
        about["opening_turns"] = self.opening_turns
        about["left_out"] = [{"name": name, "reason": why} for name, why in self.left_out.items()]
        return about | (self._tournament() if self.arena else self._comparison())

    def _tournament(self) -> dict[str, Any]:
        arena = self.arena
        assert arena is not None
        rated = zip(self.players, arena.elo, arena.points, self.statistics, strict=True)
        return {
            "players": [
                {"name": name, **elo.as_dict("elo"), "points": points, **statistics}
                for name, elo, points, statistics in rated
            ],
            "pairs": [
                {
                    "players": [self.players[number] for number in pair],
                    "games": evaluation.games,
                    "distinct_games": evaluation.distinct_games,
                    "exact": evaluation.is_exact,
                }
                for pair, evaluation in arena.evaluations.items()
            ],
        }

    def _comparison(self) -> dict[str, Any]:
        found = self.comparison
        assert found is not None
        played = zip(self.players, found.players, self.exact_means, strict=True)
        return {
            "games": found.games,
            "exact": found.is_exact,
            "metric": found.metric,
            "players": [
                {"name": name, **estimate.as_dict(), "exact_mean": exact}
                for name, estimate, exact in played
            ],
            "pairs": [
                {
                    "players": [self.players[number] for number in pair],
                    "difference": difference.as_dict(),
                    "correlation": correlation,
                }
                for pair, (difference, correlation) in found.pairs.items()
                if pair[0] < pair[1]
            ],
        }


def run(config: ArenaConfig) -> Result:
    """The cross table and the ratings, or in a one-player game the results on the same boards and
    random numbers. With one run, its report is kept."""
    contestants = list(config.players)
    if config.where is not None:
        contestants = matching_runs(contestants, config.where)
    if len(contestants) + (config.player is not None) < 2:
        raise ConfigError(
            "an arena needs at least two players",
            "as in: rlgames arena RUN random exact; where= chooses among the runs of a folder",
        )
    for index, word in enumerate(contestants):
        if normpath(word) in map(normpath, contestants[:index]):
            raise ConfigError(f"{word} is named twice", "name each player once")
    left_out: dict[str, str] = {}
    cfg, game, players = competitors(contestants, config, left_out)
    contestants = [word for word in contestants if _parts(word)[0] not in left_out]
    named = dict.fromkeys(word for word, _ in map(_parts, contestants) if not _is_player(word))
    runs = [*named]
    directory = report_directory(cfg, run_path(runs[0]) if len(runs) == 1 else None)
    check_report(cfg, directory)
    names = [*map(_full_name, contestants)]
    shown = _short_names(names)
    if config.player is not None:
        shown.append(option_name(config.player))
        names.append(option_name(config.player))
    arena, comparison, turns, failed = None, None, 0, dict[int, Exception]()
    if game.spec.seats == 1:
        with torch.inference_mode():
            rng = Rng(cfg.seed, "arena", game.device)
            comparison = compare_paired(game, players, cfg.games, rng, failed)
    else:
        turns = useful_opening_turns(game, players)
        turns = turns if cfg.opening_turns is None else cfg.opening_turns
        settings = EvaluationSettings(cfg.games, opening_turns=turns, opening_seed=cfg.seed)
        arena = compete(game, [*map(normpath, names)], players, settings, cfg.seed, failed)
    left_out |= {shown[index]: _reason(error) for index, error in failed.items()}
    players = [player for index, player in enumerate(players) if index not in failed]
    shown = [name for index, name in enumerate(shown) if index not in failed]
    statistics = [player.statistics() for player in players]
    means = [exact_mean(game, player, None) for player in players] if comparison else []
    result = Result(cfg, shown, statistics, arena, comparison, means, left_out, turns)
    digests = {word: checkpoint_digest(run_path(word)) for word in runs}
    others = [word.removeprefix("".join(runs[:1])) for word in contestants if word not in runs]
    others += names[len(contestants) :]
    keep_report(cfg, directory, digests, result.as_dict(), others)
    return result


def competitors(
    contestants: list[str], cfg: ArenaConfig, left_out: dict[str, str] | None = None
) -> tuple[ArenaConfig, Game[Any], list[Player]]:
    """The config with the game, the game and the players; contestants: names of players and paths
    of runs.

    The player of player= comes last. A word that ends in +mcts is the player before the plus sign,
    with that search. Keys of search= hold for each player with that search. left_out: receives
    the runs that cannot play, with the reasons; None: they are errors, as without two players.
    """
    parts = [_parts(word) for word in contestants]
    paths = {word: find_run(word, is_player=True) for word, _ in parts if not _is_player(word)}
    errors = list[Exception]()
    runs = _open_runs(paths, left_out, errors)
    if runs and cfg.game is not None:
        raise ConfigError("game= cannot be combined with a run", "omit one of the two")
    if runs:
        cfg = dataclasses.replace(cfg, game=next(iter(runs.values())).config.game)
    if cfg.game is None:
        missing = ConfigError("an arena needs a run or a game", "as in game=tictactoe")
        raise errors[0] if errors else missing
    game = make("game", cfg.game).to(build_device(cfg.device, cfg.threads))
    check_games(game, cfg.games)
    players = []
    for word, name in parts:
        is_set = cfg.search is not None and cfg.search.name == name
        search = cfg.search if is_set else make_option("search", name) if name else None
        if (run := runs.get(word)) is not None:
            try:
                agent = opponent_agent(run, game, cfg.game)
            except ConfigError as error:
                _leave_out(word, error, left_out, errors)
                continue
            players.append(with_search(agent, game, search, run.config.reward))
        elif word not in paths:
            option = make_option("player", word)
            try:
                players.append(build_player(option, game, cfg.game, search))
            except Exception as error:
                if REGISTRY["player"][word].values is None:  # not handed in, but typed
                    raise
                _leave_out(word, error, left_out, errors)
    if cfg.player is not None:
        players.append(build_player(cfg.player, game, cfg.game))
    if errors and len(players) < 2:
        raise errors[0]
    _check_keys(cfg, game, {name for _, name in parts})
    return cfg, game, players


def _check_keys(cfg: ArenaConfig, game: Game[Any], searches: set[str]) -> None:
    """Raise ConfigError for a key that no player uses. searches: those after plus signs."""
    if cfg.opening_turns and game.spec.seats == 1:
        text = f"{game.spec.name} is a one-player game, played on the same boards by all"
        raise ConfigError(text, "remove opening_turns=")
    if cfg.search is not None and cfg.search.name not in searches:
        raise ConfigError(
            f"no player searches with search={cfg.search.name}",
            f"use PLAYER+{cfg.search.name} for each player that searches",
        )


def _open_runs(
    paths: Mapping[str, Path], left_out: dict[str, str] | None, errors: list[Exception]
) -> dict[str, OpenRun]:
    runs = dict[str, OpenRun]()
    for word, path in paths.items():
        try:
            runs[word] = open_run(path)
        except ConfigError as error:
            _leave_out(word, error, left_out, errors)
    return runs


def _full_name(word: str) -> str:
    player, search = _parts(word)
    name = player if _is_player(player) else run_name(run_path(player))
    return name + (f"+{search}" if search else "")


def _leave_out(
    word: str, error: Exception, left_out: dict[str, str] | None, errors: list[Exception]
) -> None:
    """Note that a player cannot play. Raises the error without a place for it."""
    if left_out is None:
        raise error
    left_out[word] = _reason(error)
    errors.append(error)


def _reason(error: Exception) -> str:
    """Why a player is left out: the error, and its place if a user wrote the code."""
    if isinstance(error, ConfigError):
        return error.error
    place = own_place(error)
    return to_user_error(error).error + (f" in {place}" if place else "")


def _short_names(names: Sequence[str]) -> list[str]:
    """Names without folders and suffixes, unless two would be the same."""
    short = [Path(name).name.replace(".safetensors", "") or name for name in names]
    is_path = [os.sep in name or ".safetensors" in name for name in names]
    return [
        own if path and short.count(own) == 1 else name
        for name, own, path in zip(names, short, is_path, strict=True)
    ]


def _is_player(word: str) -> bool:
    """Whether a word names a player, not a run. Raises ConfigError for one that needs keys."""
    if word in REGISTRY["player"] and REGISTRY["player"][word].runs_code:
        raise ConfigError(f"{word} needs its keys", f"use player={word} player.command=COMMAND")
    return word in REGISTRY["player"] and word != "run"


def _parts(word: str) -> tuple[str, str]:
    """A player's name or path, and the search that it asks for, "" for none."""
    player, _, search = word.rpartition("+")
    searches = player and search in REGISTRY["search"] and not os.path.exists(word)
    return (player, search) if searches else (word, "")


def show(result: Result) -> None:
    """Print the ranking and the cross table of a tournament, the strongest player first; for a
    one-player game the differences on the same boards and random numbers."""
    format, notes = result.cfg.format, list[str]()
    if format == "csv":
        _write_csv(result)
        return
    if result.comparison is not None:
        _show_comparison(result, result.comparison)
    if (arena := result.arena) is not None:
        order = sorted(range(len(result.players)), key=lambda row: Rank(-arena.elo[row].value))
        _show_ranking(result, arena, order)
        _show_cross_table(result, arena, order)
        for pair, evaluation in arena.evaluations.items():
            distinct = evaluation.distinct_games
            has_repeats = 2 * distinct <= evaluation.games
            if has_repeats and not evaluation.is_exact:
                names = " against ".join(result.players[number] for number in pair)
                notes.append(f"{names}: {games_in_words(evaluation.games, distinct, False, 2)}")
        for name, statistics in zip(result.players, result.statistics, strict=True):
            if "forfeits" in statistics:
                notes.append(f"{name}: forfeited {counted(int(statistics['forfeits']), 'game')}")
        for row in order:
            if "proven_moves" in result.statistics[row]:
                share = f"{result.statistics[row]['proven_moves']:.1%} of its moves proven optimal"
                notes.append(f"{result.players[row]}: {share}")
    notes += [f"left out: {name}: {why}" for name, why in result.left_out.items()]
    for note in notes:
        print_note(note, format)


def _write_csv(result: Result) -> None:
    """Write the players as lines, the strongest first; runs left out have the reason only."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    players = result.as_dict()["players"]
    value = "elo" if result.arena is not None else "mean"
    sign = 1 if result.comparison is not None and result.comparison.metric == "turns" else -1
    against = [f"points against {name}" for name in result.players] if result.arena else []
    writer.writerow(map(printable, ["player", value, "low", "high", *against, "left out"]))
    for each in sorted(players, key=lambda each: Rank(sign * each[value])):
        ends = each["ci95"] or ("", "")
        writer.writerow([printable(each["name"]), each[value], *ends, *each.get("points", ()), ""])
    for name, why in result.left_out.items():
        writer.writerow([printable(name), *[""] * (3 + len(against)), printable(why)])


def _show_ranking(result: Result, arena: Arena, order: list[int]) -> None:
    ratings = [arena.elo[row] for row in order]
    means = [fmean(each for each in arena.points[row] if each is not None) for row in order]
    intervals = [
        "" if each.interval is None else "{:+z.0f} to {:+z.0f}".format(*each.interval)
        for each in ratings
    ]
    columns = [
        Column("", [str(rank) for rank, _ in enumerate(order, 1)]),
        Column("player", [result.players[row] for row in order], is_text=True),
        Column("Elo", [f"{each.value:+z.0f}" for each in ratings]),
        Column("95%", intervals),
        Column("points", [f"{mean:.1%}" for mean in means], 1),
    ]
    title = f"ranking, {result.cfg.games:,} games per pair"
    if turns := result.opening_turns:
        title += f", random openings of {counted(turns, 'turn')}, each in both seats"
    print_titled(title, [each for each in columns if any(each.cells)], result.cfg.format)
    varying = [each for each in arena.evaluations.values() if not each.is_exact]
    if any(intervals) and any(each.games < ROUGH_GAMES for each in varying):
        text = f"95%: over fewer than {ROUGH_GAMES} games a pair, 82 to 98% contain the truth"
        print_note(text, result.cfg.format)
    if any(each.interval is None and not each.is_exact for each in ratings):
        print_note(f"no interval: needs {MIN_GAMES} games per pair that differ", result.cfg.format)


def _show_cross_table(result: Result, arena: Arena, order: list[int]) -> None:
    """The points of each player against each other, if the terminal is wide enough."""
    exact = {pair for pair, evaluation in arena.evaluations.items() if evaluation.is_exact}

    def cell(row: int, column: int) -> str:
        share, mark = arena.points[row][column], "*" * bool(exact & {(row, column), (column, row)})
        return "-" if share is None else f"{share:.1%}{mark}"

    labels = [f"{rank} {result.players[row]}" for rank, row in enumerate(order, 1)]
    columns = [Column("", labels, is_text=True)]
    for rank, other in enumerate(order, 1):
        columns.append(Column(str(rank), [cell(row, other) for row in order]))
    print()
    if result.cfg.format != "table" or fits(columns):
        print_titled("points of row against column", columns, result.cfg.format)
    else:
        print("the points of each pair need a wider terminal; a pipe and format=json have them")
    if exact:
        print_note("* exact: all games that these two can play", result.cfg.format)


def _show_comparison(result: Result, found: Comparison) -> None:
    """The metric of each player, then the difference of each pair; the best player first."""
    sign = 1 if found.metric == "turns" else -1
    numbers = range(len(result.players))
    order = sorted(numbers, key=lambda each: Rank(sign * found.players[each].value))
    games = games_in_words(found.games, found.games, found.is_exact, 1)
    columns = [[(result.players[each], mean_text(found.players[each])) for each in order]]
    exact = [(result.players[each], result.exact_means[each]) for each in order]
    computed = [(name, number(mean)) for name, mean in exact if mean]
    headings = ["played", "computed exactly"] if computed and not found.is_exact else []
    columns += [computed] if headings else []
    print_columns(f"{found.metric} per game, {games}", headings, columns, result.cfg.format)
    rows = []
    for pair in itertools.combinations(numbers, 2):
        first, second = sorted(pair, key=order.index)
        difference, correlation = found.pairs[first, second]
        r = "" if correlation is None else f", r = {correlation:.2f}"
        name = f"{result.players[first]} - {result.players[second]}"
        rows.append((name, mean_text(difference) + r))
    title = "differences on the same boards and random numbers, r: correlation"
    print_columns(title, [], [rows], result.cfg.format)
