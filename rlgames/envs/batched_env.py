"""Games as one seat experiences them: the core of the Gymnasium environments."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from rlgames.build.players import build_player
from rlgames.build.policies import make_reward
from rlgames.config.commands import EnvConfig
from rlgames.config.compose import load_config
from rlgames.config.overrides import words_of
from rlgames.config.registry import make
from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State
from rlgames.players.player import Player, Random
from rlgames.rewards import Reward
from rlgames.rng import Rng
from rlgames.rollouts.play import START
from rlgames.rollouts.trajectories import FinalStates, Trajectories

MAX_ILLEGAL_ACTIONS = 100
"""A game is truncated after this many illegal actions in a row."""


def make_config(**keys: Any) -> EnvConfig:
    """The config of an environment from its keys, which EnvConfig lists.

    The default reward has the name of the game's goal. Raises ConfigError for invalid keys.
    """
    return _make_config(*words_of(keys))


@cache  # programs often make the same environment many times
def _make_config(*overrides: str) -> EnvConfig:
    cfg = load_config(EnvConfig, overrides)
    if cfg.game is None:
        raise ConfigError("an environment needs a game", 'as in: game="tictactoe"')
    return cfg


class BatchedEnv:
    """Games side by side, where an agent has one seat and an opponent the other, if there are
    two; it is always the agent's turn.

    An illegal action changes nothing, and its reward is cfg.illegal. The first step also pays what
    happened before the agent's first move: an opponent can win before it. Until it is reset, a game
    that has ended ignores actions, draws no chance and pays 0.
    """

    def __init__(self, cfg: EnvConfig, num_games: int) -> None:
        assert cfg.game is not None
        self.game: Game[Any] = make("game", cfg.game)
        self.reward: Reward = make_reward(cfg.reward, self.game)
        self.seat, self.illegal_reward = cfg.seat - 1, cfg.illegal
        if self.game.spec.seats == 1 and (cfg.seat > 1 or cfg.opponent is not None):
            raise ConfigError(
                f"{self.game.spec.name} is a one-player game", "remove seat= and opponent="
            )
        self.opponent: Player = Random(self.game)
        if cfg.opponent is not None:
            self.opponent = build_player(cfg.opponent, self.game, cfg.game)
        self.rng = Rng().rows(num_games)
        """The random numbers of each row, [B]."""
        self.episode = torch.zeros(num_games, dtype=torch.int64)
        """How many games each row has started since it was seeded, [B]."""
        self.state: State = self.game.initial(num_games, self.rng)
        self.num_illegal = torch.zeros(num_games, dtype=torch.int64)
        """How many actions in a row were illegal, [B]."""
        self.paid_score = torch.zeros(num_games)
        """The agent's score up to its last reward, [B]."""
        self.ended_at_start = torch.zeros(num_games, dtype=torch.bool)
        """Whether the game was over before the agent's first step, which is still to come, [B]."""
        self.needs_reset = torch.ones(num_games, dtype=torch.bool)
        """Whether the game ended with an earlier step or was never started, [B]."""

    def seed(self, rows: Tensor, rng: Rng) -> None:
        """Give some rows, int64 [R], other random numbers, [R]."""
        keys = self.rng.keys.copy()
        keys[rows.numpy()] = rng.keys
        self.rng, self.episode = self.rng.with_keys(keys), self.episode.index_fill(0, rows, 0)

    @property
    def terminated(self) -> Tensor:
        """Bool [B]."""
        return self.state.done

    @property
    def truncated(self) -> Tensor:
        """Bool [B]."""
        return self.num_illegal >= MAX_ILLEGAL_ACTIONS

    def legal_action_mask(self) -> Tensor:
        """Bool [B, A]."""
        return self.game.legal_action_mask(self.state)

    def observe(self) -> Tensor:
        """Float32 [B, *spec.observation], as the agent sees it, finished games too."""
        finished = self.state.done.nonzero()[:, 0]
        if self.game.spec.seats == 1 or not len(finished):
            return self.game.observe(self.state)
        view = self.game.view_from_seat(self.state[finished], self.seat)
        return self.game.observe(self.state.put(finished, view))

    def reset(self, mask: Tensor) -> None:
        """Start new games in the rows of a mask, bool [B]."""
        rows = mask.nonzero()[:, 0]
        if not len(rows):
            return
        self.episode = self.episode + mask
        self._replace(rows, self.game.initial(len(rows), self._places(rows, START)))
        self.num_illegal[rows] = 0
        self.needs_reset = self.needs_reset & ~mask
        self.paid_score = torch.where(mask, self.state.score[:, self.seat], self.paid_score)
        self._play_opponent()
        self.ended_at_start = torch.where(mask, self.state.done, self.ended_at_start)

    def step(self, action: Tensor) -> Tensor:
        """Apply an action in every row, int64 [B]; returns the rewards, float32 [B]."""
        before = self.game.public(self.state)
        is_ignored = before.done | self.needs_reset
        is_legal = self.legal_action_mask().gather(1, action[:, None])[:, 0] & ~is_ignored
        rows = is_legal.nonzero()[:, 0]
        ends_turn = torch.zeros_like(is_legal)
        if len(rows):
            places = self._places(rows, self.game.ply(self.state[rows]))
            self._replace(rows, self.game.step(self.state[rows], action[rows], places))
            ends_turn = self.state.turn > before.turn
            self._play_opponent()
        self.num_illegal = torch.where(is_legal, 0, self.num_illegal + ~is_ignored)
        is_due = is_legal | self.ended_at_start
        score = self.state.score[:, self.seat]
        row = torch.arange(len(action))
        trajectories = Trajectories(
            state=before,
            action=action,
            game=row,
            seat=torch.full_like(row, self.seat),
            player=torch.zeros_like(row),
            score_delta=score - self.paid_score,
            ends_turn=ends_turn,
            ply_sizes=[len(row)],
            num_games=len(row),
        )
        reward = self.reward.rewards(trajectories, FinalStates(self.state, len(rows)))
        self.paid_score = torch.where(is_due, score, self.paid_score)
        self.ended_at_start = torch.zeros_like(is_due)
        self.needs_reset = self.needs_reset | self.terminated | self.truncated
        unpaid = torch.where(is_ignored, 0.0, self.illegal_reward)
        return torch.where(is_due, reward, unpaid)

    def _play_opponent(self) -> None:
        """Let the opponent move until it is the agent's turn or the game is over."""
        while self.game.spec.seats > 1:
            is_opponents_turn = ~self.state.done & (self.state.current_seat != self.seat)
            rows = is_opponents_turn.nonzero()[:, 0]
            if not len(rows):
                return
            state = self.state[rows]
            places = self._places(rows, self.game.ply(state))
            action = self.opponent.choose(self.game.public(state), places)
            self._replace(rows, self.game.step(state, action, places))

    def _places(self, rows: Tensor, ply: int | Tensor) -> Rng:
        """The random numbers of a ply, by its number, in the games of some rows, int64 [R]."""
        return self.rng[rows].fold_in(self.episode[rows]).fold_in(ply)

    def _replace(self, rows: Tensor, new: State) -> None:
        """Replace the positions in some rows, int64 [R], ascending."""
        self.state = new if len(rows) == len(self.state) else self.state.put(rows, new)
