"""Collects the games to learn from: played by the agent or a teacher, or recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from rlgames.config.commands import TrainConfig
from rlgames.core.rng import make_generator
from rlgames.core.untrusted import checked_int
from rlgames.games.game import State
from rlgames.learners.behavior_cloning import BehaviorCloning
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.policies.policy import Network
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool, InitialStates
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.training.demonstrations import Demonstrations
from rlgames.training.engine import Engine, EngineContext, LocalEngine


def restarting_from_pool(pool: GamePool, restart_fraction: float) -> InitialStates:
    """New games, a fraction of which start one random move away from a game in progress.

    They reach positions that the agent itself rarely reaches. Score and turns continue from those
    of the copied game; a move that would end it is not made.
    """
    initial_states, game = pool.initial_states, pool.game

    def start(first: int, count: int, rng: torch.Generator) -> State:
        initial = initial_states(first, count, rng)
        is_copy = torch.rand(count, generator=rng, device=rng.device) < restart_fraction
        copied = is_copy.nonzero()[:, 0]
        live = (~pool.state.done).nonzero()[:, 0]
        if not len(live):
            return initial
        chosen = torch.randint(len(live), copied.shape, generator=rng, device=rng.device)
        before = pool.state[live[chosen]]
        u = torch.rand(len(before), generator=rng, device=rng.device)
        after = game.step(before, game.sample_legal_action(game.public(before), u), rng)
        finished = after.done.nonzero()[:, 0]
        return initial.put(copied, after.put(finished, before[finished]))

    return start


class Collector:
    """Has the games of each batch played, or samples them.

    players: the agent, or a search guided by it, and its opponent if it has one. A teacher replaces
    the agent; with learner=behavior_cloning and no teacher, recorded games do. clone_epochs_done:
    passes over the recorded games so far. pretraining: the learner of those passes, None before
    and after. pool: games in progress, with window= only.

    engine: plays whole games. context: of the learner.
    learner_plays: whether the learner plays the games itself, so that nothing is collected.
    """

    def __init__(
        self,
        cfg: TrainConfig,
        context: LearnerContext,
        learner: Learner,
        engine: Engine,
        demonstrations: Demonstrations | None,
    ) -> None:
        self.cfg, self.context, self.engine = cfg, context, engine
        self.game, self.agent, self.split = engine.game, engine.agent, engine.split
        self.rng, self.players = context.rng, list(engine.players)
        self.pool: GamePool | None = None
        self.pretraining: BehaviorCloning | None = None
        self.clone_epochs_done = 0
        self.learner_plays = learner.learns_while_playing
        self.demonstrations = demonstrations
        self._held_out: Trajectories | None = None
        self.samples_records = "teacher" in learner.learns_from and cfg.teacher is None
        if self.samples_records and self.demonstrations:
            self.demonstrations, self._held_out = self.demonstrations.hold_out()

    def next_batch(
        self, num_games: int, games_played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates] | GamePool:
        """The games of the next update, or those that the learner plays.

        Games are played with rng, or sampled from the recorded ones; with window=, the next window
        of that many games in parallel is played. The moves to learn from are player 0's.
        games_played: in the run before these.
        """
        if self.learner_plays:
            return self.games_to_play(num_games, rng)
        if self.samples_records and self.demonstrations:
            return self.demonstrations.sample(num_games)
        if not self.cfg.window:
            return self.engine.play(num_games, games_played, rng)
        return self.games_to_play(num_games, rng).collect(self.cfg.window)

    def train(
        self, learner: Learner, batch: tuple[Trajectories, FinalStates] | GamePool, progress: float
    ) -> tuple[FinalStates, dict[str, float]]:
        """Learn from the agent's moves in a batch, and from recorded ones; how the games ended, and
        metrics. progress: as in Learner.update."""
        if isinstance(batch, GamePool):
            return learner.play_and_learn(batch, self.cfg.window, progress)
        (trajectories, final_states), metrics = batch, dict[str, float]()
        examples = self.with_demonstrations(trajectories.by_player(0), final_states)
        # An opponent may have won before the agent moved.
        if len(examples[0]):
            metrics = learner.update(*examples, progress)
        return final_states, metrics | self.engine.metrics()

    def games_to_play(self, num_games: int, rng: torch.Generator) -> GamePool:
        """The games of the next batch of the agent alone: those in progress, with window=, else new
        ones."""
        if not self.cfg.window:
            starts = self.engine.initial_states
            return GamePool(self.game, self.players, num_games, rng, initial_states=starts)
        self.pool = self.pool or self._make_pool(num_games, rng)
        return self.pool

    def with_demonstrations(
        self, trajectories: Trajectories, final_states: FinalStates
    ) -> tuple[Trajectories, FinalStates]:
        """A batch together with the recorded games that are added to every batch."""
        if not self.cfg.demos_per_batch or self.demonstrations is None:
            return trajectories, final_states
        recorded, recorded_final = self.demonstrations.sample(self.cfg.demos_per_batch)
        public = replace(final_states, state=self.game.public(final_states.state))
        return Trajectories.cat([trajectories, recorded]), FinalStates.cat([public, recorded_final])

    def held_out(self) -> Trajectories:
        """Moves of the teacher that are not learned from; played at the first call, unless
        recorded."""
        if self._held_out is None:
            rng = make_generator(self.cfg.seed, "held out", self.rng.device)
            count = min(self.cfg.batch, self.cfg.eval_games)
            # These games must not depend on when they are played.
            players = [player for player in self.players if not player.changes_in_training]
            context = EngineContext(self.game, self.agent, players, self.split, count)
            engine = LocalEngine(context)
            self._held_out = engine.play(count, 0, rng)[0].by_player(0)
        return self._held_out

    def pretrain(self) -> dict[str, float] | None:
        """Fit the policy to all recorded moves once. Returns the metrics, or None after
        clone_epochs passes."""
        if self.demonstrations is None or self.clone_epochs_done >= self.cfg.clone_epochs:
            self.pretraining = None
            return None
        self.pretraining = self.pretraining or self._make_pretraining()
        self.clone_epochs_done += 1
        recorded = self.demonstrations
        return self.pretraining.update(recorded.trajectories, recorded.final_states, 0.0)

    def state_dict(self) -> dict[str, Any]:
        return {
            "clone_epochs_done": self.clone_epochs_done,
            "pretraining": None if self.pretraining is None else self.pretraining.state_dict(),
            "pool": None if self.pool is None else self.pool.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], rng: torch.Generator) -> None:
        """rng: plays the games of the pool. Raises LookupError, TypeError, ValueError or
        RuntimeError for what does not fit."""
        self.clone_epochs_done = checked_int(state["clone_epochs_done"], 0)
        if state["pretraining"] is not None:
            if not isinstance(self.agent.policy, Network):
                raise ValueError("only a network is fitted to a record")
            self.pretraining = self._make_pretraining()
            self.pretraining.load_state_dict(state["pretraining"])
        if state["pool"] is not None:
            num_parallel = checked_int(state["pool"]["batch"], 1, self.cfg.batch)
            self.pool = self._make_pool(num_parallel, rng)
            self.pool.load_state_dict(state["pool"])

    def _make_pool(self, num_parallel: int, rng: torch.Generator) -> GamePool:
        pool = GamePool(
            self.game,
            self.players,
            UNLIMITED_GAMES,
            rng,
            batch=num_parallel,
            initial_states=self.engine.initial_states,
        )
        if self.cfg.restart_fraction:
            pool.initial_states = restarting_from_pool(pool, self.cfg.restart_fraction)
        return pool

    def _make_pretraining(self) -> BehaviorCloning:
        return BehaviorCloning(self.context, lr=self.cfg.lr)
