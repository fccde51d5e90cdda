"""Callbacks: what else happens while a run is trained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError
from rlgames.core.metrics import as_metrics


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

    def on_update(
        self, games: int, metrics: dict[str, float], moves: Any, final_states: Any
    ) -> dict[str, Any] | None:
        """The learner has learned from a batch.

        Args:
            games: played so far.
            metrics: those that the learner returned.
            moves: of the batch, as Trajectories; None if the learner played it.
            final_states: how the games of the batch ended, as FinalStates.

        Returns:
            Numbers that are logged as train/NAME, by name, or None.
        """
        return None

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

    def on_update(self, *batch: Any) -> dict[str, float]:
        """The metrics of all callbacks. Raises ConfigError for a value that is not a number, and
        for a name that the learner or another callback has."""
        metrics: dict[str, float] = {}
        for callback in self.callbacks:
            if (returned := callback.on_update(*batch)) is not None:
                name = f"the callback {type(callback).__name__}"
                more = as_metrics(name, returned)
                if taken := more.keys() & {*metrics, *batch[1]}:
                    raise ConfigError(f"{name} returned the metric {min(taken)!r}, which is taken")
                metrics |= more
        return metrics


ADDED: list[Callback] = []
"""Those that plugins have added, which take part in every training of this process."""


def add_callback(callback: Callback) -> None:
    """Add a callback, which replaces one of the same class. Raises TypeError."""
    if not isinstance(callback, Callback):
        raise TypeError(f"{callback!r} is not a Callback")
    kind = type(callback)
    names = (kind.__module__, kind.__qualname__)
    ADDED[:] = [each for each in ADDED if (type(each).__module__, type(each).__qualname__) != names]
    ADDED.append(callback)


for _hook in vars(Callback):
    if _hook.startswith("on_") and _hook not in vars(CallbackList):
        setattr(CallbackList, _hook, partialmethod(CallbackList._call_each, _hook))
