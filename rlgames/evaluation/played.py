"""Plays the games of an evaluation, by their players or in kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core import progress
from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game, State
from rlgames.kernels.words import Words
from rlgames.players.player import Agent, Player, Random
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, InitialStates, Openings, first_places
from rlgames.rollouts.trajectories import (
    FinalStates,
    PlyRecord,
    Trajectories,
    build_trajectories,
)
from rlgames.sampling import Argmax

if TYPE_CHECKING:
    from rlgames.policies.ntuple import Ntuple

MOVES_PER_CALL = 200_000
"""Greedy play in a kernel: half a second at most, after which Ctrl-C is answered."""

MAX_PLIES = 4096
"""The most moves of each game in a call, so that progress is reported when few games are left."""

MIN_GREEDY_GAMES = 1000
"""Fewer games take less time than compiling the kernel, unless training has done so."""

FACTOR = 6364136223846793005
"""Of Knuth's linear congruential generator: hashes are numbers to the base of it, modulo 2^64."""


@dataclass(frozen=True)
class PlayedGames:
    """G games that are over.

    hashes: int64 [G] on the CPU, of the moves and the final position, which holds what chance
    decided, the layout and the dice; None if a kernel played. trajectories: None unless recorded.
    """

    final: FinalStates
    hashes: Tensor | None = None
    trajectories: Trajectories | None = None


@dataclass(frozen=True)
class GamesToPlay:
    """Games to play, at most `batch` of them side by side; the fields are as in GamePool."""

    game: Game[Any]
    players: Sequence[Player]
    games: int
    batch: int
    initial_states: InitialStates
    seating: Tensor | None = None
    openings: Openings | None = None

    def play(self, rng: Rng, records: bool = False) -> PlayedGames:
        """Play all games. rng: their stream. records: whether to record every move, which no kernel
        does."""
        is_seen = records or self.openings is not None
        if not is_seen and (kernel := find_kernel(self, rng.device)) is not None:
            return PlayedGames(kernel(rng))
        count = self.games
        pool = GamePool(
            self.game,
            self.players,
            count,
            rng,
            batch=self.batch,
            initial_states=self.initial_states,
            seating=self.seating,
            openings=self.openings,
        )
        hashes = torch.zeros(count, dtype=torch.int64, device=rng.device)
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
            moves = build_trajectories(plies, torch.arange(count, device=rng.device), final.score)
        return PlayedGames(final, _hash_games(hashes, final.state), moves)


def _hash_games(moves: Tensor, final: State) -> Tensor:
    """Int64 [G]: PlayedGames.hashes, from hashes of the moves."""
    content = final.to("cpu").content()
    factors = torch.from_numpy(Rng(0, "hashes").rows(content.shape[1]).keys.view(np.int64)) | 1
    return moves.cpu() * FACTOR + (content.long() * factors).sum(1)


def find_kernel(games: GamesToPlay, device: torch.device) -> Callable[[Rng], FinalStates] | None:
    """What plays like these players, if there is one and loading it pays.

    If all of them choose at random, it does for as many games as min_random_games of the rules asks
    for.
    """
    game, players = games.game, games.players
    if device.type != "cpu" or not isinstance(game, BoardGame):
        return None
    play: Callable[[Any, Rng], tuple[Any, int]]
    if (policy := _greedy_policy(game, players[0], games.games)) is not None:
        play = partial(play_greedily, game, policy)
    elif all(type(player) is Random for player in players):
        if games.games < game.min_random_games:
            return None

        def play(start: Any, rng: Rng) -> tuple[Any, int]:
            return game.play_randomly(start, games.batch, rng)
    else:
        return None

    def play_all(rng: Rng) -> FinalStates:
        start = games.initial_states(0, games.games, first_places(rng, 0, games.games))
        return FinalStates(*play(start, rng.rows(games.games)))

    return play_all


def _greedy_policy(game: BoardGame, player: Player, games: int) -> Ntuple | None:
    """The policy of a greedy agent that a kernel can play, if compiling that pays."""
    if type(player) is not Agent or (game.spec.goal, game.spec.seats) != ("score", 1):
        return None
    from rlgames.policies.ntuple import Ntuple, reason_not_packed

    policy, sampling = player.policy, player.sampling
    is_greedy = isinstance(sampling, Argmax) and sampling.deterministic
    if not is_greedy or not isinstance(policy, Ntuple) or reason_not_packed(game, policy):
        return None
    # Values between the statistics of temporal coherence: the kernel that trains them is compiled.
    is_interleaved = not policy.values.is_contiguous()
    return policy if is_interleaved or games >= MIN_GREEDY_GAMES else None


def play_greedily(game: BoardGame, policy: Ntuple, state: Any, rng: Rng) -> tuple[Any, int]:
    """Play 2048 to the ends of all games as a greedy agent does; the final positions and the number
    of moves. rng: of the games."""
    from rlgames.kernels.td import PLAY, learn_games

    (table, network), num_moves = policy.packed(game), 0

    def play_window(live: Any, keys: Words) -> tuple[Any, int]:
        plies = min(MAX_PLIES, 1 + MOVES_PER_CALL // len(live))
        settings = PLAY._replace(plies=plies, scale=np.float32(policy.score_scale))
        return game.play_with(
            live, lambda games: learn_games(table, network, game.rules, settings, games, keys)
        )

    while len(rows := (~state.done).nonzero()[:, 0]):
        played, moves = play_window(state[rows], rng[rows].keys)
        state, num_moves = state.put(rows, played), num_moves + moves
        progress.report(float(state.done.float().mean()))
    return state, num_moves
