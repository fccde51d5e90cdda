"""How far a run is: what was played, which tasks are due, and the next line of its log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.core.compiling import clock
from rlgames.core.untrusted import MAX_NUMBER, checked_float, checked_int
from rlgames.games.game import Game, State
from rlgames.rollouts.trajectories import FinalStates
from rlgames.runs.files import MAX_SECONDS

PHASES = ("playing", "learning", "evaluating", "saving", "solving")
"""What a process does. Every line of the log has the fraction of the time of each of them."""

MIN_COMPARED, MAX_COMPARED = 8, 256
"""Games of a batch whose final positions are compared; fewer say nothing."""

MIN_WEIGHT = 1e-300


def game_statistics(game: Game[Any], final: State) -> dict[str, float]:
    """Means over finished games, from their final positions."""
    score = final.score
    statistics = {"turns": float(final.turn.float().mean())}
    if game.spec.goal == "score":
        statistics["score"] = float(score[:, 0].mean())
        values = game.measures(final)
        if "grid_sum" in values:
            statistics["grid_sum"] = float(values["grid_sum"].mean())
    if game.spec.goal == "outcome":
        statistics["first_seat_wins"] = float((score[:, 0] > score[:, 1]).float().mean())
        statistics["draws"] = float((score[:, 0] == score[:, 1]).float().mean())
    if len(final) >= MIN_COMPARED:
        compared = final[:MAX_COMPARED].to("cpu").content().numpy()
        statistics["distinct_games"] = len(set(map(bytes, compared))) / len(compared)
    return statistics


class LogLine:
    """The next line of the log: weighted means, how much was played, and how the time of this
    process was spent.

    Each moment belongs to one phase at most and to one line of the log: the fractions of a line add
    up to at most 1, also where a phase contains another or lasts beyond a line.
    """

    def __init__(self) -> None:
        self._open_phases: list[str] = []
        self._reset()

    def _reset(self) -> None:
        self._start = self._timed_until = clock()
        self._seconds_by_phase = dict.fromkeys(PHASES, 0.0)
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self.num_games = self.num_moves = 0

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
        now = clock()
        if self._open_phases:
            self._seconds_by_phase[self._open_phases[-1]] += now - self._timed_until
        self._timed_until = now

    def close(self) -> dict[str, float]:
        """The means as train/..., speed and fractions of the time as time/...; then start over."""
        self._add_time()
        seconds = self._timed_until - self._start
        metrics = {f"train/{name}": sum_ / self._weights[name] for name, sum_ in self._sums.items()}
        metrics["time/games_per_s"] = self.num_games / seconds
        metrics["time/moves_per_s"] = self.num_moves / seconds
        for phase, phase_seconds in self._seconds_by_phase.items():
            metrics[f"time/{phase}"] = phase_seconds / seconds
        self._reset()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """The sums and times so far, as plain numbers."""
        self._add_time()
        return {
            "sums": dict(self._sums),
            "weights": dict(self._weights),
            "num_games": self.num_games,
            "num_moves": self.num_moves,
            "seconds": self._timed_until - self._start,
            "phases": dict(self._seconds_by_phase),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what does not match."""
        self._sums = {name: float(value) for name, value in state["sums"].items()}
        self._weights = {
            name: checked_float(state["weights"][name], MIN_WEIGHT) for name in self._sums
        }
        self._start = clock() - checked_float(state["seconds"], 0, MAX_SECONDS)
        self._seconds_by_phase = {
            phase: checked_float(state["phases"][phase], 0, MAX_SECONDS) for phase in PHASES
        }
        self.num_games = checked_int(state["num_games"], 0)
        self.num_moves = checked_int(state["num_moves"], 0)


