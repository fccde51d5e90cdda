"""`rlgames watch`: games move by move, with the players' probabilities or values on the board."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.build.players import make_advisor
from rlgames.commands import board_pictures
from rlgames.commands.board_pictures import Frame
from rlgames.commands.match import open_match, player_name
from rlgames.config.commands import WatchConfig
from rlgames.core.text import printable
from rlgames.evaluation.advice import opinion
from rlgames.games.game import RESIGNS, Game, State
from rlgames.games.notation import move_name
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.rollouts.interactive import InteractiveGame, describe_ending
from rlgames.rollouts.play import START
from rlgames.terminal.boards import BoardView, format_parts, stack_parts


@dataclass(frozen=True)
class Result:
    """Games, each as the frames of its moves, and the seconds between two frames; or the picture
    that shows them."""

    games: Iterator[Iterator[Frame]]
    delay: float
    picture: str | None = None


def run(config: WatchConfig) -> Result:
    """Play games to watch.

    Without an opponent= a player of a two-player game plays itself; with one it sits in the first
    seat of the first game, in the second of the next, and so on.
    """
    if config.picture is not None:
        board_pictures.check_picture(Path(config.picture), board_pictures.ANIMATIONS, config.delay)
    match = open_match(config)
    cfg, game = match.cfg, match.game
    players, names = [match.player], [player_name(cfg.player, match.run, cfg.search)]
    if match.opponent is not None and (cfg.opponent or cfg.opponent_search):
        players.append(match.opponent)
        names.append(player_name(cfg.opponent, None, cfg.opponent_search))
    games = _play_games(game, players, names, cfg.games, cfg.seed)
    if cfg.picture is not None:
        board_pictures.write_games(games, Path(cfg.picture), cfg.delay)
        games = iter(())
    return Result(games, cfg.delay, cfg.picture)


def _play_games(
    game: Game[Any], players: Sequence[Player], names: Sequence[str], count: int, seed: int
) -> Iterator[Iterator[Frame]]:
    """Games one after the other, each with its own random stream; two players change seats."""
    for number in range(count):
        order = -1 if number % 2 else 1
        rng = Rng(seed, "watch", game.device)[number : number + 1]
        yield _frames(game, players[::order], names[::order], rng)


def _frames(
    game: Game[Any], players: Sequence[Player], names: Sequence[str], rng: Rng
) -> Iterator[Frame]:
    """One game: the board before each move, with the mover's opinion and the move in words,
    and then the last board. players, names: one, or one in each seat."""
    seats = [f"seat {seat + 1}, {names[seat % len(names)]}" for seat in range(game.spec.seats)]
    advisors = [make_advisor(player) for player in players]
    known: dict[int, State] = {}  # the position as each seat knew it last
    order = [seat % len(players) for seat in range(game.spec.seats)]
    play = InteractiveGame(game, players, order, game.initial(1, rng.fold_in(START)), rng)
    while not play.is_over:
        before, current_seat = play.state, int(play.state.current_seat[0])
        play.play_ply()
        action, seen = play.plies[-1][1].decision.action, game.public(before)
        thinks = opinion(advisors[current_seat % len(advisors)], seen)
        view = BoardView(game, seen, *thinks, known.get(current_seat))
        title = _describe_move(game, before, int(action), play.state, seats)
        yield Frame(title, view, None if action == RESIGNS else int(action))
        if game.spec.hidden:
            known[current_seat] = seen
        else:  # a spectator sees what chance has added to the move
            moved = game.apply_action(before, action) if game.spec.num_chance_inputs else before
            known = dict.fromkeys(range(game.spec.seats), moved)
    last = game.view_from_seat(play.state, current_seat)
    yield Frame(
        describe_ending(game, last, None, [f"{seat}," for seat in seats]),
        BoardView(game, last, since=known[current_seat], reveal=True),
    )


def _describe_move(
    game: Game[Any], before: State, action: int, after: State, seats: Sequence[str]
) -> str:
    seat = int(before.current_seat[0])
    who = f", {seats[seat]}" if len(seats) > 1 else ""
    name = move_name(game, before, 0, action)
    gain = float(after.score[0, seat] - before.score[0, seat])
    scored = f", scores {gain:g}" if gain and game.spec.goal != "outcome" else ""
    return f"turn {int(before.turn[0]) + 1}{who}: {name}{scored}"


def show(result: Result) -> None:
    """Print games move by move: on a terminal each board replaces the one before after the delay;
    elsewhere, and without a delay, one below the other."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    for game in result.games:
        if not sys.stdout.isatty() or console.is_dumb_terminal or not result.delay:
            for frame in game:
                print(format_parts(frame.title, frame.board), end="\n\n")
            continue
        with Live(console=console, auto_refresh=False) as live:
            for number, frame in enumerate(game):
                time.sleep(result.delay if number else 0)
                live.update(stack_parts(frame.title, frame.board), refresh=True)
    if result.picture is not None:
        print(f"picture: {printable(result.picture)}")
