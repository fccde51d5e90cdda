"""Plays the games of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlgames.core import progress
from rlgames.games.game import State
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import (
    FinalStates,
    PlyRecord,
    Trajectories,
    build_trajectories,
)

FACTOR = 6364136223846793005
"""Of Knuth's linear congruential generator: hashes are numbers to the base of it, modulo 2^64."""


@dataclass(frozen=True)
class PlayedGames:
    """G games that are over.

    hashes: int64 [G] on the CPU, of the moves and the final position, which holds what chance
    decided, the layout and the dice. trajectories: None unless recorded.
    """

    final: FinalStates
    hashes: Tensor
    trajectories: Trajectories | None = None


def play_all(pool: GamePool, records: bool = False) -> PlayedGames:
    """Play the games of a pool to their ends. records: whether to record every move."""
    count, device = pool.games, pool.rng.device
    hashes = torch.zeros(count, dtype=torch.int64, device=device)
    plies: list[PlyRecord] = []

    def on_ply(record: PlyRecord) -> None:
        sizes = record.sizes or [len(record.game)]
        columns = record.game, record.decision.action, record.before.done
        for game, action, is_over in zip(*(each.split(sizes) for each in columns), strict=True):
            before = hashes[game]
            hashes[game] = torch.where(is_over, before, before * FACTOR + action + 1)
        if records:
            plies.append(record)
        if progress.has_listener():
            live = int(torch.count_nonzero(~pool.state.done))
            progress.report((pool.num_started - live) / count)

    final = pool.run(on_ply=on_ply)
    moves = None
    if records:
        moves = build_trajectories(plies, torch.arange(count, device=device), final.score)
    return PlayedGames(final, _hash_games(hashes, final.state), moves)


def _hash_games(moves: Tensor, final: State) -> Tensor:
    """Int64 [G]: PlayedGames.hashes, from hashes of the moves."""
    content = final.to("cpu").content()
    factors = torch.from_numpy(Rng(0, "hashes").rows(content.shape[1]).keys.view(np.int64)) | 1
    return moves.cpu() * FACTOR + (content.long() * factors).sum(1)