class Progress:
    """How far a run is.

    games, updates, moves: played and made so far. done_at: games played at the last line of the
    log, evaluation, measurement of mistakes, save (-1: none yet) and kept checkpoint. best: the
    best evaluation so far, as Evaluator.better compares it. has_converged: more training would
    change nothing. regret: the last measurement, see Evaluator.regret. num_log_lines: of the
    log at the last save. line: the next line of the log.
    """

    def __init__(self, cfg: TrainConfig) -> None:
        self.cfg, self.line = cfg, LogLine()
        eval_every = cfg.eval_every or max(1, cfg.games // 20)
        self.every = {
            "log": cfg.log_every or max(1, cfg.games // 100),
            "evaluate": eval_every,
            "measure": cfg.analyze_every,
            "save": cfg.save_every or eval_every,
            "keep": cfg.keep_every,
        }
        self.games = self.updates = self.moves = 0
        self.done_at = dict.fromkeys(self.every, 0) | {"save": -1}
        self.best: list[float] | None = None
        self.has_converged = False
        self.regret: float | None = None
        self.num_log_lines = 0
        self._earlier_seconds, self._started_at = 0.0, time.perf_counter()

    @property
    def is_over(self) -> bool:
        return self.has_converged or self.games >= self.cfg.games

    @property
    def fraction(self) -> float:
        """How far the schedules are, from 0 to 1."""
        return self.cfg.schedule_progress(self.games)

    @property
    def batch_size(self) -> int:
        """Games of the next batch."""
        return min(self.cfg.batch, self.cfg.games - self.games)

    @property
    def seconds(self) -> float:
        """Wall-clock time of all processes of the run, one after the other."""
        return self._earlier_seconds + time.perf_counter() - self._started_at

    def is_due(self, task: str) -> bool:
        """Whether a task is due, as each is at the end of the run; not one that the config leaves
        out. The first save is due after the first update, and does not delay the others."""
        is_first = self.done_at[task] < 0 < self.updates
        return is_first or self._is_time(task, self.done_at[task])

    def _is_time(self, task: str, last: int) -> bool:
        """Whether a task is due that was done after `last` games."""
        every = self.every[task]
        if every is None or last >= self.games:
            return False
        return self.games - last >= every or self.is_over

    def mark_done(self, task: str) -> None:
        """Note that a task was done after these games."""
        is_early = self.done_at[task] < 0 and not self._is_time(task, 0)
        self.done_at[task] = 0 if is_early else self.games

    def count(self, game: Game[Any], final_states: FinalStates, metrics: dict[str, float]) -> None:
        """Count a batch that was learned from, with the metrics of its update."""
        self.line.add(metrics, self.batch_size)
        finished = final_states.state[final_states.state.done]
        if len(finished):
            self.line.add(game_statistics(game, finished), len(finished))
        self.line.num_games += len(finished)
        self.line.num_moves += final_states.num_moves
        self.games += len(finished)
        self.moves += final_states.num_moves
        self.updates += 1

    def totals(self) -> dict[str, float]:
        """What the run has taken so far, for each line of the log."""
        return {
            "time/seconds": self.seconds,
            "time/updates": self.updates,
            "time/moves": self.moves,
        }

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        names = ["games", "updates", "moves", "best", "has_converged", "regret", "num_log_lines"]
        return {
            **{name: getattr(self, name) for name in names},
            "done_at": dict(self.done_at),
            "seconds": self.seconds,
            "line": self.line.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], games: int) -> None:
        """Raises LookupError, TypeError or ValueError for what is impossible after this many
        games."""
        self.games = checked_int(state["games"], games, games)
        for name in ("updates", "moves", "num_log_lines"):
            setattr(self, name, checked_int(state[name], 0))
        for task, lowest in self.done_at.items():
            self.done_at[task] = checked_int(state["done_at"][task], lowest, games)
        self._earlier_seconds = checked_float(state["seconds"])
        self.has_converged = bool(checked_int(int(state["has_converged"]), 0, 1))
        best, regret = state["best"], state["regret"]
        limits = (-MAX_NUMBER, MAX_NUMBER)
        self.best = None if best is None else [checked_float(each, *limits) for each in best]
        self.regret = None if regret is None else checked_float(regret, *limits)
        self.line.load_state_dict(state["line"])
