"""Callbacks: what else happens while a run is trained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any


class Callback:
    """Hooks of the training loop, in the order they are first called.

    Training waits for each hook, so a hook must be quick.
    """

    def on_run_start(self, games: int, directory: Path) -> None:
        """Training starts; games: played by earlier processes of this run, in this directory."""

    def on_references(self, metric: str, random: float | None, optimal: float | None) -> None:
        """The metric of the game, and what random and optimal play reach, where known so far."""

    def on_phase(self, phase: str) -> None:
        """A phase starts: "playing", "learning", "evaluating", "saving" or "solving"."""

    def on_update(self, games: int, metrics: dict[str, float]) -> None:
        """The learner returned these metrics; games: played so far."""

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        """A line is logged after this many games; metrics: named train/..., eval/... or time/..."""

    def on_evaluation_end(self, games: int) -> None:
        """An evaluation has ended and is logged, or this run starts."""

    def on_checkpoint(self, games: int, is_best: bool) -> None:
        """A checkpoint was written: the best one or the latest."""

    def on_run_end(self, directory: Path) -> None:
        """The run is done; all its files are in this directory."""


class CallbackList(Callback):
    """Calls each of its callbacks in turn."""

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self.callbacks = list(callbacks)

    def _call_each(self, hook: str, *args: Any, **options: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(*args, **options)


for _hook in vars(Callback):
    if _hook.startswith("on_"):
        setattr(CallbackList, _hook, partialmethod(CallbackList._call_each, _hook))
