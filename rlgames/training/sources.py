"""Where the games to learn from come from: played by the agent or a teacher, or recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlgames.config.commands import TrainConfig
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.signals import Interrupts
from rlgames.core.untrusted import checked_int, sanitized
from rlgames.games.game import Game, State
from rlgames.learners.learner import Learner
from rlgames.players.player import Agent, Player
from rlgames.rng import Rng, torch_generators
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool, InitialStates, collect_games
from rlgames.rollouts.trajectories import FinalStates, Trajectories

if TYPE_CHECKING:
    from rlgames.rollouts.holdout import Split

HELD_OUT_DIVISOR = 10
"""One recorded game in this many is held out to tell when behavior cloning has converged."""

MAX_NAMED_PLAYERS = 20
"""A hint names at most this many players of a record."""

Batch = tuple[Trajectories, FinalStates]
"""Games to learn from, and how they ended."""


@dataclass(frozen=True)
class WholeGames:
    """Plays games from start to end in this process.

    players: the agent, a search around it or its teacher, and an opponent if it has one. split: of
    the hidden layouts, or None.
    """

    game: Game[Any]
    players: Sequence[Player]
    split: Split | None = None

    @property
    def initial_states(self) -> InitialStates | None:
        """The positions where games start; None: the game samples them."""
        if self.split is None:
            return None
        from rlgames.rollouts.holdout import sampled_from

        return sampled_from(self.split.trained_on)

    def play(self, num_games: int, games_played: int, progress: float, rng: Rng) -> Batch:
        """Games of the current weights; games_played: in the run before these, a fraction of whose
        games that is `progress`. rng: the stream of the run's games."""
        seating = None
        if len(self.players) == 2:
            # The first player has seat 0 in every other game, counted from the start of the run.
            games = torch.arange(num_games, device=rng.device) + games_played
            seating = torch.stack([games % 2, 1 - games % 2], 1)
        starts = self.initial_states
        return collect_games(
            self.game,
            self.players,
            num_games,
            rng,
            initial_states=starts,
            seating=seating,
            first_game=games_played,
            progress=progress,
        )


