"""`rlgames doctor RUN try=SECONDS`: short trainings with other settings, compared with the run.

A change is tried with the games and the seed of the run, and evaluated as the run was, so the log
of the run says what it has to beat after as many games. The best changes then go on, with more
games and other seeds, also of the unchanged settings: successive halving (Jamieson and Talwalkar
2016). Of many settings that help together, delta debugging (Zeller and Hildebrandt 2002) finds a
smallest set. Nothing but the files in RUN/doctor/ says what was tried, so a second call goes on.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rlgames.commands.doctor_changes import UNCHANGED, Candidates, Change
from rlgames.commands.study_jobs import type_commands
from rlgames.core.errors import ConfigError
from rlgames.core.jobs import Job, JobView, Runner, Task
from rlgames.evaluation.estimates import Z_95, Estimate
from rlgames.runs.directory import TRIALS
from rlgames.runs.files import LATEST, read_info
from rlgames.runs.series import Training
from rlgames.runs.table import ColumnText

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Of the run's games: the first trainings play one of these."""

FIRST_SHARE, SEARCH_SHARE = 0.4, 0.6
"""Of the time: what the first trainings may need together by an estimate, and when they end."""

START_SECONDS, JOB_SECONDS = 4.0, 1.0
"""About what a process needs to start, and a training besides its games."""

MIN_GAIN, KEPT_GAIN = 0.02, 0.8
"""A better result is better by this fraction of random play's at least; a part of a change does
what the whole one does if it keeps this fraction of the gain."""


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

    def cell(self, metric: str) -> str:
        """The metric with its interval."""
        return cell(metric, self.values, self.half)

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        fields = {"try": str(self.change), "from": self.change.origin, "status": self.status}
        numbers = {"values": [*self.values], "unchanged": [*self.control]}
        return fields | {"games": self.games} | numbers


