"""`rlgames watch`: games move by move, with what the players think on the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.commands import board_pictures
from rlgames.commands.run_config import config_for_run, game_and_player, player_name
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.drawing.terminal import BoardView
from rlgames.factory.agents import build_player, make_advisor
from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.rollouts.trace import Ply, before_chance, describe_ending, play_by_ply


@dataclass(frozen=True)
class Frame:
    """A position of a game: the move in words, the board, and the action that is taken, if any."""

    title: str
    board: BoardView
    action: int | None = None

    @property
    def parts(self) -> tuple[str, BoardView]:
        return self.title, self.board


@dataclass(frozen=True)
class Replay:
    """Games, each as the frames of its moves, and the seconds between two frames; or the picture
    that shows them."""

    games: Iterator[Iterator[Frame]]
    delay: float
    picture: str | None = None


def watch_command(run: Path | None, overrides: list[str]) -> Replay:
    """Play games to watch.

    Without an opponent= a player of a two-player game plays itself; with one it sits in the first
    seat of the first game, in the second of the next, and so on.
    """
    cfg = config_for_run("watch", run, overrides)
    if cfg.picture is not None:
        board_pictures.check_picture(Path(cfg.picture), board_pictures.ANIMATIONS, cfg.delay)
    game, player = game_and_player(cfg, run)
    if player is None:
        raise ConfigError("watch needs a run, or a player", "as in: rlgames watch player=random")
    search = cfg.get("search")
    players, names = [player], [player_name(cfg.get("player"), run, search)]
    if cfg.get("opponent") is not None:
        if game.spec.seats == 1:
            raise ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
        players.append(build_player(cfg.opponent, cfg, game))
        names.append(player_name(cfg.opponent))
    device = torch.device(cfg.device)

    def played() -> Iterator[Iterator[Frame]]:
        for number in range(cfg.games):
            order = -1 if number % 2 else 1
            rng = make_generator(cfg.seed, f"trace {number}", device)
            yield frames(game, players[::order], names[::order], rng)

    if cfg.picture is not None:
        board_pictures.write_games(played(), Path(cfg.picture), cfg.delay)
        return Replay(iter(()), cfg.delay, cfg.picture)
    return Replay(played(), cfg.delay)


def frames(
    game: Game[Any], players: Sequence[Player], names: Sequence[str], rng: torch.Generator
) -> Iterator[Frame]:
    """One game: the board before each move, with the mover's probabilities and the move in words,
    and then the last board. players, names: one, or one in each seat."""
    seats = [f"seat {seat + 1}, {names[seat % len(names)]}" for seat in range(game.spec.seats)]
    advisors = [make_advisor(player) for player in players]
    known: dict[int, State] = {}  # the position as each seat knew it last
    for ply in play_by_ply(game, players, rng):
        current_seat = int(ply.before.current_seat[0])
        seen = game.public(ply.before)
        likely = probabilities(advisors[current_seat % len(advisors)], seen)
        view = BoardView(game, seen, likely, known.get(current_seat))
        yield Frame(_describe_move(game, ply, seats), view, ply.action)
        if game.spec.hidden:
            known[current_seat] = seen
        else:
            known = dict.fromkeys(range(game.spec.seats), before_chance(game, ply))
    last = game.view_from_seat(ply.after, current_seat)
    yield Frame(
        describe_ending(game, last, None, [f"{seat}," for seat in seats]),
        BoardView(game, last, None, known[current_seat], reveal=True),
    )


def probabilities(player: Player, state: State) -> Tensor | None:
    """Float64 [A]: what the player is likely to do at a live public position, if it tells."""
    try:
        return player.probabilities(state)[0].cpu()
    except NotImplementedError:
        return None


def _describe_move(game: Game[Any], ply: Ply, seats: Sequence[str]) -> str:
    who = f", {seats[int(ply.before.current_seat[0])]}" if len(seats) > 1 else ""
    name = game.action_to_string(ply.before, 0, ply.action)
    gain = ply.score_delta()
    scored = f", scores {gain:g}" if gain and game.spec.goal != "outcome" else ""
    return f"turn {int(ply.before.turn[0]) + 1}{who}: {name}{scored}"