class Demonstrations:
    """Recorded games, each sampled as often as any other."""

    def __init__(
        self, trajectories: Trajectories, final_states: FinalStates, generator: torch.Generator
    ) -> None:
        self.trajectories, self.final_states = trajectories, final_states
        self.generator = generator

    @classmethod
    def read(
        cls,
        path: Path,
        game: Game[Any],
        rules: dict[str, Any],
        demonstrator: str | None,
        generator: torch.Generator,
    ) -> Demonstrations:
        """Read a record of a game with these rules; of one player if demonstrator is not None.

        Raises ConfigError for a file that is not a record of this game or has no such player.
        """
        from rlgames.rollouts import records

        record = records.read(path, game, rules)
        trajectories, state = record.trajectories, game.public(record.final_states.state)
        if demonstrator is not None:
            if demonstrator not in record.players:
                names = [sanitized(name, 40) for name in record.players[:MAX_NAMED_PLAYERS]]
                raise ConfigError(
                    f"{path} holds no moves of demonstrator={demonstrator}",
                    nearest(demonstrator, names),
                )
            trajectories = trajectories.by_player(record.players.index(demonstrator))
        trajectories = replace(trajectories, player=torch.zeros_like(trajectories.player))
        device = generator.device
        final_states = FinalStates(state.to(device), record.final_states.num_moves)
        every = cls(trajectories.to(device), final_states, generator)
        num_moves = torch.bincount(every.trajectories.game, minlength=every.trajectories.num_games)
        if bool(num_moves.all()):
            return every
        # Games without a move of the demonstrator teach nothing.
        return cls(*every._select(num_moves.nonzero()[:, 0]), generator)

    def sample(self, count: int) -> Batch:
        """Random games; none is repeated before all of them were sampled."""
        num_rounds = -(-count // self.trajectories.num_games)
        order = torch.cat([self._shuffled() for _ in range(num_rounds)])
        return self._select(order[:count])

    def hold_out(self) -> tuple[Demonstrations, Trajectories]:
        """All games but a random tenth, and the trajectories of that tenth."""
        num_games = self.trajectories.num_games
        if num_games < 2:
            raise ConfigError(
                "learner=behavior_cloning holds out recorded games, and there is only one",
                "record two games or more",
            )
        order = self._shuffled()
        count = max(1, num_games // HELD_OUT_DIVISOR)
        training = Demonstrations(*self._select(order[count:]), self.generator)
        return training, self._select(order[:count])[0]

    def _shuffled(self) -> Tensor:
        """Int64 [G]: all games in random order."""
        num_games, device = self.trajectories.num_games, self.generator.device
        return torch.randperm(num_games, generator=self.generator, device=device)

    def _select(self, games: Tensor) -> Batch:
        trajectories = self.trajectories.select_games(games)
        return trajectories, FinalStates(self.final_states.state[games], len(trajectories))


class NextGames:
    """The games of one update.

    phase: what happens while they are played. begin_learning: what is called when they were played,
    or when a learner begins to play them itself.
    moves: of all players, once they were played here.
    """

    def __init__(
        self,
        source: GameSource,
        num_games: int,
        games_played: int,
        progress: float,
        phase: AbstractContextManager[None],
        begin_learning: Callable[[], object],
    ) -> None:
        self.source, self.num_games, self.games_played = source, num_games, games_played
        self.progress, self.phase, self.begin_learning = progress, phase, begin_learning
        self.plies = source.cfg.window
        self.moves: Trajectories | None = None

    def play(self) -> Batch:
        with self.phase:
            self.source.prepare(self.games_played, self.progress)
            batch = self.source.play(self.num_games, self.games_played, self.progress)
        self.begin_learning()
        self.moves = batch[0]
        return batch

    def examples(self, trajectories: Trajectories, final_states: FinalStates) -> Batch:
        return self.source.examples(trajectories, final_states)

    def pool(self) -> GamePool:
        with self.phase:
            self.source.prepare(self.games_played, self.progress)
        self.begin_learning()
        return self.source.next_pool(self.num_games, self.games_played)


class GameSource:
    """Has the games of each batch played, in this process, or samples recorded ones.

    A mark holds everything that playing changes. It is taken after a batch was learned from, so
    that a run that was interrupted in the next one plays that again.

    is_cloned: whether recorded games are
    all that it learns from. is_exact: whether a resumed run is bit-equal to one that never stopped.
    pool: games in progress, with window= only.
    """

    is_exact = True

    def __init__(
        self,
        cfg: TrainConfig,
        learner: Learner,
        agent: Agent,
        games: WholeGames,
        recorded: Demonstrations | None,
    ) -> None:
        """cfg: of the training. learner: its generator also samples recorded games. agent: in
        training. games: how its games are played. recorded: games to learn from, or None."""
        self.cfg, self.learner, self.agent, self.games = cfg, learner, agent, games
        self.recorded = recorded
        self.rng = Rng(cfg.seed, "play", learner.generator.device)
        self.pool: GamePool | None = None
        self._held_out: Trajectories | None = None
        self.is_cloned = "teacher" in learner.learns_from and self.cfg.teacher is None
        if self.is_cloned and self.recorded:
            self.recorded, self._held_out = self.recorded.hold_out()

    def start(self, games_played: int, interrupts: Interrupts) -> None:
        """Prepare for play, once and before it. interrupts: the run's.

        Raises ConfigError or ConnectionError where there is nobody to play.
        """

    def close(self) -> None:
        """End what start has started; more than one call does no harm."""

    def prepare(self, games_played: int, progress: float) -> None:
        """Have the players prepare for the next games, and give all generators the numbers of this
        update. games_played: in the run before these, a fraction of whose games that is
        `progress`."""
        update = Rng(self.cfg.seed, "update", self.rng.device).fold_in(games_played)
        for player in self.games.players:
            player.start_batch(games_played, progress, update)
        for number, generator in enumerate(self.generators()):
            generator.manual_seed(update.fold_in(number).seed)

    def generators(self) -> list[torch.Generator]:
        """What the learner draws from, and torch's own."""
        return [self.learner.generator, *torch_generators(self.rng.device)]

    def play(self, num_games: int, games_played: int, progress: float) -> Batch:
        """The next games; with window=, the next window of that many in parallel."""
        if self.is_cloned and self.recorded:
            return self.recorded.sample(num_games)
        if self.cfg.window:
            return self.next_pool(num_games, games_played).collect(self.cfg.window, progress)
        return self.play_whole(num_games, games_played, progress)

    def play_whole(self, num_games: int, games_played: int, progress: float) -> Batch:
        """Whole games of the agent in training, or of a teacher that replaces it."""
        return self.games.play(num_games, games_played, progress, self.rng)

    def metrics(self) -> dict[str, float]:
        """What else there is to log of the last batch."""
        return {}

    def examples(self, trajectories: Trajectories, final_states: FinalStates) -> Batch:
        """The agent's moves in a batch, together with the recorded games that are added to every
        batch."""
        trajectories = trajectories.by_player(0)
        if not self.cfg.demos_per_batch or self.recorded is None:
            return trajectories, final_states
        recorded, recorded_final = self.recorded.sample(self.cfg.demos_per_batch)
        public = replace(final_states, state=self.games.game.public(final_states.state))
        return Trajectories.cat([trajectories, recorded]), FinalStates.cat([public, recorded_final])

    def held_out(self) -> Trajectories:
        """Moves of the teacher that are not learned from; played at the first call, unless
        recorded."""
        if self._held_out is None:
            # These games must not depend on when they are played.
            players = [each for each in self.games.players if not each.changes_in_training]
            rng = Rng(self.cfg.seed, "held out", self.rng.device)
            count = min(self.cfg.batch, self.cfg.eval_games)
            steady = replace(self.games, players=players)
            self._held_out = steady.play(count, 0, 0.0, rng)[0].by_player(0)
        return self._held_out

    def mark(self) -> dict[str, Any]:
        """What playing changes; playing on changes no tensor in it."""
        return {
            "players": {
                str(index): player.state_dict() for index, player in enumerate(self.games.players)
            },
            "pool": None if self.pool is None else self.pool.state_dict(),
        }

    def restore(self, mark: dict[str, Any]) -> None:
        """Go back to a mark. Raises LookupError, TypeError, ValueError or RuntimeError for
        another source's mark."""
        for index, player in enumerate(self.games.players):
            player.load_state_dict(mark["players"][str(index)])
        if mark["pool"] is not None:
            num_parallel = checked_int(mark["pool"]["batch"], 1, self.cfg.batch)
            self.pool = self._make_pool(UNLIMITED_GAMES, num_parallel, 0)
            self.pool.load_state_dict(mark["pool"])

    def next_pool(self, num_games: int, games_played: int) -> GamePool:
        """The agent's games in progress, with window=, else new ones."""
        if not self.cfg.window:
            return self._make_pool(num_games, num_games, games_played)
        self.pool = self.pool or self._make_pool(UNLIMITED_GAMES, num_games, 0)
        return self.pool

    def _make_pool(self, num_games: int, num_parallel: int, first_game: int) -> GamePool:
        game, players, starts = self.games.game, self.games.players, self.games.initial_states
        pool = GamePool(
            game,
            players,
            num_games,
            self.rng,
            batch=num_parallel,
            initial_states=starts,
            first_game=first_game,
        )
        if self.cfg.restart_fraction:
            pool.initial_states = restarting_from_pool(pool, self.cfg.restart_fraction)
        return pool


def restarting_from_pool(pool: GamePool, restart_fraction: float) -> InitialStates:
    """New games. A fraction of them start one random move away from a game in progress.

    They reach positions that the agent itself rarely reaches. Score and turns continue from those
    of the copied game; a move that would end it is not made.
    """
    initial_states, game = pool.initial_states, pool.game

    def start(first: int, count: int, rng: Rng) -> State:
        initial = initial_states(first, count, rng)
        is_copy = rng.uniform(count) < restart_fraction
        copied = is_copy.nonzero()[:, 0]
        live = (~pool.state.done).nonzero()[:, 0]
        if not len(live):
            return initial
        rng = rng[copied]
        before = pool.state[live[rng.fold_in(1).integers(len(live), len(copied))]]
        u = rng.fold_in(2).uniform(len(before))
        after = game.step(before, game.sample_legal_action(game.public(before), u), rng)
        finished = after.done.nonzero()[:, 0]
        return initial.put(copied, after.put(finished, before[finished]))

    return start
