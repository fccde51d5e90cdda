"""Writes and restores the checkpoints of a run."""

from __future__ import annotations

import errno
from pathlib import Path

from rlgames.config.typed import to_plain
from rlgames.core import signals
from rlgames.core.forks import Fork, can_fork
from rlgames.core.pages import collapse_pages
from rlgames.runs.checkpoint import Checkpoint, Tree
from rlgames.runs.files import BEST, LATEST
from rlgames.runs.run_log import RunLog
from rlgames.training.state import TrainingState

BACKGROUND_BYTES = range(1 << 24, 1 << 30)
"""Checkpoints of such a size are written by a fork while training goes on. A fork costs some
milliseconds, and a copy of each page of memory that training changes in the meantime: up to twice
the memory."""


class Checkpointer:
    """The checkpoints in a run's directory.

    latest: what a run resumes from. best: the weights of the best evaluation. games_N: kept ones.
    log: the run's files; None in every process but the first, which alone writes.
    A large checkpoint is complete only after wait or poll, or when the next one is begun.
    """

    def __init__(self, state: TrainingState, log: RunLog | None) -> None:
        self.state, self.log = state, log
        self.is_best_due = False
        self._fork: Fork[None] | None = None

    @property
    def has_latest(self) -> bool:
        return self._path(LATEST).exists()

    def mark_best(self) -> None:
        """Have the weights written as the best so far, by write_best or by a write before it, but
        before anything is learned: first of all, because the latest checkpoint counts on them."""
        self.is_best_due = self.log is not None

    def write_best(self) -> None:
        """Write the weights that were marked. Raises as wait."""
        self._write([])

    def write(self, *names: str) -> None:
        """Write weights and state under each of these names. All processes take part.

        Raises as wait.
        """
        log = self.log
        lines, num_bytes = (0, 0) if log is None else (log.num_lines, log.num_event_bytes)
        state = self.state.state_dict(lines, num_bytes)
        if self.log is None:
            return
        self.log.flush()  # a checkpoint never counts lines that are not on the disk
        self._write([(name, state) for name in names])

    def poll(self) -> None:
        """See whether a write in the background has ended. Raises as wait."""
        if self._fork is not None and self._fork.has_value():
            self.wait()
            # What was learned in the meantime was copied in small pages, which slow down learning.
            for weights in self.state.components.agent.policy.state_dict().values():
                collapse_pages(weights)

    def wait(self) -> None:
        """Wait until everything is on the disk. Raises OSError where it cannot be written."""
        if self._fork is not None:
            try:
                self._fork.receive()
            except ChildProcessError as error:
                self.abandon()
                reason = "the process that wrote it was killed"
                raise OSError(errno.EIO, reason, str(self._path(LATEST))) from error
            except Exception:
                self.abandon()
                raise
            self.abandon()  # it has nothing more to do

    def abandon(self) -> None:
        """End what is being written; the checkpoints before it are intact."""
        fork, self._fork = self._fork, None
        if fork is not None:
            fork.end()

    def read_best(self) -> Checkpoint:
        """The checkpoint of the best evaluation."""
        self.wait()
        return Checkpoint.read(self._path(BEST))

    def _write(self, named: list[tuple[str, Tree]]) -> None:
        """Write the policy under each of these names, with a state."""
        self.wait()
        if self.is_best_due:
            named = [(BEST, {}), *named]
        config, games = to_plain(self.state.cfg), self.state.progress.games_played
        policy = self.state.components.evaluator.greedy.policy.state_dict()
        checkpoints = [
            (Checkpoint(config, games, policy, state), self._path(name)) for name, state in named
        ]
        self.is_best_due = False

        def write() -> list[None]:
            for checkpoint, path in checkpoints:
                checkpoint.write(path)
            return [None]

        num_bytes = max(checkpoint.num_bytes for checkpoint, _ in checkpoints)
        is_on_cpu = self.state.components.device.type == "cpu"
        if num_bytes in BACKGROUND_BYTES and is_on_cpu and can_fork():
            with signals.held_back():
                self._fork = Fork(write)
        else:
            write()

    def _path(self, name: str) -> Path:
        assert self.log is not None
        return self.log.directory / "checkpoints" / name
