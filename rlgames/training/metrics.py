"""Means of training metrics between two lines of the log, and where the time went."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlgames.core.untrusted import checked_float, checked_int, sanitized
from rlgames.games.capabilities import measures
from rlgames.games.game import Game, State

METRIC_NAME = re.compile(r"[\w ,:/.+=()%-]{1,100}")
"""Names of metrics that a checkpoint may contain."""

PHASES = ("playing", "learning", "evaluating", "saving", "solving")
"""What a process does. Every line of the log has the fraction of the time of each of them."""

MIN_WEIGHT = 1e-300

MAX_SECONDS = 1e12


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
