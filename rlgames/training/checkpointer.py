"""Writes and restores the checkpoints of a run."""

from __future__ import annotations

from pathlib import Path

from rlgames.config.checks import to_plain
from rlgames.runs.checkpoint import BEST, LATEST, Checkpoint, Tree
from rlgames.runs.run_log import RunLog
from rlgames.training.state import TrainingState


class Checkpointer:
    """The checkpoints in a run's directory.

    latest: what a run resumes from. best: the weights of the best evaluation. games_N: kept ones.
    log: the run's files; None in every process but the first, which alone writes.
    """

    def __init__(self, state: TrainingState, log: RunLog | None) -> None:
        self.state, self.log = state, log

    @property
    def has_latest(self) -> bool:
        return self._path(LATEST).exists()

    def write(self, *names: str) -> None:
        """Write weights and state under each of these names. All processes take part."""
        lines, events = (0, 0) if self.log is None else (self.log.num_lines, self.log.num_events)
        state = self.state.state_dict(lines, events)
        if self.log is None:
            return
        self.log.flush()  # a checkpoint never counts lines that are not on the disk
        for name in names:
            self._checkpoint(state).write(self._path(name))

    def write_best(self) -> None:
        """Write the weights as the best so far."""
        self._checkpoint({}).write(self._path(BEST))

    def read_best(self) -> Checkpoint:
        """The checkpoint of the best evaluation."""
        return Checkpoint.read(self._path(BEST))

    def _checkpoint(self, state: Tree) -> Checkpoint:
        policy = self.state.components.agent.policy.state_dict()
        games = self.state.progress.games_played
        return Checkpoint(to_plain(self.state.cfg), games, policy, state)

    def _path(self, name: str) -> Path:
        assert self.log is not None
        return self.log.directory / "checkpoints" / name
