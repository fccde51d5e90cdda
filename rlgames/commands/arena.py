"""`rlgames arena`: a round-robin tournament, or in a one-player game a paired comparison."""

from __future__ import annotations

import dataclasses
import os
from os.path import normpath
from typing import Any

import numpy as np
import torch

from rlgames.commands.evaluate import check_seats
from rlgames.commands.run_config import NEEDS_RUNS, matching_runs
from rlgames.config.commands import ArenaConfig
from rlgames.config.registry import REGISTRY, make
from rlgames.config.typed import make_option, to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory
from rlgames.core.rng import make_generator
from rlgames.evaluation.elo import compete
from rlgames.evaluation.evaluate import exact_mean
from rlgames.evaluation.paired import compare_paired
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.rollouts.trajectories import bytes_per_result
from rlgames.runs.agents import build_player, open_run, opponent_agent, with_search
from rlgames.runs.find import LATEST_RUN, find_run, run_name, run_path


def arena_command(config: ArenaConfig) -> dict[str, Any]:
    """The cross table and the ratings, or in a one-player game the results on the same boards and
    random numbers."""
    contestants = list(config.players)
    if config.where is not None:
        found = [matching_runs(name, config.where) or [name] for name in contestants]
        if all([name] == runs for name, runs in zip(contestants, found, strict=True)):
            raise ConfigError(f"where={config.where} {NEEDS_RUNS}", f"use {LATEST_RUN} or a folder")
        contestants = [run for runs in found for run in runs]
    if len(contestants) < 2:
        raise ConfigError(
            "an arena needs at least two players",
            "as in: rlgames arena RUN random exact; where= chooses among the runs of a folder",
        )
    for index, word in enumerate(contestants):
        if normpath(word) in map(normpath, contestants[:index]):
            raise ConfigError(f"{word} is named twice", "name each player once")
    cfg, game, players = competitors(contestants, config)
    contestants = [
        (player if _is_player(player) else run_name(run_path(player)))
        + (f"+{search}" if search else "")
        for player, search in map(_parts, contestants)
    ]
    report = {"game": to_plain(cfg)["game"], "games": cfg.games, "seed": cfg.seed}
    if game.spec.seats == 1:
        return report | _paired_fields(contestants, cfg, game, players)
    return report | _tournament_fields(contestants, cfg, game, players)


def _paired_fields(
    contestants: list[str], cfg: ArenaConfig, game: Game[Any], players: list[Player]
) -> dict[str, Any]:
    """The metric of each player of a one-player game, and the paired differences."""

    def make_rng(stream: str) -> torch.Generator:
        return make_generator(cfg.seed, f"arena {stream}", game.device)

    with torch.inference_mode():
        names = [normpath(word) for word in contestants]
        fields = compare_paired(game, names, players, cfg.games, make_rng)
    fields["players"] = [
        {"name": word, **estimate, "exact_mean": exact_mean(game, player, None)}
        for word, estimate, player in zip(contestants, fields["players"], players, strict=True)
    ]
    for pair in fields["pairs"]:
        pair["players"] = [contestants[names.index(name)] for name in pair["players"]]
    return fields


def _tournament_fields(
    contestants: list[str], cfg: ArenaConfig, game: Game[Any], players: list[Player]
) -> dict[str, Any]:
    """The ratings and the cross table of a two-player game."""

    def rng_of_pair(*names: str) -> torch.Generator:
        return make_generator(cfg.seed, f"arena {sorted(names)}", game.device)

    # In alphabetical order, so that the games of a pair do not depend on the order of the words.
    paths = [normpath(word) for word in contestants]
    order = sorted(range(len(paths)), key=paths.__getitem__)
    rows = [order.index(number) for number in range(len(paths))]
    result = compete(
        game,
        [paths[number] for number in order],
        [players[number] for number in order],
        cfg.games,
        rng_of_pair,
    )
    points = [[None if value != value else float(value) for value in row] for row in result.points]
    intervals = None if result.intervals is None else np.stack(result.intervals, 1).tolist()
    return {
        "players": [
            {
                "name": word,
                "elo": float(result.elo[row]),
                "ci95": None if intervals is None else intervals[row],
                "points": [points[row][column] for column in rows],
                **player.statistics(),
            }
            for word, row, player in zip(contestants, rows, players, strict=True)
        ],
        "pairs": [
            {
                "players": [contestants[order[row]], contestants[order[column]]],
                "games": evaluation.games,
                "distinct_games": evaluation.distinct_games,
                "exact": evaluation.is_exact,
            }
            for (row, column), evaluation in result.evaluations.items()
        ],
    }


def competitors(
    contestants: list[str], cfg: ArenaConfig
) -> tuple[ArenaConfig, Game[Any], list[Player]]:
    """The config with the game, the game and the players; contestants: names of players and paths
    of runs.

    A word that ends in +mcts is the player before the plus sign, with that search. Keys of search=
    hold for each player with that search.
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
    device = build_device(cfg.device, cfg.threads)
    game = make("game", cfg.game).to(device)
    check_seats(cfg.games, game)
    if device.type == "cpu":
        check_memory("games", cfg.games, bytes_per_result(game), "for final states")
    players = []
    for word, name in parts:
        search = cfg.search
        if search is None or search.name != name:
            search = make_option("search", name) if name else None
        if (run := runs.get(word)) is not None:
            agent = opponent_agent(run, game, cfg.game)
            players.append(with_search(agent, game, search, run.config.reward))
        else:
            players.append(build_player(make_option("player", word), game, cfg.game, search))
    if cfg.search is not None and cfg.search.name not in {name for _, name in parts}:
        raise ConfigError(
            f"no player searches with search={cfg.search.name}",
            f"use PLAYER+{cfg.search.name} for each player that searches",
        )
    return cfg, game, players


def _is_player(word: str) -> bool:
    """Whether a word names a player, not a run."""
    return word in REGISTRY["player"] and word != "run"


def _parts(word: str) -> tuple[str, str]:
    """A player's name or path, and the search that it asks for, "" for none."""
    player, _, search = word.rpartition("+")
    searches = player and search in REGISTRY["search"] and not os.path.exists(word)
    return (player, search) if searches else (word, "")
