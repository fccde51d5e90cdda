"""A sweep: its directory, and what it says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlgames.config.commands import RESUMABLE_KEYS
from rlgames.core.errors import ConfigError, JobsFailed, to_user_error
from rlgames.core.signals import Interrupted
from rlgames.core.text import counted, printable
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.directory import DirectoryLock, claim_sweep
from rlgames.runs.files import SWEEP_FILE, sweep_start, swept_settings

Listed = Callable[[Sequence[str]], Mapping[str, set[str]]]
"""The values of each key among some words."""


@dataclass
class Sweep:
    """A sweep whose directory is locked; a block that unlocks it at its end, and says after a stop
    signal how to go on."""

    directory: Path
    lock: DirectoryLock

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self.lock.release()
        if isinstance(error, Interrupted):
            error.message = self.hint

    @property
    def hint(self) -> str:
        """How to run what is not done."""
        start, command = sweep_start(self.directory), ["rlgames", "resume", str(self.directory)]
        if start is not None and start.unsafe_words:
            again = f"the same command with out={shlex.quote(str(self.directory))}"
            return f"{again} runs what is not done"
        if start is not None and start.folder:
            command += ["--config-dir", start.folder]
        return f"{shlex.join(command)} runs what is not done"

    def write(self, text: str) -> None:
        """Write multirun.yaml."""
        storage.write_file(self.directory, SWEEP_FILE, text)

    def finish(self, ended: Mapping[str, Exception | None], is_complete: bool = False) -> None:
        """Print what the jobs have reached.

        Args:
            ended: why each job is not done, by its name; None if it is.
            is_complete: the others are enough.

        Raises:
            JobsFailed: if some are not done.
        """
        failed = {name: error for name, error in ended.items() if error is not None}
        if len(failed) < len(ended):
            show_best(self.directory)
        if failed and not is_complete:
            name, error = next(iter(failed.items()))
            known = error if isinstance(error, ConfigError) else to_user_error(error)
            reason = known.error.partition("; ")[0]
            count = f"{len(failed):,} of {counted(len(ended), 'job')}"
            raise JobsFailed(f"{count} failed, the first {name}: {reason}", self.hint)


def begin(path: Path, is_dated: bool, words: Sequence[str], listed: Listed) -> Sweep:
    """Claim the directory of a sweep: a new one, or one of the same sweep with fewer values.

    Args:
        path, is_dated: as of claim_sweep.
        words: of the sweep.

    Raises:
        ConfigError: for the directory of another sweep or of a run, and for one that is in use.
    """
    lock = claim_sweep(path, is_dated)
    former = sweep_start(lock.directory)
    if former is not None and (key := _difference(listed(former.words), listed(words))):
        lock.release()
        text = f"{sanitized(path)} holds another sweep, with another {key}"
        raise ConfigError(text, "name another out=")
    return Sweep(lock.directory, lock)


def _difference(old: Mapping[str, set[str]], new: Mapping[str, set[str]]) -> str:
    """A key that two sweeps cannot share a directory for: its values differ, unless several old
    ones are among the new ones or a resumed run may change it; empty if there is none."""
    for key in [*old, *new]:
        before, after = old.get(key, set()), new.get(key, set())
        is_extended = len(before) > 1 and before <= after
        is_free = key in RESUMABLE_KEYS and max(len(before), len(after)) < 2
        if before != after and not (is_extended or is_free):
            return key.removeprefix("game.")
    return ""


def show_best(directory: Path) -> None:
    """Print the runs of a sweep as report does, and what people type next."""
    from rlgames.commands import report
    from rlgames.config.commands import ReportConfig
    from rlgames.config.conf import command_file
    from rlgames.config.typed import typed
    from rlgames.runs.table import ColumnText

    values = command_file("report")[1] | {"runs": [str(directory)]}
    result = report.run(typed(ReportConfig, values))
    report.show(result)
    varied = [key for key in swept_settings(directory) if key in result.keys]
    for run in result.best:
        (row,) = (row for row in result.rows if run in row.runs)
        best = row.estimate(run.best_by)
        if best is not None and len(result.rows) > len(result.best):
            settings = ", ".join(f"{key}={row.settings[key]}" for key in varied or result.keys)
            column = ColumnText(run.best_by, run.best_by)
            value = column.cell(best.value, best.half, row.values(run.best_by))
            seeds = f" over {counted(len(row.runs), 'seed')}" if len(row.runs) > 1 else ""
            print(printable(f"best by {run.best_by}: {settings} with {value}{seeds}"))
    rules, words = result.runs[0].config["game"], ["rlgames", "report"]
    keys = sorted((key for key in varied if key != "game"), key=lambda key: key in rules)
    first = "by" if len(keys) > 1 else "compare"
    commands = [[f"{first}={key}"] for key in keys[:1]] + [["curves=curves.png"]]
    for place, more in enumerate(commands):
        command = shlex.join([*words, str(directory), *more])
        print(printable(f"{'      ' if place else 'next: '}{command}"))
