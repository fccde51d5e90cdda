"""Writes and restores the checkpoints of a run."""

from __future__ import annotations

from pathlib import Path

from rlgames.config.typed import to_plain
from rlgames.runs.checkpoint import Checkpoint, Tree
from rlgames.runs.files import BEST, LATEST
from rlgames.runs.log import RunLog
from rlgames.training.state import TrainingState


class Checkpointer:
    """The checkpoints in a run's directory.

    latest: what a run resumes from. best: the weights of the best evaluation. games_N: kept ones.
    """

    def __init__(self, state: TrainingState, log: RunLog) -> None:
        self.state, self.log = state, log

    @property
    def has_latest(self) -> bool:
        return self._path(LATEST).exists()

    def write(self, *names: str) -> None:
        """Write weights and state under each of these names. Raises OSError."""
        state = self.state.state_dict(self.log.num_lines, self.log.num_event_bytes)
        self.log.flush()  # a checkpoint never counts lines that are not on the disk
        for name in names:
            self._write(name, state)

    def write_best(self) -> None:
        """Write the weights as the best so far: before the latest checkpoint, which counts on
        them. Raises OSError."""
        self._write(BEST, {})

    def read_best(self) -> Checkpoint:
        """The checkpoint of the best evaluation."""
        return Checkpoint.read(self._path(BEST))

    def _write(self, name: str, state: Tree) -> None:
        config, games = to_plain(self.state.cfg), self.state.progress.games_played
        policy = self.state.components.evaluator.greedy.policy.state_dict()
        Checkpoint(config, games, policy, state).write(self._path(name))

    def _path(self, name: str) -> Path:
        return self.log.directory / "checkpoints" / name
