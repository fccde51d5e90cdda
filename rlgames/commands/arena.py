"""`rlgames arena`: a round-robin tournament, or in a one-player game a paired comparison."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import normpath
from statistics import fmean
from typing import Any

import torch

from rlgames.build.agents import checkpoint_digest, open_run
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
from rlgames.core.errors import ConfigError
from rlgames.core.metrics import Rank
from rlgames.core.rng import make_generator
from rlgames.core.text import counted, printable
from rlgames.evaluation.elo import Arena, compete
from rlgames.evaluation.estimates import MIN_GAMES
from rlgames.evaluation.evaluate import EvaluationSettings, useful_opening_turns
from rlgames.evaluation.paired import Comparison, compare_paired
from rlgames.evaluation.references import exact_mean
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.find import find_run, run_name, run_path
from rlgames.runs.reports import check_report, keep_report
from rlgames.terminal.tables import Column, fits, print_table

ROUGH_GAMES = 100
"""Fewer games of a pair give intervals that contain the truth in 82 to 98% of cases; see
tests/evaluation/test_elo.py."""


@dataclass(frozen=True)
class Result:
    """What `rlgames arena` prints.

    players: as they are called. statistics: of each, see Player.statistics. arena: of a two-player
    game, with indices of players. comparison, exact_means: of a one-player game; None where the
    mean is not known exactly.
    """

    cfg: ArenaConfig
    players: list[str]
    statistics: list[dict[str, float]]
    arena: Arena | None = None
    comparison: Comparison | None = None
    exact_means: Sequence[float | None] = ()

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        about = {"game": to_plain(self.cfg)["game"], "games": self.cfg.games, "seed": self.cfg.seed}
        about["opening_turns"] = self.cfg.opening_turns
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
    named = dict.fromkeys(word for word, _ in map(_parts, contestants) if not _is_player(word))
    runs = [*named]
    cfg, game, players = competitors(contestants, config)
    directory = report_directory(cfg, run_path(runs[0]) if len(runs) == 1 else None)
    check_report(cfg, directory)
    names = [
        (player if _is_player(player) else run_name(run_path(player)))
        + (f"+{search}" if search else "")
        for player, search in map(_parts, contestants)
    ]
    if config.player is not None:
        names.append(option_name(config.player))
    streams = [normpath(name) for name in names]

    def make_rng(name: object) -> torch.Generator:
        return make_generator(cfg.seed, f"arena {name}", game.device)

    if game.spec.seats == 1:
        with torch.inference_mode():
            comparison = compare_paired(game, streams, players, cfg.games, make_rng)
        means = [exact_mean(game, player, None) for player in players]
        result = Result(cfg, names, [], comparison=comparison, exact_means=means)
    else:
        settings = EvaluationSettings(
            cfg.games, opening_turns=cfg.opening_turns or 0, opening_seed=cfg.seed
        )
        arena = compete(game, streams, players, settings, lambda *pair: make_rng(sorted(pair)))
        result = Result(cfg, names, [player.statistics() for player in players], arena)
    digests = {word: checkpoint_digest(run_path(word)) for word in runs}
    others = [word.removeprefix("".join(runs[:1])) for word in contestants if word not in runs]
    others += names[len(contestants) :]
    keep_report(cfg, directory, digests, result.as_dict(), others)
    return result


def competitors(
    contestants: list[str], cfg: ArenaConfig
) -> tuple[ArenaConfig, Game[Any], list[Player]]:
    """The config with the game, the game and the players; contestants: names of players and paths
    of runs.

    The player of player= comes last. A word that ends in +mcts is the player before the plus sign,
    with that search. Keys of search= hold for each player with that search.
    """
    parts = [_parts(word) for word in contestants]
    paths = {word: find_run(word, is_player=True) for word, _ in parts if not _is_player(word)}
    runs = {word: open_run(path) for word, path in paths.items()}
    if runs and cfg.game is not None:
        raise ConfigError("game= cannot be combined with a run", "omit one of the two")
    if runs:
        cfg = dataclasses.replace(cfg, game=next(iter(runs.values())).config.game)
    if cfg.game is None:
        raise ConfigError("an arena needs a run or a game", "as in game=tictactoe")
    game = make("game", cfg.game).to(build_device(cfg.device, cfg.threads))
    check_games(game, cfg.games)
    players = []
    for word, name in parts:
        is_set = cfg.search is not None and cfg.search.name == name
        search = cfg.search if is_set else make_option("search", name) if name else None
        if (run := runs.get(word)) is not None:
            agent = opponent_agent(run, game, cfg.game)
            players.append(with_search(agent, game, search, run.config.reward))
        else:
            option = make_option("player", word)
            players.append(build_player(option, game, cfg.game, search))
    if cfg.player is not None:
        players.append(build_player(cfg.player, game, cfg.game))
    if cfg.opening_turns and game.spec.seats == 1:
        text = f"{game.spec.name} is a one-player game, played on the same boards by all"
        raise ConfigError(text, "remove opening_turns=")
    if cfg.opening_turns is None:
        turns = useful_opening_turns(game, players)
        cfg = dataclasses.replace(cfg, opening_turns=turns)
    if cfg.search is not None and cfg.search.name not in {name for _, name in parts}:
        raise ConfigError(
            f"no player searches with search={cfg.search.name}",
            f"use PLAYER+{cfg.search.name} for each player that searches",
        )
    return cfg, game, players


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
    if result.comparison is not None:
        _show_comparison(result, result.comparison)
        return
    arena = result.arena
    assert arena is not None
    order = sorted(range(len(result.players)), key=lambda row: Rank(-arena.elo[row].value))
    _show_ranking(result, arena, order)
    _show_cross_table(result, arena, order)
    for pair, evaluation in arena.evaluations.items():
        distinct = evaluation.distinct_games
        has_repeats = distinct is not None and 2 * distinct <= evaluation.games
        if has_repeats and not evaluation.is_exact:
            names = " against ".join(result.players[number] for number in pair)
            print(printable(f"{names}: {games_in_words(evaluation.games, distinct, False, 2)}"))
    for name, statistics in zip(result.players, result.statistics, strict=True):
        if "forfeits" in statistics:
            print(printable(f"{name}: forfeited {counted(int(statistics['forfeits']), 'game')}"))
    for row in order:
        if "proven_moves" in result.statistics[row]:
            share = f"{result.statistics[row]['proven_moves']:.1%} of its moves proven optimal"
            print(printable(f"{result.players[row]}: {share}"))


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
    if turns := result.cfg.opening_turns:
        title += f", random openings of {counted(turns, 'turn')}, each in both seats"
    print_table(title, [each for each in columns if any(each.cells)], "table")
    varying = [each for each in arena.evaluations.values() if not each.is_exact]
    if any(intervals) and any(each.games < ROUGH_GAMES for each in varying):
        print(f"95%: over fewer than {ROUGH_GAMES} games a pair, 82 to 98% contain the truth")
    if any(each.interval is None and not each.is_exact for each in ratings):
        print(f"no interval: needs {MIN_GAMES} games per pair that differ")


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
    if fits(columns):
        print_table("points of row against column", columns, "table")
    else:
        print("the points of each pair need a wider terminal; a pipe and format=json have them")
    if exact:
        print("* exact: all games that these two can play")


def _show_comparison(result: Result, found: Comparison) -> None:
    """The metric of each player, then the difference of each pair; the best player first."""
    sign = 1 if found.metric == "turns" else -1
    numbers = range(len(result.players))
    order = sorted(numbers, key=lambda each: Rank(sign * found.players[each].value))
    games = games_in_words(found.games, None, found.is_exact, 1)
    columns = [[(result.players[each], mean_text(found.players[each])) for each in order]]
    exact = [(result.players[each], result.exact_means[each]) for each in order]
    computed = [(name, number(mean)) for name, mean in exact if mean]
    headings = ["played", "computed exactly"] if computed and not found.is_exact else []
    columns += [computed] if headings else []
    print_columns(f"{found.metric} per game, {games}", headings, columns)
    rows = []
    for pair in itertools.combinations(numbers, 2):
        first, second = sorted(pair, key=order.index)
        difference, correlation = found.pairs[first, second]
        r = "" if correlation is None else f", r = {correlation:.2f}"
        name = f"{result.players[first]} - {result.players[second]}"
        rows.append((name, mean_text(difference) + r))
    title = "differences on the same boards and random numbers, r: correlation"
    print_columns(title, [], [rows])
