"""`rlgames arena`: a round-robin tournament."""

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


def arena_command(contestants: list[str], overrides: list[str]) -> dict[str, Any]:
    """The cross table and the ratings; contestants: as in competitors."""
    if len(contestants) < 2:
        raise ConfigError(
            "an arena needs at least two players", "as in: rlgames arena RUN random exact"
        )
    for index, word in enumerate(contestants):
        if normpath(word) in map(normpath, contestants[:index]):
            raise ConfigError(f"{word} is named twice", "name each player once")
    cfg, game, players = competitors(contestants, overrides)
    rng = make_generator(cfg.seed, "eval", cfg.device)
    result = compete(game, contestants, players, cfg.games, rng)
    points = [[None if value != value else float(value) for value in row] for row in result.points]
    return {
        "game": to_plain(cfg)["game"],
        "games": cfg.games,
        "seed": cfg.seed,
        "players": [
            {
                "name": contestants[number],
                "elo": float(result.elo[number]),
                "ci95": [float(result.low[number]), float(result.high[number])],
                "points": points[number],
            }
            for number in range(len(contestants))
        ],
    }


def competitors(
    contestants: list[str], overrides: list[str]
) -> tuple[DictConfig, Game[Any], list[Player]]:
    """The config, the game and the players; contestants: names of players and paths of runs.

    A word that ends in +mcts is the player before the plus sign, with that search.
    """
    overrides = plugins.load_plugins(overrides)
    names = [
        name for name in catalogue.options("player") if name not in ("run", *TRAINING_ONLY_PLAYERS)
    ]
    parts = [_parts(word) for word in contestants]
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
        raise ConfigError(f"{game.spec.name} is played alone", "compare players with rlgames eval")
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
