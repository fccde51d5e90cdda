"""One game in which moves can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.human import TakeBack
from rlgames.players.player import Player
from rlgames.rollouts.play import choose_actions
from rlgames.rollouts.trajectories import FinalStates, PlyRecord, Trajectories, build_trajectories


@dataclass(frozen=True)
class _Ply:
    """A ply as it is recorded, and the game and the generator before it."""

    state: State
    generator: Tensor
    player: int
    record: PlyRecord


class InteractiveGame:
    """A game from a position, between players of which the first may raise TakeBack.

    order: the index of the player in each seat. A move that is taken back and played again has the
    same chance, because the generator is taken back too.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        order: Sequence[int],
        state: State,
        rng: torch.Generator,
    ) -> None:
        self.game, self.players, self.order = game, players, order
        self.state, self.rng = state, rng
        self.plies: list[_Ply] = []

    def collect(self) -> tuple[Trajectories, FinalStates]:
        """Play to the end and record every move. Raises what the players raise."""
        while not bool(self.state.done[0]):
            try:
                self._play_ply()
            except TakeBack:
                self.take_back()
        game_index = torch.zeros(1, dtype=torch.int64, device=self.rng.device)
        records = [ply.record for ply in self.plies]
        final = FinalStates(self.state, len(records))
        return build_trajectories(records, game_index, final.score), final

    def take_back(self) -> None:
        """Return to the position before the first player's last move, if there is one."""
        numbers = [number for number, ply in enumerate(self.plies) if ply.player == 0]
        if numbers:
            ply = self.plies[numbers[-1]]
            self.state = ply.state
            self.rng.set_state(ply.generator)
            del self.plies[numbers[-1] :]

    def _play_ply(self) -> None:
        before, generator = self.state, self.rng.get_state()
        public = self.game.public(before)
        player = self.order[int(before.current_seat[0])]
        index = None
        if len(self.players) > 1:
            index = torch.tensor([player], device=self.rng.device)
        decision = choose_actions(self.players, index, public, self.rng)
        self.state = self.game.step(before, decision.action, self.rng)
        game_index = torch.zeros(1, dtype=torch.int64, device=self.rng.device)
        record = PlyRecord(public, decision, game_index, index, self.state)
        self.plies.append(_Ply(before, generator, player, record))
