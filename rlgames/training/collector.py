"""Where the moves come from that are learnt: games just played, by the agent or a teacher, and
recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor

from rlgames.config.compose import to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.rng import make_generator
from rlgames.core.untrusted import checked_int, sanitized
from rlgames.factory.agents import build_player
from rlgames.factory.components import build_reward
from rlgames.games.game import Game, State
from rlgames.learners.behavior_cloning import BehaviorCloning
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.players.past_selves import PastSelves
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import Network
from rlgames.rollouts import records
from rlgames.rollouts.holdout import Split, sampled_from
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool, InitialStates, collect_games
from rlgames.rollouts.trajectories import FinalStates, Trajectories

HELD_OUT_DIVISOR = 10
"""One of so many recorded games is kept for telling when cloning has converged."""


class Demonstrations:
    """Recorded games, of which each is drawn as often as any other.

    Moves that are not the demonstrator's are left out, unless that is None.
    """

    def __init__(self, moves: Trajectories, results: FinalStates, rng: torch.Generator) -> None:
        self.moves, self.results, self.rng = moves, results, rng

    @classmethod
    def read(
        cls, path: Path, game: Game[Any], cfg: DictConfig, rng: torch.Generator
    ) -> Demonstrations:
        """Raises ConfigError for a file that is no record of this game, or of nobody's moves."""
        found = records.read(path, game, to_plain(cfg)["game"])
        moves, state = found.moves, game.public(found.results.state)
        if cfg.demonstrator is not None:
            if cfg.demonstrator not in found.players:
                raise ConfigError(
                    f"{path} holds no moves of demonstrator={cfg.demonstrator}",
                    nearest(cfg.demonstrator, [sanitized(name, 40) for name in found.players[:20]]),
                )
            moves = moves.by_player(found.players.index(cfg.demonstrator))
        moves = replace(moves, player=torch.zeros_like(moves.player)).to(rng.device)
        return cls(moves, FinalStates(state.to(rng.device), found.results.moves), rng)

    def sample(self, count: int) -> tuple[Trajectories, FinalStates]:
        """So many games at random; none comes again before all have come."""
        games = self.moves.games
        rounds = [
            torch.randperm(games, generator=self.rng, device=self.rng.device)
            for _ in range(-(-count // games))
        ]
        return self._of(torch.cat(rounds)[:count])

    def held_out(self) -> tuple[Demonstrations, Trajectories]:
        """All but a tenth of the games, drawn at random, and the moves of that tenth."""
        games = self.moves.games
        if games < 2:
            raise ConfigError(
                "learner=behavior_cloning holds recorded games out, and there is one only",
                "record two games or more",
            )
        order = torch.randperm(games, generator=self.rng, device=self.rng.device)
        count = max(1, games // HELD_OUT_DIVISOR)
        return Demonstrations(*self._of(order[count:]), self.rng), self._of(order[:count])[0]

    def _of(self, chosen: Tensor) -> tuple[Trajectories, FinalStates]:
        moves = self.moves.select_games(chosen)
        return moves, FinalStates(self.results.state[chosen], len(moves))


def both_seats(games: int, played: int, device: torch.device) -> Tensor:
    """Int64 [games, 2]: the first player has seat 0 in every other game, counted from the start."""
    second = ((torch.arange(games, device=device) + played) % 2)[:, None]
    return torch.cat([second, 1 - second], 1)


def restarting_from_pool(opened: GamePool, share: float) -> InitialStates:
    """New games of which a share begins where some open game stands, one random move further.

    They reach positions that the agent would seldom come to by itself. Score and turns go on from
    those of the game that is copied; a move that ends the game is not made.
    """
    fresh, game = opened.initial_states, opened.game

    def start(first: int, count: int, rng: torch.Generator) -> State:
        new = fresh(first, count, rng)
        copied = (torch.rand(count, generator=rng, device=rng.device) < share).nonzero()[:, 0]
        live = (~opened.state.done).nonzero()[:, 0]
        if not len(live):
            return new
        one = torch.randint(len(live), copied.shape, generator=rng, device=rng.device)
        here = opened.state[live[one]]
        u = torch.rand(len(here), generator=rng, device=rng.device)
        there = game.step(here, game.sample_legal_action(game.public(here), u), rng)
        over = there.done.nonzero()[:, 0]
        return new.put(copied, there.put(over, here[over]))

    return start


class Collector:
    """Plays or draws the games of each batch.

    players: the agent, or a search around it, and its opponent if it has one;
    learner=behavior_cloning has the teacher in the agent's place, or takes recorded games where
    there is none. Raises ConfigError for keys that do not fit together and for records that cannot
    be read.
    """

    def __init__(
        self,
        cfg: DictConfig,
        game: Game[Any],
        agent: Agent,
        players: Sequence[Player],
        learner: Learner,
        split: Split | None,
        rng: torch.Generator,
    ) -> None:
        _check(cfg, agent, learner, split)
        self.cfg, self.game, self.agent, self.split, self.rng = cfg, game, agent, split, rng
        self.players = list(players)
        if cfg.get("teacher") is not None:
            self.players[0] = build_player(cfg.teacher, cfg, game)
        self.opened: GamePool | None = None
        self.taught: BehaviorCloning | None = None
        self.cloned = 0
        self.recorded, self._held_out = None, None
        if cfg.demonstrations:
            self.recorded = Demonstrations.read(Path(cfg.demonstrations), game, cfg, rng)
        self.from_record = isinstance(learner, BehaviorCloning) and cfg.get("teacher") is None
        if self.from_record and self.recorded:
            self.recorded, self._held_out = self.recorded.held_out()

    def play(
        self, count: int, played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates]:
        """So many games after those already played, with rng, or recorded ones; with window=, the
        next window of so many games side by side.

        The moves to learn from are those of player 0.
        """
        if self.from_record and self.recorded:
            return self.recorded.sample(count)
        if not self.cfg.window:
            return self._whole(self.players, count, played, rng)
        self.opened = self.opened or self._open(count, rng)
        return self.opened.collect(self.cfg.window)

    def _whole(
        self, players: Sequence[Player], count: int, played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates]:
        """So many games to their ends."""
        seating = both_seats(count, played, rng.device) if len(players) == 2 else None
        return collect_games(
            self.game, players, count, rng, initial_states=self._initial_states(), seating=seating
        )

    def _open(self, count: int, rng: torch.Generator) -> GamePool:
        opened = GamePool(
            self.game,
            self.players,
            UNLIMITED_GAMES,
            rng,
            batch=count,
            initial_states=self._initial_states(),
        )
        if self.cfg.restart_fraction:
            opened.initial_states = restarting_from_pool(opened, self.cfg.restart_fraction)
        return opened

    def _initial_states(self) -> InitialStates | None:
        return None if self.split is None else sampled_from(self.split.trained_on)

    def state_dict(self) -> dict[str, Any]:
        """How far recorded games have been learnt from, and the games that are open."""
        opened = None if self.opened is None else self.opened.state_dict()
        taught = None if self.taught is None else self.taught.state_dict()
        return {"cloned": self.cloned, "taught": taught, "opened": opened}

    def load_state_dict(self, state: dict[str, Any], rng: torch.Generator) -> None:
        """rng: what games are played with. Raises LookupError, TypeError, ValueError or
        RuntimeError for what does not fit."""
        self.cloned = checked_int(state["cloned"], 0)
        if state["taught"] is not None:
            if not isinstance(self.agent.policy, Network):
                raise ValueError("only a network is taught from a record")
            self.taught = self._teachable()
            self.taught.load_state_dict(state["taught"])
        if state["opened"] is not None:
            self.opened = self._open(checked_int(state["opened"]["batch"], 1, self.cfg.batch), rng)
            self.opened.load_state_dict(state["opened"])

    def with_demonstrations(
        self, moves: Trajectories, results: FinalStates
    ) -> tuple[Trajectories, FinalStates]:
        """The games of a batch and the recorded ones that are added to every batch."""
        if not self.cfg.demos_per_batch or self.recorded is None:
            return moves, results
        more, ended = self.recorded.sample(self.cfg.demos_per_batch)
        public = replace(results, state=self.game.public(results.state))
        return moves.join(more), public.join(ended)

    def held_out(self) -> Trajectories:
        """Moves of the teacher that are not learnt from; its games are played when first asked."""
        if self._held_out is None:
            rng = make_generator(self.cfg.seed, "held out", self.rng.device)
            count = min(self.cfg.batch, self.cfg.eval_games)
            # Earlier selves are others whenever they are asked, and the games are to stay the same.
            players = [player for player in self.players if not isinstance(player, PastSelves)]
            self._held_out = self._whole(players, count, 0, rng)[0].by_player(0)
        return self._held_out

    def clone(self) -> dict[str, float] | None:
        """Fit the policy to all recorded moves once more, clone_epochs times in all, and the
        metrics of it; None where there is no more to be done."""
        if self.recorded is None or self.cloned >= self.cfg.clone_epochs:
            self.taught = None
            return None
        self.taught = self.taught or self._teachable()
        self.cloned += 1
        return self.taught.update(self.recorded.moves, self.recorded.results, 0.0)

    def _teachable(self) -> BehaviorCloning:
        policy, sampling = self.agent.policy, self.agent.sampling
        assert isinstance(policy, Network)
        reward = build_reward(self.cfg, self.game)
        context = LearnerContext(self.game, policy, sampling, reward, self.rng)
        return BehaviorCloning(context, lr=self.cfg.lr)


def _check(cfg: DictConfig, agent: Agent, learner: Learner, split: Split | None) -> None:
    """Raises ConfigError for keys that do not fit together."""
    name, teacher = cfg.learner.name, cfg.get("teacher")
    clones = isinstance(learner, BehaviorCloning)
    if cfg.window and not learner.bootstraps:
        raise ConfigError(
            f"learner={name} learns from whole games, not from window={cfg.window} moves of them",
            "leave window= out, or take learner=ppo or learner=td",
        )
    if cfg.window and agent.game.spec.seats == 2:
        raise ConfigError(
            f"window={cfg.window} is for games of one seat, and {agent.game.spec.name} has two",
            "leave window= out",
        )
    if cfg.restart_fraction and not cfg.window:
        raise ConfigError(
            f"restart_fraction={cfg.restart_fraction} needs games in progress, and none are kept",
            "add window=N, or leave restart_fraction= out",
        )
    for key in ("demos_per_batch", "clone_epochs", "demonstrator"):
        if cfg[key] and not cfg.demonstrations:
            raise ConfigError(f"{key}={cfg[key]} needs recorded games", "add demonstrations=FILE")
    if cfg.demos_per_batch and not learner.learns_from_records:
        raise ConfigError(f"learner={name} does not learn from recorded games", "learner=ppo does")
    if cfg.clone_epochs and not isinstance(agent.policy, Network):
        raise ConfigError(
            f"clone_epochs={cfg.clone_epochs} fits networks, and policy={cfg.policy.name} is none",
            "policy=mlp learner=ppo fits",
        )
    if teacher is not None and not clones:
        raise ConfigError(f"learner={name} has no teacher", "learner=behavior_cloning has")
    if teacher is not None and teacher.name == "human":
        raise ConfigError(
            "teacher=human would be asked for thousands of games",
            "record some by play record=FILE, and take demonstrations=FILE",
        )
    if clones and teacher is None and (not cfg.demonstrations or cfg.demos_per_batch):
        raise ConfigError(
            "learner=behavior_cloning needs a teacher to learn from, or a record",
            "add teacher=NAME, teacher=RUN, or demonstrations=FILE without demos_per_batch=",
        )
    used = cfg.demos_per_batch or cfg.clone_epochs or (clones and teacher is None)
    if cfg.demonstrations and not used:
        raise ConfigError(
            "demonstrations= is given, and not used", "add demos_per_batch=N or clone_epochs=N"
        )
    if split is not None and cfg.demonstrations:
        raise ConfigError(
            "holdout= and demonstrations= do not go together",
            "recorded games may be on layouts that are held out; leave one of the two out",
        )
