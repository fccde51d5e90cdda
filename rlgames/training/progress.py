"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.training import TrainConfig
from rlgames.core.schedule import Schedule
from rlgames.core.untrusted import checked_float, checked_int


@dataclass
class Progress:
    """How far a run is, as a checkpoint stores it.

    logged_at, evaluated_at, saved_at, kept_at: games played at the last line of the log, the last
    evaluation, the last checkpoint (-1: none yet) and the last checkpoint that is kept. best: the
    best evaluation so far, as Evaluator.better compares it. has_converged: more training would
    change nothing. seconds: wall-clock time of earlier processes. num_moves: made so far.
    """

    games_played: int = 0
    num_updates: int = 0
    logged_at: int = 0
    evaluated_at: int = 0
    saved_at: int = -1
    kept_at: int = 0
    best: list[float] | None = None
    has_converged: bool = False
    seconds: float = 0.0
    num_moves: int = 0

    def check(self, games: int) -> None:
        """Raises ValueError or TypeError for values that are impossible after this many games."""
        checked_int(self.games_played, games, games)
        checked_int(self.num_updates, 0)
        checked_int(self.saved_at, -1, games)
        for last_games in (self.logged_at, self.evaluated_at, self.kept_at):
            checked_int(last_games, 0, games)
        checked_float(self.seconds)
        checked_int(self.num_moves, 0)
        if self.best is not None and (
            len(self.best) != 2 or not all(type(value) in (int, float) for value in self.best)
        ):
            raise ValueError("the best evaluation is not two numbers")
        if type(self.has_converged) is not bool:
            raise ValueError("has_converged is neither true nor false")


def schedule_changes(trained: TrainConfig, cfg: TrainConfig, games: int) -> str:
    """Which scheduled values jump if a run resumes by another config after this many games, and
    how to prevent it; empty if none does."""
    before, after = (each.schedule_progress(games) for each in (trained, cfg))
    jumps = []
    keys = [(options, key) for options in (cfg.learner, cfg.sampling) for key in vars(options)]
    for options, key in keys:
        name, end = key.removesuffix("_end"), getattr(options, key)
        if name != key and end is not None:
            schedule = Schedule(getattr(options, name, cfg.lr), end)
            values = [f"{schedule.at(progress):.4g}" for progress in (before, after)]
            if values[0] != values[1]:
                jumps.append(f"{name} jumps from {values[0]} to {values[1]}")
    if not jumps:
        return ""
    first = trained.schedule_games or trained.games
    return f"{', '.join(jumps)}; schedule_games={first} keeps the first schedule"
