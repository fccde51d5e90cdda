"""Whoever looks on while a run is trained."""

from __future__ import annotations

from pathlib import Path


class Callback:
    """Is told of everything as soon as it has happened, between two batches; this one looks away.

    What it does must take no time: training waits for it.
    """

    def on_references(self, figure: str, random: float | None, optimal: float | None) -> None:
        """By which figure the run is judged, and what random and perfect play come to in it, as
        far as that is known before the end."""

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        """How many games have been played, and metrics as in the log; none after most batches."""

    def on_phase(self, what: str) -> None:
        """What begins now: "playing", "learning", "evaluating", "saving" or "solving"."""

    def on_checkpoint(self, games: int, best: bool) -> None:
        """A checkpoint was written, the best one or the latest, after so many games."""

    def on_run_end(self, directory: Path) -> None:
        """The run has come to its end, and lies in this directory."""

    def on_resume(self, lines: list[dict[str, float]]) -> None:
        """What the log of a run that goes on holds: `games` and metrics in each line."""
