"""`rlgames arena`: several players, every one of them against every other."""

from __future__ import annotations

from os.path import normpath
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlgames.commands.run_config import config_for_run
from rlgames.config import catalogue, plugins
from rlgames.config.checks import to_plain
from rlgames.config.compose import load_config
from rlgames.config.registry import TRAINING_ONLY_PLAYERS
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.rng import make_generator
from rlgames.evaluation.arena import compete
from rlgames.factory.agents import build_player
from rlgames.factory.components import build_device, build_game
from rlgames.games.game import Game
from rlgames.players.player import Player


def arena_command(who: list[str], overrides: list[str]) -> dict[str, Any]:
    """The cross table and the ratings; who: as in competitors."""
    if len(who) < 2:
        raise ConfigError(
            "an arena needs two players or more", "as in: rlgames arena RUN random exact"
        )
    for place, word in enumerate(who):
        if normpath(word) in map(normpath, who[:place]):
            raise ConfigError(f"{word} is named twice", "name each player once")
    cfg, game, players = competitors(who, overrides)
    rng = make_generator(cfg.seed, "eval", cfg.device)
    found = compete(game, who, players, cfg.games, rng)
    points = [[None if value != value else float(value) for value in row] for row in found.points]
    return {
        "game": to_plain(cfg)["game"],
        "games": cfg.games,
        "seed": cfg.seed,
        "players": [
            {
                "name": who[one],
                "elo": float(found.elo[one]),
                "ci95": [float(found.low[one]), float(found.high[one])],
                "points": points[one],
            }
            for one in range(len(who))
        ],
    }


def competitors(who: list[str], overrides: list[str]) -> tuple[DictConfig, Game[Any], list[Player]]:
    """The config, the game and the players; who: names of players and paths of runs.

    A word that ends in +mcts stands for the player before it, looking ahead.
    """
    overrides = plugins.load_plugins(overrides)
    names = [
        name for name in catalogue.options("player") if name not in ("run", *TRAINING_ONLY_PLAYERS)
    ]
    parts = [_parts(word) for word in who]
    runs = [Path(word) for word, _ in parts if word not in names]
    for path in runs:
        if not path.exists():
            raise ConfigError(
                f"no player is called {str(path)!r}, and there is no run there",
                nearest(str(path), names),
            )
    searches = {f"search={search}" for _, search in parts if search}
    cfg = config_for_run("arena", runs[0] if runs else None, [*searches, *overrides])
    game = build_game(cfg).to(build_device(cfg))
    if game.spec.seats != 2:
        raise ConfigError(
            f"{game.spec.name} is played alone, so that nobody meets", "compare by rlgames eval"
        )
    players = [
        build_player(_node(word, names), cfg, game, cfg.search if search else None)
        for word, search in parts
    ]
    return cfg, game, players


def _parts(word: str) -> tuple[str, str]:
    """A player's name or path, and the search that it asks for, "" for none."""
    player, _, search = word.rpartition("+")
    searches = player and search in catalogue.options("search") and not Path(word).exists()
    return (player, search) if searches else (word, "")


def _node(word: str, names: list[str]) -> DictConfig:
    """The settings of a player: those of its option, or the path of a run."""
    if word not in names:
        return OmegaConf.create({"name": "run", "path": word})
    node: DictConfig = load_config("eval", [f"player={word}"]).player
    return node
