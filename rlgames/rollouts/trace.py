"""One game, ply by ply, for those who look on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.rollouts.play import GamePool


@dataclass(frozen=True)
class Ply:
    """A move of a single game: the full positions before and after it."""

    before: State
    action: int
    after: State

    def score_delta(self) -> float:
        """What the move scored for who made it."""
        seat = int(self.before.current_seat[0])
        return float(self.after.score[0, seat] - self.before.score[0, seat])


def play_by_ply(game: Game[Any], players: Sequence[Player], rng: torch.Generator) -> Iterator[Ply]:
    """One game from an opening that rng draws to its end; players: one, or one in each seat."""
    games = GamePool(game, players, 1, rng)
    over = False
    while not over:
        before = games.state
        moves, found = games.collect(1)
        over = bool(found.state.done[0])
        yield Ply(before, int(moves.action[0]), found.state)


def before_chance(game: Game[Any], ply: Ply) -> State:
    """The position if chance had added nothing to a move, or, where nothing is left to chance, the
    one before the move: what differs from it afterwards is new."""
    if not game.spec.num_chance_inputs:
        return ply.before
    device = ply.before.done.device
    moved: State = game.apply_action(ply.before, torch.tensor([ply.action], device=device))
    return moved


def describe_ending(
    game: Game[Any], state: State, seat: int | None, names: Sequence[str] = ("seat 1", "seat 2")
) -> str:
    """How a game went in words, for whoever sat in a seat, or for one who looked on, who knows the
    players by these names."""
    turns, score = int(state.turn[0]), state.score[0].tolist()
    how = "the whole fleet is sunk"
    if game.spec.goal == "score":
        how = f"over with a score of {score[0]:g}"
    if game.spec.goal == "outcome":
        best = max(score)
        winner = score.index(best)
        how = (
            f"{names[winner]} wins" if seat is None else "you win" if seat == winner else "you lose"
        )
        how = "a draw" if min(score) == best else how
    return f"{how} after {turns} turns"
