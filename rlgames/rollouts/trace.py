"""One game, ply by ply, for spectators."""

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
        """The points that the move scored for the seat that made it."""
        seat = int(self.before.current_seat[0])
        return float(self.after.score[0, seat] - self.before.score[0, seat])


def play_by_ply(game: Game[Any], players: Sequence[Player], rng: torch.Generator) -> Iterator[Ply]:
    """Play one game from an initial position drawn with rng; players: one, or one per seat."""
    pool = GamePool(game, players, 1, rng)
    is_done = False
    while not is_done:
        before = pool.state
        trajectories, final = pool.collect(1)
        is_done = bool(final.state.done[0])
        yield Ply(before, int(trajectories.action[0]), final.state)


def before_chance(game: Game[Any], ply: Ply) -> State:
    """The position after the move and before chance; in games without chance the one before the
    move. A spectator sees the difference to the position after the ply."""
    if not game.spec.num_chance_inputs:
        return ply.before
    device = ply.before.done.device
    return game.apply_action(ply.before, torch.tensor([ply.action], device=device))


def describe_ending(
    game: Game[Any], state: State, seat: int | None, names: Sequence[str] = ("seat 1", "seat 2")
) -> str:
    """How a game ended, in words: for the person in a seat, or with the players' names for a
    spectator (None)."""
    turns, score = int(state.turn[0]), state.score[0].tolist()
    ending = "the whole fleet is sunk"
    if game.spec.goal == "score":
        ending = f"over with a score of {score[0]:g}"
    if game.spec.goal == "outcome":
        ending = _describe_outcome(score, seat, names)
    return f"{ending} after {turns} turns"


def _describe_outcome(score: list[float], seat: int | None, names: Sequence[str]) -> str:
    best = max(score)
    if min(score) == best:
        return "a draw"
    winner = score.index(best)
    if seat is None:
        return f"{names[winner]} wins"
    return "you win" if seat == winner else "you lose"
