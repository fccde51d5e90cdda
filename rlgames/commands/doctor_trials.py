"""`rlgames doctor RUN try=SECONDS`: short trainings with other settings, compared with the run.

A change trains with the games, seed and schedule of the run and is evaluated as the run was, so the
log of the run says what it has to beat after as many games. The training stops after some of the
games. The best changes then go on, with more games and other seeds, also of the unchanged settings:
successive halving (Jamieson and Talwalkar 2016). Of many settings that help together, delta
debugging (Zeller and Hildebrandt 2002) finds a smallest set. Nothing but the files in RUN/doctor/
says what was tried, so a second call goes on.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rlgames.commands.doctor_changes import UNCHANGED, Candidates, Change
from rlgames.commands.study_jobs import type_commands
from rlgames.core.callbacks import Callback, add_callback
from rlgames.core.errors import ConfigError
from rlgames.core.jobs import Job, JobView, Runner, Task
from rlgames.core.signals import Interrupted
from rlgames.evaluation.estimates import Z_95, Estimate
from rlgames.runs.directory import TRIALS
from rlgames.runs.files import LATEST, read_info
from rlgames.runs.series import Training
from rlgames.runs.table import ColumnText

MIN_PART = 1 / 10
"""Of the run's games: what a change is tried with at least."""

FIRST_SHARE, SEARCH_SHARE = 0.6, 0.8
"""Of the time: what first trainings may need by an estimate, and when the search ends."""

START_SECONDS, JOB_SECONDS = 3.0, 0.7
"""About what a process needs to start, and a training besides its games."""

MIN_GAIN = 0.02
"""A better result is better by this fraction of random play's at least."""

SHOWN_GAIN, KEPT_GAIN = 0.5, 0.8
"""Fractions of a gain: a change shows after as many games as it needs for the first one; a part of
a change that keeps the second one does as well."""

MAX_SEEDS, MAX_KEPT = 3, 4
"""Seeds of the best change, and how many changes go on after the search."""


class StopAfter(Callback):
    """Ends a training at the first evaluation after so many games; it saves, and can resume."""

    def __init__(self, games: int) -> None:
        self.games, self.has_stopped = games, False

    def on_metrics(self, games: int, metrics: dict[str, float]) -> None:
        is_evaluation = any(name.startswith("eval/") for name in metrics)
        if is_evaluation and games >= self.games:
            self.has_stopped = True
            raise Interrupted(signal.SIGTERM)


def train_until(games: int, words: Sequence[str]) -> None:
    """Type a training that ends at an evaluation. Raises Interrupted if a signal ended it."""
    stop = StopAfter(games)
    add_callback(stop)
    try:
        type_commands([words])
    except Interrupted:
        if not stop.has_stopped:
            raise


@dataclass(frozen=True)
class Outcome:
    """What a change has reached.

    games: after so many. values, control: the metric of each seed, with and without the change.
    half: half of the interval of a single seed over its games. status: better, worse, the same,
    failed or not finished.
    """

    change: Change
    status: str
    games: int = 0
    values: Sequence[float] = ()
    control: Sequence[float] = ()
    gain: float = -math.inf
    half: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        fields = {"try": str(self.change), "from": self.change.origin, "status": self.status}
        numbers = {"values": [*self.values], "unchanged": [*self.control]}
        return fields | {"games": self.games} | numbers


def cell(metric: str, values: Sequence[float], half: float | None = None) -> str:
    """Values of seeds with their interval; half: of a single seed's."""
    if not values:
        return ""
    estimate = Estimate.of_seeds([np.array(values)])
    half = half if len(values) == 1 else estimate.half
    return ColumnText(metric, metric).cell(estimate.value, half, values)


