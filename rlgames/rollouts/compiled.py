"""Play in one call, where a kernel knows the rules of the game and the policy of all seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import Game
from rlgames.kernels.mlp import MAX_ROWS, NO_POLICY
from rlgames.kernels.play import Choice, Moves, Scratch, play_plies
from rlgames.kernels.stepping import Games
from rlgames.players.player import Agent, Decision, Player, Random
from rlgames.rng import Rng
from rlgames.rollouts.trajectories import PlyRecord
from rlgames.sampling import Argmax, Stochastic

MAX_KEPT = 1 << 16
"""About as many moves are kept at once, for memory, and so that Ctrl-C is answered."""


class CompiledPlay:
    """Plays as an agent and random players do, but for the last bits of the policy's outputs.

    The weights are those that the policy has now.
    """

    def __init__(self, game: BoardGame, players: Sequence[Player], policy: Any) -> None:
        """policy: of the only agent among the players; others are random."""
        self.game, self.policy = game, policy
        self.is_random = np.array([type(player) is Random for player in players])
        self.agent = next((player for player in players if isinstance(player, Agent)), None)
        rule = Argmax("first") if self.agent is None else self.agent.sampling
        temperature = rule.temperature if isinstance(rule, Stochastic) else 1.0
        self.choice = Choice(rule.deterministic, np.float32(temperature))
        actions = game.spec.actions
        self.scratch = Scratch(
            np.empty((MAX_ROWS, policy.num_inputs), np.float32),
            np.empty((MAX_ROWS, actions + policy.has_value), np.float32),
            np.empty(actions, np.bool_),
            np.empty(actions, np.float32),
            np.empty(1, np.uint64),
        )

    @classmethod
    def find(cls, game: Game[Any], players: Sequence[Player]) -> CompiledPlay | None:
        """None if no kernel plays this game as these players do."""
        agents = {player for player in players if type(player) is not Random}
        if not isinstance(game, BoardGame) or len(agents) > 1:
            return None
        policy: Any = NO_POLICY
        for agent in agents:
            policy = None
            if isinstance(agent, Agent) and type(agent) is Agent:
                rule = agent.sampling
                if type(rule) is Stochastic or (isinstance(rule, Argmax) and rule.deterministic):
                    policy = agent.policy.compiled(game)
        return None if policy is None else cls(game, players, policy)

    def begin(self, room: int) -> None:
        """Keep the next moves, at least this many."""
        spec, words = self.game.spec, len(self.game.rules.start)
        self.moves = Moves(
            np.empty(room, np.int64),
            _empty_games(room, spec.seats, words),
            _empty_games(room, spec.seats, words),
            np.empty(room, np.int64),
            np.empty(room, np.float32),
            np.empty(room, np.float32),
            np.empty(room, np.int64),
            np.zeros(2, np.int64),
        )

    @property
    def num_moves(self) -> int:
        """The moves that are kept."""
        return int(self.moves.counts[1])

    def play(
        self,
        state: BoardState,
        number: Tensor,
        seating: Tensor | None,
        rng: Rng,
        first_game: int,
        min_live: int,
        max_plies: int,
    ) -> tuple[int, BoardState]:
        """Play from positions [B] for max_plies, or until fewer than min_live games are not over or
        there is no more room; the number of plies, and the positions reached.

        number: int64 [B], of the games, counted from first_game on. seating: int64 [B, P], the
        index of the player in each seat; None: of the only player. rng: the stream of the games.
        """
        games = Games(*map(np.copy, state.games()))
        rows = np.flatnonzero(~games.done)
        seated = np.zeros_like(games.score, np.int64) if seating is None else seating.numpy()
        plies = play_plies(
            self.game.rules,
            self.policy,
            self.choice,
            games,
            number.numpy(),
            rows,
            rng.keys[()],
            first_game,
            self.is_random[seated],
            min_live,
            max_plies,
            self.scratch,
            self.moves,
        )
        return plies, BoardState.of(games)

    def record(self, seating: Tensor | None) -> PlyRecord:
        """The moves that are kept. seating: int64 [G, P], of all games."""
        moves, agent = self.moves, self.agent
        plies, count = moves.counts.tolist()
        game, action, log_prob, value = (
            torch.from_numpy(column[:count])
            for column in (moves.game, moves.action, moves.log_prob, moves.value)
        )
        before, after = (
            BoardState(*(torch.from_numpy(column[:count]) for column in games))
            for games in (moves.before, moves.after)
        )
        player = None if seating is None else seating[game, before.current_seat]
        decision = Decision(action)
        if agent is not None and agent.records_log_prob:
            has_value = self.policy.has_value and agent.sampling.is_softmax
            decision = Decision(action, None, log_prob, None, value if has_value else None)
        return PlyRecord(before, decision, game, player, after, moves.sizes[:plies].tolist())


def _empty_games(count: int, seats: int, words: int) -> Games:
    return Games(
        np.empty(count, np.bool_),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, seats), np.float32),
        np.empty((count, words), np.int64),
    )
