"""`rlgames watch`: games move by move, with the players' probabilities on the board."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlgames.commands import board_pictures
from rlgames.commands.frames import Frame, play_games
from rlgames.commands.match import (
    build_opponent,
    game_and_player,
    player_name,
    with_run,
)
from rlgames.config.commands import WatchConfig
from rlgames.core.devices import build_device
from rlgames.core.text import printable
from rlgames.drawing.terminal import format_parts, stack_parts


@dataclass(frozen=True)
class Replay:
    """Games, each as the frames of its moves, and the seconds between two frames; or the picture
    that shows them."""

    games: Iterator[Iterator[Frame]]
    delay: float
    picture: str | None = None


def watch_command(config: WatchConfig) -> Replay:
    """Play games to watch.

    Without an opponent= a player of a two-player game plays itself; with one it sits in the first
    seat of the first game, in the second of the next, and so on.
    """
    cfg, run = with_run(config)
    if cfg.picture is not None:
        board_pictures.check_picture(Path(cfg.picture), board_pictures.ANIMATIONS, cfg.delay)
    device = build_device(cfg.device, cfg.threads)
    game, player = game_and_player(cfg, device, run)
    assert player is not None
    players, names = [player], [player_name(cfg.player, run, cfg.search)]
    if cfg.opponent is not None or cfg.opponent_search is not None:
        opponent = build_opponent(cfg, game)
        assert opponent is not None
        players.append(opponent)
        names.append(player_name(cfg.opponent, None, cfg.opponent_search))
    games = play_games(game, players, names, cfg.games, cfg.seed)
    if cfg.picture is not None:
        board_pictures.write_games(games, Path(cfg.picture), cfg.delay)
        games = iter(())
    return Replay(games, cfg.delay, cfg.picture)


def show(replay: Replay) -> None:
    """Print games move by move: on a terminal each board replaces the one before after the delay;
    elsewhere, and without a delay, one below the other."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    for game in replay.games:
        if not sys.stdout.isatty() or console.is_dumb_terminal or not replay.delay:
            for frame in game:
                print(format_parts(*frame.parts), end="\n\n")
            continue
        with Live(console=console, auto_refresh=False) as live:
            for number, frame in enumerate(game):
                time.sleep(replay.delay if number else 0)
                live.update(stack_parts(*frame.parts), refresh=True)
    if replay.picture is not None:
        print(f"picture: {printable(replay.picture)}")
