"""Whether chance has a part in games: decided by what was played, not by what players declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.player import Decision, Player
from rlgames.rollouts.trajectories import PlyRecord, Trajectories

FACTOR = 6364136223846793005
"""Of Knuth's linear congruential generator: hashes are numbers to the base of it, modulo 2^64."""

ROWS_PER_PART = 1 << 16


class ChanceUsed(Exception):
    """A player drew a random number."""


class WithoutChance(Player):
    """The player, which raises ChanceUsed at its first move that needs a random number: a game that
    ends without one can only be played like this."""

    def __init__(self, player: Player) -> None:
        self.player = player

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return self.act(state, rng).action

    def act(self, state: State, rng: torch.Generator) -> Decision:
        before = rng.get_state()
        decision = self.player.act(state, rng)
        if not torch.equal(before, rng.get_state()):
            raise ChanceUsed
        return decision


def without_chance(players: Sequence[Player]) -> list[Player] | None:
    """The players as WithoutChance; None if one has state, which the attempt would change."""
    if any(player.is_stateful for player in players):
        return None
    return [WithoutChance(player) for player in players]


def list_openings(
    game: Game[Any], limit: int, layouts: State | None = None
) -> tuple[State, Tensor] | None:
    """All initial positions and their probabilities, float64, of a game without chance
    afterwards; None in others and if there are more than limit.

    layouts: the only initial positions, all equally likely; None: the game's.
    """
    if game.spec.num_chance_inputs:
        return None
    if layouts is None:
        return game.openings(limit)
    weight = torch.full((len(layouts),), 1 / len(layouts), dtype=torch.float64)
    return (layouts, weight) if len(layouts) <= limit else None


class MoveHashes:
    """A hash of the moves of each game. values: int64 [games]."""

    def __init__(self, games: int, device: torch.device) -> None:
        self.values = torch.zeros(games, dtype=torch.int64, device=device)

    def add(self, ply: PlyRecord) -> None:
        before = self.values[ply.game]
        after = before * FACTOR + ply.decision.action + 1
        self.values[ply.game] = torch.where(ply.before.done, before, after)


def hash_moves(moves: Trajectories) -> Tensor:
    """The same of recorded games."""
    values = torch.zeros(moves.num_games, dtype=torch.int64, device=moves.game.device)
    for game, action in zip(
        moves.game.split(moves.ply_sizes), moves.action.split(moves.ply_sizes), strict=True
    ):
        values[game] = values[game] * FACTOR + action + 1
    return values


def hash_games(moves: Tensor, final: State) -> Tensor:
    """Int64 [G], on the CPU: a hash of the moves and the final position of each game. The position
    holds what chance decided: the layout, the dice."""
    content = final.to("cpu").content()
    rng = torch.Generator().manual_seed(0)
    factors = torch.randint(2**62, (content.shape[1],), generator=rng)
    parts = [(part.long() * factors).sum(1) for part in content.split(ROWS_PER_PART)]
    return moves.cpu() * FACTOR + torch.cat(parts)
