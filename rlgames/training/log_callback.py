"""A callback that writes the log of a run: metrics.jsonl, TensorBoard and train.log."""

from __future__ import annotations

from pathlib import Path

from rlgames.runs.run_log import RunLog
from rlgames.training.callbacks import Callback


class LogCallback(Callback):
    """Writes metrics and references to a run's files. best_by: selects the best checkpoint."""

    def __init__(self, log: RunLog, best_by: str) -> None:
        self.log, self.best_by = log, best_by
        self._first_games = 0

    def on_run_start(self, games: int, directory: Path) -> None:
        self._first_games = games

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        if random is None:
            self.log.logger.info("random play takes too long to be measured before the end")
        self.log.set_references(self._first_games, metric, self.best_by, random)

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        self.log.add(games, metrics)
        evaluated = [
            f"{name.removeprefix('eval/')} {value:.4f}"
            for name, value in metrics.items()
            if name.startswith("eval/")
        ]
        if evaluated:
            self.log.logger.info("games %d, greedy: %s", games, ", ".join(evaluated))