def cell(metric: str, values: Sequence[float], half: float | None = None) -> str:
    """Values of seeds as a cell of a table."""
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
        own = run.run.points(f"eval/{run.metric}")[0]
        self.total = int(own[-1]) if len(own) else int(settings["games"])
        every = settings["eval_every"] or max(1, settings["games"] // 20)
        self.every = min(int(every), self.total)
        self.tried = dict[Change, None]()
        self._begun = time.monotonic()
        self._runner: Runner | None = None

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.run.run.settings["seed"])

    def first_games(self, count: int) -> int:
        """The games of the first trainings of so many changes."""
        seconds, games = self.run.run.seconds or 0.0, self.run.run.games
        whole = seconds * self.total / games if games else math.inf
        room = FIRST_SHARE * self.parallel * (self.seconds - START_SECONDS)
        fitting = [part for part in FRACTIONS if count * (part * whole + JOB_SECONDS) <= room]
        return self.after(max(fitting, default=FRACTIONS[0]) * self.total)

    def after(self, games: float) -> int:
        """The games of the next evaluation, at most those of the run."""
        return min(self.total, math.ceil(games / self.every) * self.every)

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
        games = self.first_games(found.num_first)
        together = [found.together] if found.together.parts else []
        every = [*together, *found.remedies, *found.single, *found.generic]
        count = max(self.parallel, len(together) + len(found.remedies))
        self.train(every[:count], games, share=SEARCH_SHARE)
        helps = bool(together) and self.outcome(found.together).status == "better"
        left_out = found.generic if helps else ()
        others = [change for change in every[count:] if change not in left_out]
        self.train(others, games, share=SEARCH_SHARE)
        ranked = self.ranked()
        if ranked and len(ranked[0].change.parts) > 1 and ranked[0].status == "better":
            self.smallest(ranked[0].change, games)
        pool = [each.change for each in self.ranked() if each.values]
        while pool and not self.is_late():
            pool = pool[: max(1, len(pool) // 3)]
            games, seeds = self.after(2 * games), 2 if len(pool) > 1 else 3
            self.train([UNCHANGED, *pool], games, seeds)
            pool = [each.change for each in self.ranked() if each.change in pool]
            if games == self.total and len(pool) == 1:
                return

    def smallest(self, change: Change, games: int) -> None:
        """Find a smallest part of a change that keeps most of its gain. Parts that are better by
        themselves come first, so that halves are likely to hold all that matter."""
        gain = self.outcome(change).gain

        def part(kept: Sequence[str]) -> Change:
            return Change(tuple(each for each in change.parts if each in kept), change.origin)

        def first_that_helps(lists: Sequence[Sequence[str]]) -> Sequence[str] | None:
            for first in range(0, len(lists), self.parallel):
                few = lists[first : first + self.parallel]
                self.train([*map(part, few)], games)
                for kept in few:
                    if self.outcome(part(kept)).gain >= KEPT_GAIN * gain:
                        return kept
            return None

        gains = {each: self.outcome(Change((each,))).gain for each in change.parts}
        minimal(sorted(change.parts, key=lambda each: -gains[each]), first_that_helps)

    def train(
        self, changes: Sequence[Change], games: int, seeds: int = 1, share: float = 1.0
    ) -> None:
        """Train changes up to these games, as far as this share of the time allows."""
        assert self._runner is not None
        self.tried |= dict.fromkeys(each for each in changes if each.parts)
        jobs = [
            Job(f"{change} seed={seed}", partial(self._task, change, seed, games))
            for seed in range(self.seed, self.seed + seeds)
            for change in changes
            if not self._has_played(change, seed, games)
        ]
        for first in range(0, len(jobs), self.parallel):
            if self.is_late(share):
                return
            self._runner.run(jobs[first : first + self.parallel])

    def path(self, change: Change, seed: int) -> Path:
        """The directory of a training."""
        if not change.parts and seed == self.seed:
            return self.run.run.path
        return self.run.run.path / TRIALS / change.folder / str(seed)

    def _has_played(self, change: Change, seed: int, games: int) -> bool:
        path = self.path(change, seed)
        if path == self.run.run.path:
            return True
        played = self._curve(path)[0]
        return (bool(played) and played[-1] >= games) or read_info(path).status == "failed"

    def _task(self, change: Change, seed: int, games: int) -> Task:
        path, total = self.path(change, seed).absolute(), self.run.run.settings
        if (path / "checkpoints" / LATEST).exists():
            words = ["resume", str(path)]
        else:
            spanned = total["schedule_games"] if "schedule_games=null" not in change.words else None
            own = [f"seed={seed}", f"schedule_games={spanned or total['games']}", "logger=null"]
            own += [f"eval_every={self.every}", "analyze_every=null", "keep_every=null"]
            changed = [word for word in change.words if word != "schedule_games=null"]
            words = ["train", str(self.run.run.path.absolute()), *changed]
            words += [*own, "solve_seconds=0", f"out={path}"]
        more = [f"plugins=[{','.join(self.plugins)}]"] if self.plugins else []
        return Task(type_commands, ([[*words, f"games={games}", *more]],), path, games)

    def _curve(self, path: Path) -> tuple[list[float], list[float], float | None]:
        """The evaluations of a run: games, the metric, and half of the last one's interval."""
        lines = self.run.lines
        if path != self.run.run.path:
            lines = []
            with suppress(ConfigError, OSError):
                lines = Training.read(path).lines
        name = f"eval/{self.run.metric}"
        known = [line for line in lines if name in line]
        error = known[-1].get(f"{name}_std_error") if known else None
        half = Z_95 * error if error else None
        return [line["games"] for line in known], [line[name] for line in known], half

    def _values(self, change: Change, games: float) -> list[float]:
        """The metric of each seed after so many games, of those that have played them."""
        values = list[float]()
        for seed in range(self.seed, self.seed + 3):
            played, known, _ = self._curve(self.path(change, seed))
            if played and played[-1] >= 0.95 * games:
                values.append(known[min(range(len(played)), key=lambda n: abs(played[n] - games))])
        return values

    def outcome(self, change: Change) -> Outcome:
        """What a change has reached, compared with the run after as many games."""
        paths = [self.path(change, seed) for seed in range(self.seed, self.seed + 3)]
        curves = [curve for path in paths if (curve := self._curve(path))[0]]
        if not curves:
            failed = any(read_info(path).status == "failed" for path in paths)
            return Outcome(change, "failed" if failed else "not finished")
        games = min(played[-1] for played, _, _ in curves)
        values, control = self._values(change, games), self._values(UNCHANGED, games)
        if not control and self.run.random == self.run.random:
            control = [self.run.random]  # of a run that failed before its first evaluation
        sign, margin, status = self.run.sign, self.margin(values), "the same"
        gain = sign * (fmean(values) - fmean(control)) if control else math.inf
        highest = max((sign * value for value in control), default=-math.inf)
        if gain > margin and min(sign * value for value in values) > highest:
            status = "better"
        elif gain < -margin:
            status = "worse"
        half = curves[0][2] if len(curves) == 1 else None
        return Outcome(change, status, int(games), values, control, gain, half)

    def margin(self, values: Sequence[float]) -> float:
        """Smaller differences say nothing."""
        size = abs(self.run.random if self.run.random == self.run.random else fmean(values))
        error = self.run.std_error.last
        return max(MIN_GAIN * size, 3 * error if error == error else 0.0)

    def ranked(self) -> list[Outcome]:
        """What was tried: better ones first, of these the ones with the most games and seeds; of
        several that gain nearly as much as the best the smallest change."""
        every = [self.outcome(each) for each in self.tried]
        best = max((each.gain for each in every), default=0.0)

        def order(each: Outcome) -> tuple[bool, int, int, bool, int, float]:
            is_far, played = each.gain < KEPT_GAIN * best, (-each.games, -len(each.values))
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
            pieces = 2 if smaller in subsets else max(pieces - 1, 2)
            kept = smaller
        elif size == 1:
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return kept
