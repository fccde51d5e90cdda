"""One game, ply by ply, with moves that can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.rollouts.play import play_ply
from rlgames.rollouts.trajectories import FinalStates, PlyRecord, Trajectories, build_trajectories


class TakeBack(Exception):
    """A player takes back its last move."""


class InteractiveGame:
    """A game in progress from a position, between players. The first may raise TakeBack.

    The terminal plays it to its end (collect), a page ply by ply. players and order, the index of
    the player in each seat, may change between two plies. A move that is taken back and played
    again has the same chance. rng: of the game, one row.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        order: Sequence[int],
        state: State,
        rng: Rng,
    ) -> None:
        self.game, self.players, self.order = game, players, order
        self.state, self.rng = state, rng
        self.plies: list[tuple[int, PlyRecord]] = []
        """The index of the player of each ply, and its record."""
        self._earlier: list[State] = []
        """The position before each ply."""

    @property
    def positions(self) -> list[State]:
        """The full position before each ply, and the present one."""
        return [*self._earlier, self.state]

    def collect(self) -> tuple[Trajectories, FinalStates]:
        """Play to the end and record every move. Raises what the players raise."""
        while not self.is_over:
            try:
                self.play_ply()
            except TakeBack:
                self.take_back()
        return self.results()

    @property
    def is_over(self) -> bool:
        return bool(self.state.done[0])

    @property
    def mover(self) -> int:
        """The index of the player who is to move."""
        return self.order[int(self.state.current_seat[0])]

    def results(self) -> tuple[Trajectories, FinalStates]:
        """The moves of a finished game, and how it ended."""
        game_index = torch.zeros(1, dtype=torch.int64, device=self.rng.device)
        records = [record for _, record in self.plies]
        final = FinalStates(self.state, len(records))
        return build_trajectories(records, game_index, final.score), final

    def take_back(self) -> None:
        """Return to the position before the first player's last move, if there is one."""
        numbers = [number for number, (player, _) in enumerate(self.plies) if player == 0]
        if numbers:
            self.state = self._earlier[numbers[-1]]
            del self._earlier[numbers[-1] :], self.plies[numbers[-1] :]

    def play_ply(self) -> None:
        """Play the move of the player whose turn it is. Raises what the player raises."""
        before, rng = self.state, self.rng.fold_in(self.game.ply(self.state))
        player = self.mover
        index = None
        if len(self.players) > 1:
            index = torch.tensor([player], device=rng.device)
        public, decision, after = play_ply(self.game, self.players, index, before, rng)
        self._earlier.append(before)
        self.state = after
        game_index = torch.zeros(1, dtype=torch.int64, device=rng.device)
        record = PlyRecord(public, decision, game_index, index, self.state)
        self.plies.append((player, record))


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
        winner = score.index(max(score))
        ending = f"{names[winner]} wins"
        if seat is not None:
            ending = "you win" if seat == winner else "you lose"
        if min(score) == max(score):
            ending = "a draw"
    return f"{ending} after {turns} turns"
