"""Whether the evaluations and the metrics of a study fit its games."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rlgames.commands.evaluate import check_games
from rlgames.commands.report import CURVE_KEYS
from rlgames.config.commands import ReportConfig
from rlgames.config.compose import load_config
from rlgames.config.options.players import ExactConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.schema import OptionConfig
from rlgames.config.studies import Study, StudyColumn
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError, nearest
from rlgames.evaluation.evaluate import openings_to_play
from rlgames.games.game import Game
from rlgames.players.player import Agent
from rlgames.runs.agents import build_player, with_search

ESTIMATE = "(mean|median|min|max)"
RATES = "(win|draw|loss)"
METRICS = {
    "training": r"seconds|total_seconds|ms_per_game|[\w/]+\.(last\d+|first\d+|at\d+)"
    r"|[\w/]+\.below\d+(\.\d+)?over\d+",
    "arena": rf"players\.\d+\.(elo|{ESTIMATE})|pairs\.\d+\.(difference\.{ESTIMATE}|correlation)",
    "analyze": r"losses\.[\w-]+\.(rate|count|positions|loss\.mean)|per_game|games"
    r"|search_losses\.(mistakes|repaired|spoiled)",
    "solve": "optimal|states|seconds",
    "eval": rf"moves\.{ESTIMATE}|games|distinct_games|seconds|moves_per_s|proven_moves"
    r"|opponent_proven_moves",
    "outcome": rf"{RATES}\.(rate|count)|seats\.[01]\.{RATES}\.(rate|count)|exploitability"
    rf"|exploitability_seats\.[01]|exact_seats\.[01]\.{RATES}",
    "turns": r"exact_mean|reference\.(random|random_std|optimal|gap_to_optimal)"
    rf"|(trained_on|held_out)\.{ESTIMATE}",
    "score": rf"exact_mean|reference\.(random|optimal|gap_to_optimal)|score\.{ESTIMATE}"
    rf"|reach\.\d+\.(rate|count)|{RATES}\.(rate|count)|(grid_sum|\w+)\.{ESTIMATE}",
}
"""The metrics of each source, and of an evaluation by the goal of the game."""

EXAMPLES = {
    "training": ["seconds", "total_seconds", "turns.last2000"],
    "arena": ["players.0.elo", "pairs.0.difference.mean"],
    "analyze": ["losses.all.rate", "losses.all.loss.mean", "per_game"],
    "solve": ["optimal"],
    "outcome": ["win.rate", "loss.rate", "seats.0.win.rate", "exploitability", "moves.mean"],
    "turns": ["moves.mean", "exact_mean", "reference.optimal", "reference.gap_to_optimal"],
    "score": ["score.mean", "score.max", "reach.2048.rate", "moves.mean"],
}


def check_curves(study: Study) -> None:
    """Raises ConfigError for words of curves: that do not say how learning curves are drawn: the
    others write files, or print."""
    valid = ("by", "where", *CURVE_KEYS)
    for name, text in study.curves.items():
        words = [word for word in text.split() if "=" in word]
        try:
            load_config(ReportConfig, words)
            for word in words:
                if word.partition("=")[0] not in valid:
                    raise ConfigError(
                        f"{word} is not a key of curves", f"valid: {', '.join(valid)}"
                    )
        except ConfigError as error:
            raise ConfigError(f"curves.{name}: {error.error}", error.hint) from None


def check_match(
    cfg: Any, game: Game[Any], rules: OptionConfig, trained: tuple[Agent, RewardConfig] | None
) -> None:
    """Raises ConfigError for players, searches and games of `eval` or `analyze` that do not fit.

    cfg: their config. rules: of the game. trained: the agent of a run as it starts its training,
    and its reward; None for a player.
    """
    check_games(game, cfg.games)
    openings_to_play(game, cfg.games)
    if trained is not None and cfg.search is not None:
        agent, reward = trained
        with_search(agent, game, cfg.search, reward)
    opponent = cfg.opponent or (cfg.opponent_search and make_option("player", "random"))
    for player, search in ((cfg.player, cfg.search), (opponent, cfg.opponent_search)):
        if player is not None and not isinstance(player, ExactConfig):  # which solves the game
            build_player(player, game, rules, search)


def check_metrics(
    games: Mapping[str, Game[Any]], study: Study, run: str, column: StudyColumn
) -> None:
    """Raises ConfigError for a metric that no evaluation of this run's game has.

    games: of each run.
    """
    for term in column.terms:
        other, _, path = term.rpartition(":")
        source, _, name = path.partition(".")
        row = other or run
        evaluation = study.evaluation(source, row)
        if source != "training" and evaluation is None:
            continue
        goal = games[row].spec.goal
        kinds = [source] if evaluation is None else [evaluation.command]
        kinds += [goal] if kinds == ["eval"] else []
        if not any(re.fullmatch(METRICS[kind], name) for kind in kinds):
            examples = [f"{source}.{each}" for each in EXAMPLES[kinds[-1]]]
            of = games[row].spec.name
            raise ConfigError(f"{of} has no metric {term}", nearest(path, examples))
