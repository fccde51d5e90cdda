"""Whoever looks on while a run is trained."""

from __future__ import annotations

from pathlib import Path


class Callback:
    """Is told of everything as soon as it has happened, between two batches; this one looks away.

    What it does must take no time: training waits for it.
    """

    def judged(self, figure: str, random: float | None, optimal: float | None) -> None:
        """By which figure the run is judged, and what random and perfect play come to in it, as
        far as that is known before the end."""

    def told(self, games: int, metrics: dict[str, float]) -> None:
        """How many games have been played, and metrics as in the log; none after most batches."""

    def doing(self, what: str) -> None:
        """What begins now: "playing", "learning", "evaluating", "saving" or "solving"."""

    def saved(self, games: int, best: bool) -> None:
        """A checkpoint was written, the best one or the latest, after so many games."""

    def done(self, directory: Path) -> None:
        """The run has come to its end, and lies in this directory."""

    def remembers(self, lines: list[dict[str, float]]) -> None:
        """What the log of a run that goes on holds: `games` and metrics in each line."""
