"""What a run's games and updates came to since the last line of its log."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlgames.core.untrusted import checked_float, checked_int, sanitized
from rlgames.games.game import Game, State

METRIC = re.compile(r"[\w ,:/.+=()%-]{1,100}")
"""The name of a metric that a checkpoint may tell of."""


def game_statistics(game: Game[Any], final: State) -> dict[str, float]:
    """How games went, for the log, from their final positions."""
    found, score = {"turns": float(final.turn.float().mean())}, final.score
    if game.spec.goal == "score":
        found["score"] = float(score[:, 0].mean())
    if game.spec.goal == "outcome":
        found["first_seat_wins"] = float((score[:, 0] > score[:, 1]).float().mean())
        found["draws"] = float((score[:, 0] == score[:, 1]).float().mean())
    return found


class MetricAccumulator:
    """Weighted means of the metrics since the last line of the log, how much was played, and where
    the time of this process went."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._start = self._begun = time.perf_counter()
        self._spent: dict[str, float] = {}
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._games = self._moves = 0

    def count(self, games: int, moves: int) -> None:
        self._games += games
        self._moves += moves

    def add(self, metrics: dict[str, float], weight: float) -> None:
        """weight: how many games these are of."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * value
            self._weights[name] = self._weights.get(name, 0.0) + weight

    @contextmanager
    def spent(self, on: str) -> Iterator[None]:
        """Count the time that the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._spent[on] = self._spent.get(on, 0.0) + time.perf_counter() - start

    def state_dict(self) -> dict[str, Any]:
        """Everything but where the time went, as plain numbers."""
        seconds = time.perf_counter() - self._start
        sums, weights = dict(self._sums), dict(self._weights)
        counts = {"games": self._games, "moves": self._moves, "seconds": seconds}
        return {"sums": sums, "weights": weights, **counts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what does not fit."""
        sums, weights = dict(state["sums"]), dict(state["weights"])
        for name, value in sums.items():
            checked_float(weights[name], 1e-300)
            if type(value) not in (int, float) or not METRIC.fullmatch(name):
                raise ValueError(f"there is no metric {sanitized(name, 40)} of such a value")
        self._start = time.perf_counter() - checked_float(state["seconds"], 0, 1e12)
        self._sums, self._weights = sums, weights
        self._games, self._moves = checked_int(state["games"], 0), checked_int(state["moves"], 0)

    def close(self) -> dict[str, float]:
        """The means, named train/…, the speed and the shares of the time, named time/…; then start
        anew."""
        now = time.perf_counter()
        seconds, here = now - self._start, now - self._begun
        sanitized: dict[str, Any] = {
            f"train/{name}": value / self._weights[name] for name, value in self._sums.items()
        }
        sanitized["time/games_per_s"] = self._games / seconds
        sanitized["time/moves_per_s"] = self._moves / seconds
        sanitized |= {f"time/{on}": spent / here for on, spent in self._spent.items()}
        self._reset()
        return sanitized
