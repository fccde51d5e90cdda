"""Games as one seat meets them: what the environments of Gymnasium are made of."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor

from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text
from rlgames.factory.agents import build_player
from rlgames.factory.components import build_game, build_reward
from rlgames.games.game import Game
from rlgames.players.player import Player, Random
from rlgames.rewards import Reward
from rlgames.rollouts.trajectories import FinalStates, Trajectories

MOST_ILLEGAL = 100
"""A game is given up after so many illegal actions in a row."""


def checked(**keys: Any) -> DictConfig:
    """The config of an environment from its keys, as EnvConfig lists them.

    The reward is by default the one that is named like what the game is about.
    Raises ConfigError for bad input.
    """
    return _checked(
        *(
            f"{name}={value if isinstance(value, str) else json_text(value)}"
            for name, value in keys.items()
        )
    )


@cache  # environments are often made many times over
def _checked(*words: str) -> DictConfig:
    cfg = load_config("env", list(words))
    if "game" not in cfg:
        raise ConfigError("an environment needs a game", 'as in: game="tictactoe"')
    if "reward" not in cfg:
        cfg = load_config("env", [*words, f"reward={build_game(cfg).spec.goal}"])
    cfg.device = "cpu"  # where a run plays that is the opponent
    return cfg


class Seated:
    """Count games side by side, in which an agent sits in one seat and an opponent in the other,
    if there is one; the agent is always to move.

    An action that is not legal changes nothing, and its reward is cfg.illegal.
    """

    def __init__(self, cfg: DictConfig, count: int) -> None:
        self.game: Game[Any] = build_game(cfg)
        self.reward: Reward = build_reward(cfg, self.game)
        self.seat, self.illegal = cfg.seat - 1, cfg.illegal
        if self.game.spec.seats == 1 and (cfg.seat > 1 or cfg.get("opponent") is not None):
            raise ConfigError(
                f"{self.game.spec.name} is played alone", "leave seat= and opponent= out"
            )
        self.opponent: Player = Random(self.game)
        if cfg.get("opponent") is not None:
            self.opponent = build_player(cfg.opponent, cfg, self.game)
        self.rng = torch.Generator()
        self.state = self.game.initial(count, self.rng)
        self.refused = torch.zeros(count, dtype=torch.int64)
        """How many actions in a row were illegal, [B]."""

    @property
    def done(self) -> Tensor:
        """Bool [B]."""
        done: Tensor = self.state.done
        return done

    @property
    def given_up(self) -> Tensor:
        """Bool [B]."""
        return self.refused >= MOST_ILLEGAL

    def legal_action_mask(self) -> Tensor:
        """Bool [B, A]."""
        return self.game.legal_action_mask(self.state)

    def observe(self) -> Tensor:
        """Float32 [B, *spec.observation], from the agent's side."""
        return self.game.observe(self.state)

    def begin(self, chosen: Tensor) -> None:
        """Begin new games in the chosen rows, bool [B]."""
        rows = chosen.nonzero()[:, 0]
        if len(rows):
            self._put(rows, self.game.initial(len(rows), self.rng))
            self.refused[rows] = 0
            self._answer()

    def apply_action(self, action: Tensor) -> Tensor:
        """Take an action in every row, int64 [B]; float32 [B], the reward of each.

        Raises IndexError for a number that no action has.
        """
        before, legal = self.game.public(self.state), self.legal_action_mask()
        legal = legal.gather(1, action[:, None])[:, 0] & ~before.done
        rows = legal.nonzero()[:, 0]
        ends_turn = torch.zeros_like(legal)
        if len(rows):
            after = self.game.step(self.state[rows], action[rows], self.rng)
            ends_turn[rows] = after.turn > before.turn[rows]
            self._put(rows, after)
            self._answer()
        self.refused = torch.where(legal | before.done, 0, self.refused + 1)
        row = torch.arange(len(action))
        moves = Trajectories(
            state=before,
            action=action,
            game=row,
            seat=torch.full_like(row, self.seat),
            player=torch.zeros_like(row),
            score_delta=(self.state.score - before.score)[:, self.seat],
            ends_turn=ends_turn,
            ply_sizes=[len(row)],
            games=len(row),
        )
        reward = self.reward.rewards(moves, FinalStates(self.state, len(rows)))
        return torch.where(legal, reward, self.illegal * ~before.done)

    def _answer(self) -> None:
        """Let the opponent move until it is the agent's turn, or the game is over."""
        if self.game.spec.seats == 1:
            return
        while True:
            waiting = ~self.state.done & (self.state.current_seat != self.seat)
            rows = waiting.nonzero()[:, 0]
            if not len(rows):
                return
            theirs = self.state[rows]
            action = self.opponent.choose(self.game.public(theirs), self.rng)
            self._put(rows, self.game.step(theirs, action, self.rng))

    def _put(self, rows: Tensor, fresh: Any) -> None:
        """Put other positions into these rows, int64 [R], rising."""
        if len(rows) == len(self.state):
            self.state = fresh
            return
        place = torch.arange(len(self.state))
        place[rows] = torch.arange(len(self.state), len(self.state) + len(rows))
        self.state = type(fresh).cat([self.state, fresh])[place]
