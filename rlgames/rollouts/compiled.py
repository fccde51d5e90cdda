"""Play in one call, where a kernel knows the rules of the game and the policy of all seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import Game
from rlgames.kernels.play import Choice, Moves, play_plies
from rlgames.kernels.stepping import Games
from rlgames.players.player import Agent, Decision, Player
from rlgames.rng import Rng
from rlgames.rollouts.trajectories import PlyRecord
from rlgames.sampling import Argmax, Stochastic

MOVES_PER_CALL = 1 << 16
"""About as many at most, for memory, and so that Ctrl-C is answered."""


class CompiledPlay:
    """Plays as an agent does in all seats, but for the last bits of the network's outputs.

    The weights are those that the policy has now.
    """

    def __init__(self, game: BoardGame, agent: Agent, choice: Choice, policy: Any) -> None:
        self.game, self.agent, self.choice, self.policy = game, agent, choice, policy

    @classmethod
    def find(cls, game: Game[Any], players: Sequence[Player]) -> CompiledPlay | None:
        """None if no kernel plays this game as these players do."""
        agent = players[0]
        if not isinstance(game, BoardGame) or type(agent) is not Agent or len({*players}) > 1:
            return None
        sampling = agent.sampling
        is_greedy = isinstance(sampling, Argmax) and sampling.deterministic
        if not is_greedy and type(sampling) is not Stochastic:
            return None
        policy = agent.policy.compiled(game)
        if policy is None:
            return None
        temperature = sampling.temperature if isinstance(sampling, Stochastic) else 1.0
        return cls(game, agent, Choice(is_greedy, np.float32(temperature)), policy)

    def play(
        self, state: BoardState, rng: Rng, min_live: int, max_plies: int
    ) -> tuple[PlyRecord, BoardState]:
        """Play from positions [B] for max_plies, or until fewer than min_live games are not over.

        Returns the moves, whose `game` is the row, and the positions reached.

        rng: of the games.
        """
        live = int(torch.count_nonzero(~state.done))
        plies = min(max_plies, max(1, MOVES_PER_CALL // live))
        games, room = Games(*map(np.copy, state.games())), plies * live
        seats, words = state.score.shape[1], state.words.shape[1]
        moves = Moves(
            np.empty(room, np.int64),
            _empty_games(room, seats, words),
            _empty_games(room, seats, words),
            np.empty(room, np.int64),
            np.empty(room, np.float32),
            np.empty(room, np.float32),
        )
        sizes = np.empty(plies, np.int64)
        rules, arguments = self.game.rules, (games, rng.keys, min_live, moves, sizes)
        num_plies = play_plies(rules, self.policy, self.choice, *arguments)
        ply_sizes = sizes[:num_plies].tolist()
        return self._record(moves, ply_sizes), BoardState.of(games)

    def _record(self, moves: Moves, sizes: list[int]) -> PlyRecord:
        count, agent = sum(sizes), self.agent
        game, action, log_prob, value = (
            torch.from_numpy(column[:count])
            for column in (moves.game, moves.action, moves.log_prob, moves.value)
        )
        before, after = (
            BoardState(*(torch.from_numpy(column[:count]) for column in games))
            for games in (moves.before, moves.after)
        )
        decision = Decision(action)
        if agent.records_log_prob:
            has_value = self.policy.has_value and agent.sampling.is_softmax
            decision = Decision(action, None, log_prob, None, value if has_value else None)
        return PlyRecord(before, decision, game, None, after, sizes)


def _empty_games(count: int, seats: int, words: int) -> Games:
    return Games(
        np.empty(count, np.bool_),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, seats), np.float32),
        np.empty((count, words), np.int64),
    )
