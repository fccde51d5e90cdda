"""Games move by move, with the players' probabilities on the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.core.rng import make_generator
from rlgames.factory.agents import make_advisor
from rlgames.games.game import Game, State
from rlgames.players.player import HasProbabilities, Player
from rlgames.rollouts.trace import Ply, before_chance, describe_ending, play_by_ply
from rlgames.terminal.boards import BoardView


@dataclass(frozen=True)
class Frame:
    """A position of a game: the move in words, the board, and the action that is taken, if any."""

    title: str
    board: BoardView
    action: int | None = None

    @property
    def parts(self) -> tuple[str, BoardView]:
        return self.title, self.board


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


def play_games(
    game: Game[Any], players: Sequence[Player], names: Sequence[str], count: int, seed: int
) -> Iterator[Iterator[Frame]]:
    """Games one after the other, each with its own random stream; two players change seats."""
    for number in range(count):
        order = -1 if number % 2 else 1
        rng = make_generator(seed, f"trace {number}", game.device)
        yield frames(game, players[::order], names[::order], rng)


def probabilities(player: Player, state: State) -> Tensor | None:
    """Float64 [A]: what the player is likely to do at a live public position, if it tells."""
    return player.probabilities(state)[0].cpu() if isinstance(player, HasProbabilities) else None


def _describe_move(game: Game[Any], ply: Ply, seats: Sequence[str]) -> str:
    who = f", {seats[int(ply.before.current_seat[0])]}" if len(seats) > 1 else ""
    name = game.action_to_string(ply.before, 0, ply.action)
    gain = ply.score_delta()
    scored = f", scores {gain:g}" if gain and game.spec.goal != "outcome" else ""
    return f"turn {int(ply.before.turn[0]) + 1}{who}: {name}{scored}"
