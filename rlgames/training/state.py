"""The state of a run between two batches, its means of metrics included: what a checkpoint stores
and restores."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from rlgames.config.commands import TrainConfig
from rlgames.core.rng import make_generator, restore_generator
from rlgames.core.untrusted import checked_float, checked_int, sanitized
from rlgames.games.capabilities import measures
from rlgames.games.game import Game, State
from rlgames.rollouts.trajectories import FinalStates
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint, Tree, restore_weights
from rlgames.runs.files import MAX_SECONDS
from rlgames.training.components import Components

METRIC_NAME = re.compile(r"[\w ,:/.+=()%-]{1,100}")
"""Names of metrics that a checkpoint may contain."""

PHASES = ("playing", "learning", "evaluating", "saving", "solving")
"""What a process does. Every line of the log has the fraction of the time of each of them."""

MIN_WEIGHT = 1e-300

RESTORE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    UserWarning,
    ValueError,
)
"""What restoring from a damaged state may raise."""


def game_statistics(game: Game[Any], final: State) -> dict[str, float]:
    """Means over finished games, from their final positions."""
    score = final.score
    statistics = {"turns": float(final.turn.float().mean())}
    if game.spec.goal == "score":
        statistics["score"] = float(score[:, 0].mean())
        values = measures(game, final)
        if "grid_sum" in values:
            statistics["grid_sum"] = float(values["grid_sum"].mean())
    if game.spec.goal == "outcome":
        statistics["first_seat_wins"] = float((score[:, 0] > score[:, 1]).float().mean())
        statistics["draws"] = float((score[:, 0] == score[:, 1]).float().mean())
    return statistics


class MetricAccumulator:
    """Weighted means since the last line of the log, how much was played, and how the time of this
    process was spent.

    Each moment belongs to one phase at most and to one line of the log: the fractions of a line add
    up to at most 1, also where a phase contains another or lasts beyond a line.
    """

    def __init__(self) -> None:
        self._open_phases: list[str] = []
        self._reset()

    def _reset(self) -> None:
        self._start = self._timed_until = time.perf_counter()
        self._seconds_by_phase = dict.fromkeys(PHASES, 0.0)
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._num_games = self._num_moves = 0

    def count(self, num_games: int, num_moves: int) -> None:
        """Count finished games and moves, for the speed."""
        self._num_games += num_games
        self._num_moves += num_moves

    def add(self, metrics: dict[str, float], weight: float) -> None:
        """Add metrics; weight: the number of games that they are means over."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * value
            self._weights[name] = self._weights.get(name, 0.0) + weight

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time of the block to one of PHASES, without the blocks inside it."""
        self._add_time()
        self._open_phases.append(phase)
        try:
            yield
        finally:
            self._add_time()
            self._open_phases.pop()

    def _add_time(self) -> None:
        """Add the time since the last call to the innermost open phase."""
        now = time.perf_counter()
        if self._open_phases:
            self._seconds_by_phase[self._open_phases[-1]] += now - self._timed_until
        self._timed_until = now

    def state_dict(self) -> dict[str, Any]:
        """The sums and times since the last line, as plain numbers."""
        self._add_time()
        return {
            "sums": dict(self._sums),
            "weights": dict(self._weights),
            "num_games": self._num_games,
            "num_moves": self._num_moves,
            "seconds": self._timed_until - self._start,
            "phases": dict(self._seconds_by_phase),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what does not fit."""
        sums, weights = dict(state["sums"]), dict(state["weights"])
        for name, value in sums.items():
            checked_float(weights[name], MIN_WEIGHT)
            if type(value) not in (int, float) or not METRIC_NAME.fullmatch(name):
                raise ValueError(f"there is no metric {sanitized(name, 40)} of such a value")
        seconds = checked_float(state["seconds"], 0, MAX_SECONDS)
        self._start = time.perf_counter() - seconds
        phases = dict(state["phases"])
        self._seconds_by_phase = {
            name: checked_float(phases[name], 0, MAX_SECONDS) for name in PHASES
        }
        self._sums, self._weights = sums, weights
        self._num_games = checked_int(state["num_games"], 0)
        self._num_moves = checked_int(state["num_moves"], 0)

    def close(self) -> dict[str, float]:
        """The means as train/..., speed and fractions of the time as time/...; then start over."""
        self._add_time()
        now = self._timed_until
        seconds = now - self._start
        metrics = {f"train/{name}": sum_ / self._weights[name] for name, sum_ in self._sums.items()}
        metrics["time/games_per_s"] = self._num_games / seconds
        metrics["time/moves_per_s"] = self._num_moves / seconds
        for phase, phase_seconds in self._seconds_by_phase.items():
            metrics[f"time/{phase}"] = phase_seconds / seconds
        self._reset()
        return metrics


@dataclass
class Progress:
    """How far a run is, as a checkpoint stores it.

    logged_at, evaluated_at, saved_at, kept_at: games played at the last line of the log, the last
    evaluation, the last checkpoint (-1: none yet) and the last checkpoint that is kept. best: the
    best evaluation so far, as Evaluator.better compares it. has_converged: more training would
    change nothing. seconds: wall-clock time of earlier processes. num_moves: made so far.
    """

    games_played: int = 0
    num_updates: int = 0
    logged_at: int = 0
    evaluated_at: int = 0
    saved_at: int = -1
    kept_at: int = 0
    best: list[float] | None = None
    has_converged: bool = False
    seconds: float = 0.0
    num_moves: int = 0

    def check(self, games: int) -> None:
        """Raises ValueError or TypeError for values that are impossible after this many games."""
        checked_int(self.games_played, games, games)
        checked_int(self.num_updates, 0)
        checked_int(self.saved_at, -1, games)
        for last_games in (self.logged_at, self.evaluated_at, self.kept_at):
            checked_int(last_games, 0, games)
        checked_float(self.seconds)
        checked_int(self.num_moves, 0)
        if self.best is not None and (
            len(self.best) != 2 or not all(type(value) in (int, float) for value in self.best)
        ):
            raise ValueError("the best evaluation is not two numbers")
        if type(self.has_converged) is not bool:
            raise ValueError("has_converged is neither true nor false")


