"""`rlgames arena`: a round-robin tournament, or in a one-player game a paired comparison."""

from __future__ import annotations

import os
from os.path import normpath
from typing import Any

import numpy as np
import torch

from rlgames.commands.configs import ArenaConfig, EvalConfig
from rlgames.commands.evaluate import check_seats
from rlgames.commands.run_config import config_for_run
from rlgames.config.compose import load_config
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import option_names
from rlgames.config.schema import groups_of
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.evaluation.elo import compete
from rlgames.evaluation.evaluate import exact_mean
from rlgames.evaluation.paired import compare_paired
from rlgames.factory.agents import build_player
from rlgames.factory.components import build_device, build_game
from rlgames.factory.memory import check_evaluation_memory
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.names import find_run, run_name


def arena_command(contestants: list[str], overrides: list[str]) -> dict[str, Any]:
    """The cross table and the ratings, or in a one-player game the results on the same boards and
    random numbers; contestants: as in competitors."""
    if len(contestants) < 2:
        raise ConfigError(
            "an arena needs at least two players",
            "as in: rlgames arena RUN random exact; where= chooses among the runs of a folder",
        )
    for index, word in enumerate(contestants):
        if normpath(word) in map(normpath, contestants[:index]):
            raise ConfigError(f"{word} is named twice", "name each player once")
    cfg, game, players = competitors(contestants, overrides)
    files = OptionFiles(split_folders(overrides)[0])
    contestants = [
        run_name(player) + (f"+{search}" if search else "")
        for player, search in (_parts(word, files) for word in contestants)
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
    contestants: list[str], overrides: list[str]
) -> tuple[ArenaConfig, Game[Any], list[Player]]:
    """The config, the game and the players; contestants: names of players and paths of runs.

    A word that ends in +mcts is the player before the plus sign, with that search. Keys of the
    searches hold for each of them. The config is the first search's, if there is one.
    """
    folders = split_folders(overrides)[0]
    files = OptionFiles(folders)
    names = {*option_names(groups_of(EvalConfig)["player"], files)} - {"run"}
    parts = [_parts(word, files) for word in contestants]
    runs = [find_run(word) for word, _ in parts if word not in names]
    if typed := next((word for word in overrides if word.startswith("search=")), None):
        search = typed.removeprefix("search=")
        raise ConfigError(
            f"an arena does not use {typed}", f"use PLAYER+{search} for each player that searches"
        )
    searches = dict.fromkeys(search for _, search in parts if search) or [""]
    configs = {
        search: config_for_run(
            ArenaConfig,
            runs[0] if runs else None,
            [*([f"search={search}"] if search else []), *overrides],
        )
        for search in searches
    }
    cfg = next(iter(configs.values()))
    device = build_device(cfg.device, cfg.threads)
    game = build_game(cfg.game).to(device)
    check_seats(cfg.games, game)
    if device.type == "cpu":
        check_evaluation_memory("games", cfg.games, game)
    players = []
    for word, search in parts:
        words = [*(f"--config-dir={folder}" for folder in folders), f"player={word}"]
        player = load_config(EvalConfig, words).player
        assert player is not None
        around = configs[search].search if search else None
        players.append(build_player(player, game, cfg.game, around))
    return cfg, game, players


def _parts(word: str, files: OptionFiles) -> tuple[str, str]:
    """A player's name or path, and the search that it asks for, "" for none."""
    player, _, search = word.rpartition("+")
    searches = player and search in files.names("search") and not os.path.exists(word)
    return (player, search) if searches else (word, "")
