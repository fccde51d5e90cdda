"""Greedy play by n-tuple networks of 2048 in a compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.core import progress
from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048
from rlgames.players.player import Agent, Player
from rlgames.policies.ntuple import Ntuple, flat_table, pack_network, reason_not_packed
from rlgames.sampling import Argmax

MOVES_PER_CALL = 200_000
"""Half a second at most, after which Ctrl-C is answered."""

MAX_PLIES = 4096
"""The most moves of each game in a call, so that progress is reported when few games are left."""

MIN_GAMES = 1000
"""Fewer games take less time than compiling the kernel, unless training has done so."""


class CompiledGreedyPlay:
    """Plays games on the CPU as this agent does, but with other random tiles.

    agent: it chooses the first best move by this policy, which kernels can read.
    """

    def __init__(self, game: Game2048, agent: Agent, policy: Ntuple) -> None:
        self._game, self._agent, self._policy = game, agent, policy
        self._network = pack_network(game, policy, policy.values.stride(0))

    def play(self, state: Any, batch: int, seed: int, *, observe: bool = False) -> tuple[Any, int]:
        """Play on to the ends of all games, as BoardGame.play_randomly."""
        rng, num_moves = np.random.default_rng(seed), 0
        while True:
            rows = (~state.done).nonzero()[:, 0]
            if not len(rows):
                break
            played, moves = self._play_window(state[rows], rng)
            state, num_moves = state.put(rows, played), num_moves + moves
            progress.report(float(state.done.float().mean()))
        return state, num_moves

    def _play_window(self, state: Any, rng: np.random.Generator) -> tuple[Any, int]:
        """Play some moves of each game in the kernel; the last positions, the number of moves."""
        from rlgames.kernels.td import PLAY, learn_games

        policy = self._policy
        plies, scale = 1 + MOVES_PER_CALL // len(state), np.float32(policy.score_scale)
        settings = PLAY._replace(plies=min(MAX_PLIES, plies), scale=scale)
        shared = flat_table(policy.values), self._network, self._game.rules, settings
        seed = rng.integers(1 << 62, dtype=np.uint64)
        return self._game.play_with(state, lambda games: learn_games(*shared, games, seed))


def find_greedy_play(game: Game[Any], player: Player, games: int) -> CompiledGreedyPlay | None:
    """The kernel that plays like this player, if there is one and compiling it pays."""
    if type(player) is not Agent or not isinstance(game, Game2048):
        return None
    policy, sampling = player.policy, player.sampling
    is_greedy = isinstance(sampling, Argmax) and sampling.deterministic
    if not is_greedy or not isinstance(policy, Ntuple) or reason_not_packed(game, policy):
        return None
    # Values between the statistics of temporal coherence: the kernel that trains them is compiled.
    is_interleaved = not policy.values.is_contiguous()
    pays = is_interleaved or games >= MIN_GAMES
    return CompiledGreedyPlay(game, player, policy) if pays else None