class TrainingState:
    """Everything that the rest of a run depends on, besides its config.

    Playing changes generators, the collector and players in the middle of a batch. They are stored
    as they were after the last batch that was learned from, so that an interrupted batch is played
    again. num_log_lines, num_event_bytes: lines of the log, and bytes of TensorBoard's files, that
    belong to a restored checkpoint.
    """

    def __init__(self, cfg: TrainConfig, components: Components) -> None:
        self.cfg, self.components = cfg, components
        self.progress, self.metrics = Progress(), MetricAccumulator()
        self.rng = make_generator(cfg.seed, "play", components.device)
        self.num_log_lines = self.num_event_bytes = 0
        self._started_at = time.perf_counter()
        self.take_snapshot()

    @property
    def is_over(self) -> bool:
        return self.progress.has_converged or self.progress.games_played >= self.cfg.games

    def is_due(self, last_games: int, every: int) -> bool:
        """Whether a task is due that was last run after this many games."""
        games = self.progress.games_played
        return last_games < games and (games - last_games >= every or self.is_over)

    @property
    def batch_size(self) -> int:
        """Games of the next batch."""
        return min(self.cfg.batch, self.cfg.games - self.progress.games_played)

    @property
    def seconds(self) -> float:
        """Wall-clock time of all processes of the run, one after the other."""
        return self.progress.seconds + time.perf_counter() - self._started_at

    def totals(self) -> dict[str, float]:
        """What the run has taken so far, for each line of the log."""
        return {
            "time/seconds": self.seconds,
            "time/updates": self.progress.num_updates,
            "time/moves": self.progress.num_moves,
        }

    def take_snapshot(self) -> None:
        """Note what playing changes."""
        players = enumerate(self.components.players)
        self._snapshot: Tree = {
            "generators": {name: rng.get_state() for name, rng in self._generators().items()},
            "collector": self.components.collector.state_dict(),
            "players": {str(index): player.state_dict() for index, player in players},
        }

    def finish_batch(self, final_states: FinalStates) -> None:
        """Count a batch that was learned from, and take a snapshot."""
        finished = final_states.state[final_states.state.done]
        if len(finished):
            statistics = game_statistics(self.components.game, finished)
            self.metrics.add(statistics, len(finished))
        self.metrics.count(len(finished), final_states.num_moves)
        self.progress.games_played += len(finished)
        self.progress.num_moves += final_states.num_moves
        self.progress.num_updates += 1
        self.take_snapshot()

    def state_dict(self, num_log_lines: int, num_event_bytes: int) -> Tree:
        """The state as a tree."""
        regret = self.components.regret
        return {
            "learner": self.components.learner.state_dict(),
            **self._snapshot,
            "progress": asdict(self.progress) | {"seconds": self.seconds},
            "num_log_lines": num_log_lines,
            "num_event_bytes": num_event_bytes,
            "metrics": self.metrics.state_dict(),
            "regret": None if regret is None else regret.state_dict(),
        }

    def load(self, checkpoint: Checkpoint) -> None:
        """Restore the weights and the state. Raises BadCheckpoint where they do not fit."""
        restore_weights(self.components.agent.policy, checkpoint.policy)
        try:
            with warnings.catch_warnings():
                # PyTorch warns where a tensor is indexed by a name: a tensor instead of a tree.
                warnings.filterwarnings("error", "Using a non-tuple", UserWarning)
                self._load_state_dict(checkpoint.state)
            self.progress.check(checkpoint.games)
        except RESTORE_ERRORS as error:
            why = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
            raise BadCheckpoint(
                f"this run cannot resume from its checkpoint ({sanitized(why)})"
            ) from None
        self.take_snapshot()

    def _load_state_dict(self, state: Tree) -> None:
        components = self.components
        self.progress = Progress(**state["progress"])
        self.num_log_lines = checked_int(state["num_log_lines"], 0)
        self.num_event_bytes = checked_int(state["num_event_bytes"], 0)
        if self.progress.saved_at < 0:  # stopped before all references were written
            self.num_event_bytes = 0
        self.metrics.load_state_dict(state["metrics"])
        # Without a state the config asks for it since this resume.
        if components.regret is not None and state["regret"] is not None:
            components.regret.load_state_dict(state["regret"], self.progress.games_played)
        components.learner.load_state_dict(state["learner"])
        for index, player in enumerate(components.players):
            player.load_state_dict(state["players"][str(index)])
        components.collector.load_state_dict(state["collector"], self.rng)
        for name, generator in self._generators().items():
            if not restore_generator(generator, state["generators"][name]):
                # A stream that nothing has used, the same one each time.
                stream = f"{name} after {self.progress.games_played}"
                unused = make_generator(self.cfg.seed, stream, components.device)
                generator.set_state(unused.get_state())

    def _generators(self) -> dict[str, torch.Generator]:
        return {"play": self.rng, "learn": self.components.collector.rng}