class Trials:
    """The trainings of changes, and what they have reached by their files.

    Args:
        run: the run that does not learn, which has a directory.
        seconds: the time of all trainings.
        parallel: how many run at a time.
        plugins: of the command.
    """

    def __init__(self, run: Training, seconds: float, parallel: int, plugins: list[str]) -> None:
        self.run, self.seconds, self.parallel, self.plugins = run, seconds, parallel, plugins
        settings = run.run.settings
        self.seed = int(settings["seed"])
        self.total = int(max(self._curve(run.run.path), default=settings["games"]))
        every = settings["eval_every"] or max(1, settings["games"] // 20)
        self.every = min(int(every), self.total)
        self.lowest = min(self.total, math.ceil(MIN_PART * self.total / self.every) * self.every)
        self.tried = dict[Change, None]()
        self._begun = time.monotonic()
        self._runner: Runner | None = None

    def affordable(self, count: int) -> int:
        """The games that so many changes can play in a share of the time that is left, at an
        evaluation; 0 if they are too few."""
        run, elapsed = self.run.run, time.monotonic() - self._begun
        left = FIRST_SHARE * (self.seconds - max(elapsed, START_SECONDS))
        seconds = left * self.parallel / max(count, self.parallel) - JOB_SECONDS
        playable = seconds * run.games / run.seconds if run.seconds else 0.0
        games = min(self.total, int(playable // self.every) * self.every)
        return games if games >= self.lowest else 0

    def is_late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over."""
        return time.monotonic() - self._begun >= share * self.seconds

    def search(self, found: Candidates, view: JobView) -> None:
        """Try what was found until the time is over. Raises Interrupted."""
        with Runner(self.parallel, view) as self._runner:
            timer = threading.Timer(self.seconds, self._runner.stop)
            timer.daemon = True
            timer.start()
            self._begun = time.monotonic()
            try:
                self._search(found)
            finally:
                timer.cancel()

    def _search(self, found: Candidates) -> None:
        """First what is likeliest to help, until it does or there is time for the others; then
        these, and parts of what helps, with as many games as it took to show; then the best, with
        more."""
        every = [*found.together, *found.remedies, *found.single, *found.generic]
        first, others = every[: self.parallel], every[self.parallel :]
        games = self.affordable(self.parallel) or self.lowest
        while True:
            self.train(first, games)
            best = next((each for each in self.ranked() if each.status == "better"), None)
            time_for_others = self.affordable(len(others))
            if best is not None or time_for_others or games == self.total or self.is_late():
                break
            games = min(self.total, 2 * games)
        if best is not None:
            games = self.shows_after(best)
            if best.change in (*found.together, *found.single):
                others = [change for change in others if change not in found.generic]
        else:
            games = time_for_others or self.lowest
        self.train(others, games)
        better = [each.change for each in self.ranked(games) if each.status == "better"]
        if better and len(better[0].parts) > 1:
            self.smallest(better[0], games)
        pool = list[Change]()
        for each in self.ranked(games):
            if each.values and not any({*few.parts} < {*each.change.parts} for few in pool):
                pool = [*pool, each.change][:MAX_KEPT]
        while pool and not self.is_late():
            games, seeds = min(self.total, 2 * games), 2 if len(pool) > 1 else MAX_SEEDS
            if self.outcome(pool[0]).status != "better":
                seeds = 1  # other seeds say nothing yet
            has_trained = self.train([UNCHANGED, *pool], games, seeds, share=1.0)
            if games == self.total and len(pool) == 1 and not has_trained:
                return
            kept = [each.change for each in self.ranked(games) if each.change in pool]
            pool = kept[: max(1, len(pool) // 2)]

    def shows_after(self, best: Outcome) -> int:
        """After how many games a change that helps was ahead by a good part of what it gains."""
        for games in self._curve(self.path(best.change, self.seed)):
            then = self.outcome(best.change, games)
            if then.status == "better" and then.gain >= SHOWN_GAIN * best.gain:
                return then.games
        return best.games

    def smallest(self, change: Change, games: int) -> None:
        """Find a smallest part of a change that keeps most of its gain. Parts that are better by
        themselves come first, so that halves are likely to hold all that matter."""
        gain = self.outcome(change, games).gain

        def part(kept: Sequence[str]) -> Change:
            return Change(tuple(each for each in change.parts if each in kept), change.origin)

        def first_that_helps(lists: Sequence[Sequence[str]]) -> Sequence[str] | None:
            for first in range(0, len(lists), self.parallel):
                few = lists[first : first + self.parallel]
                self.train([*map(part, few)], games)
                for kept in few:
                    if self.outcome(part(kept), games).gain >= KEPT_GAIN * gain:
                        return kept
            return None

        gains = {each: self.outcome(Change((each,)), games).gain for each in change.parts}
        minimal(sorted(change.parts, key=lambda each: -gains[each]), first_that_helps)

    def train(
        self, changes: Sequence[Change], games: int, seeds: int = 1, share: float = SEARCH_SHARE
    ) -> bool:
        """Train changes up to these games, as far as this share of the time allows. Returns whether
        any had not played them."""
        assert self._runner is not None
        self.tried |= dict.fromkeys(each for each in changes if each.parts)
        jobs = [
            Job(f"{change} seed={seed}", partial(self._task, change, seed, games))
            for seed in range(self.seed, self.seed + seeds)
            for change in changes
            if not self._has_played(change, seed, games)
        ]
        for first in range(0, len(jobs), self.parallel):
            if not self.is_late(share):
                self._runner.run(jobs[first : first + self.parallel])
        return bool(jobs)

    def path(self, change: Change, seed: int) -> Path:
        """The directory of a training."""
        if not change.parts and seed == self.seed:
            return self.run.run.path
        return self.run.run.path / TRIALS / change.folder / str(seed)

    def _has_played(self, change: Change, seed: int, games: int) -> bool:
        path = self.path(change, seed)
        is_over = path == self.run.run.path or read_info(path).status in ("failed", "done")
        return is_over or max(self._curve(path), default=0) >= games

    def _task(self, change: Change, seed: int, games: int) -> Task:
        path = self.path(change, seed).absolute()
        words = ["resume", str(path)]
        if not (path / "checkpoints" / LATEST).exists():
            words = ["train", str(self.run.run.path.absolute()), *change.words, f"seed={seed}"]
            words += [f"eval_every={self.every}", "analyze_every=null", "keep_every=null"]
            words += ["logger=null", "solve_seconds=0", f"out={path}"]
        more = [f"plugins=[{','.join(self.plugins)}]"] if self.plugins else []
        return Task(train_until, (games, [*words, *more]), path, games)

    def _curve(self, path: Path) -> dict[float, tuple[float, float]]:
        """The evaluations of a training, by games: the metric and its standard error."""
        run = self.run
        if path != run.run.path:
            try:
                run = Training.read(path)
            except (ConfigError, OSError):
                return {}
        name = f"eval/{self.run.metric}"
        return {
            line["games"]: (line[name], line.get(f"{name}_std_error", 0.0))
            for line in run.lines
            if name in line
        }

    def _curves(self, change: Change) -> list[dict[float, tuple[float, float]]]:
        """The evaluations of each seed that has any."""
        seeds = range(self.seed, self.seed + MAX_SEEDS)
        return [curve for seed in seeds if (curve := self._curve(self.path(change, seed)))]

    def outcome(self, change: Change, games: float = math.inf) -> Outcome:
        """What a change has reached after so many games, or what it has played, compared with the
        run after as many."""
        curves = self._curves(change)
        if not curves:
            failed = read_info(self.path(change, self.seed)).status == "failed"
            return Outcome(change, "failed" if failed else "not finished")
        games = min(games, *map(max, curves))

        def reached(curves: Sequence[dict[float, tuple[float, float]]]) -> list[float]:
            long = [curve for curve in curves if max(curve) >= 0.95 * games]
            return [curve[min(curve, key=lambda each: abs(each - games))][0] for curve in long]

        values, control = reached(curves), reached(self._curves(UNCHANGED))
        if not control and self.run.random == self.run.random:
            control = [self.run.random]  # of a run that failed before its first evaluation
        sign, margin, status = self.run.sign, self.margin(values), "the same"
        gain = sign * (fmean(values) - fmean(control)) if control else math.inf
        highest = max((sign * value for value in control), default=-math.inf)
        if gain > margin and min(sign * value for value in values) > highest:
            status = "better"
        elif gain < -margin:
            status = "worse"
        error = [*curves[0].values()][-1][1]
        half = Z_95 * error if error and len(curves) == 1 else None
        return Outcome(change, status, int(games), values, control, gain, half)

    def margin(self, values: Sequence[float]) -> float:
        """Smaller differences say nothing."""
        size = abs(self.run.random if self.run.random == self.run.random else fmean(values))
        error = self.run.std_error.last
        return max(MIN_GAIN * size, 3 * error if error == error else 0.0)

    def ranked(self, games: float = math.inf) -> list[Outcome]:
        """What was tried, after at most so many games: better ones first, of these the ones with
        the most seeds and games; of several that gain nearly as much as the best the smallest
        change."""
        every = [self.outcome(each, games) for each in self.tried]
        best = max((each.gain for each in every), default=0.0)

        def order(each: Outcome) -> tuple[bool, int, int, bool, int, float]:
            is_far, played = each.gain < KEPT_GAIN * best, (-len(each.values), -each.games)
            size = 0 if is_far else len(each.change.words)
            return each.status != "better", *played, is_far, size, -each.gain

        return sorted(every, key=order)


def minimal(
    parts: Sequence[str],
    first_that_helps: Callable[[Sequence[Sequence[str]]], Sequence[str] | None],
) -> Sequence[str]:
    """A smallest list of parts that helps: none of them can be left out. Delta debugging.

    parts: which help together. first_that_helps: of some lists of parts; None for none.
    """
    kept, pieces = parts, 2
    while len(kept) > 1:
        size = math.ceil(len(kept) / pieces)
        subsets = [kept[first : first + size] for first in range(0, len(kept), size)]
        others = [[part for part in kept if part not in subset] for subset in subsets]
        smaller = first_that_helps([*subsets, *(others if len(subsets) > 2 else [])])
        if smaller is not None:
            kept, pieces = smaller, 2 if smaller in subsets else max(pieces - 1, 2)
        elif size > 1:
            pieces = min(2 * pieces, len(kept))
        else:
            break
    return kept
