"""Kills runs at random times, resumes them, and compares them with runs that were never killed.

    python scripts/checks/storm.py      # 1,000 kills over all kinds: make storm
    python scripts/checks/storm.py --kills 50 --kinds ppo eval
    python scripts/checks/storm.py --seed 0 --kinds ppo --parts 3    # one part again

A part is up to ten kills of one kind of run: a run is started, killed and resumed until it is done,
then another one. Which signal, to which process and when follows from the seed, the kind and the
part. After each kill no process may be left and no checkpoint lost; in the end every file must
equal that of the run that was never killed. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import math
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, fields
from multiprocessing import get_context
from pathlib import Path

BEGUN = time.perf_counter()

import psutil  # noqa: E402
from forks import Process, has_ended  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from run_files import differing_files  # noqa: E402
from storm_kinds import KINDS, Kind  # noqa: E402

from rlgames.core.errors import ConfigError  # noqa: E402
from rlgames.runs.checkpoint import Checkpoint  # noqa: E402
from rlgames.runs.files import LATEST  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - BEGUN
"""What a new interpreter takes to import rlgames, about."""

PART_KILLS = 10
NEW_INTERPRETER_RATE = 0.1
"""The fraction of processes that are new interpreters; the others are forks."""

EXIT_SECONDS = 10.0 + IMPORT_SECONDS
"""How long a command may live after a signal, which waits for imports, and then its processes."""

COMMAND_SECONDS = 120.0
"""A command that has not ended by then, after a signal to a part of it, hangs."""

POLL_SECONDS = 0.01
SIGNALS = {signal.SIGKILL: 7, signal.SIGTERM: 1, signal.SIGINT: 1, signal.SIGHUP: 1}
TARGETS = {"main": 6, "child": 2, "group": 2}
"""What is killed, with weights."""


@dataclass
class Outcome:
    """What a storm over one kind of run has shown; the lists hold a line for each failure."""

    signals: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """A line for each."""
        return [*self.lost, *self.left, *self.differing, *self.errors]

    def add(self, other: Outcome) -> None:
        for item in fields(self):
            name = item.name
            setattr(self, name, getattr(self, name) + getattr(other, name))


def descendants(ancestor: int) -> list[int]:
    """The processes that descend from one and have not ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(ancestor).children(recursive=True)
        return [each.pid for each in family if not has_ended(each.pid)]
    return []


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """A block in which processes whose parent ends become children of this one."""
    subreaper, libc = 36, ctypes.CDLL(None)
    libc.prctl(subreaper, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(subreaper, 0, 0, 0, 0)


class Command:
    """A command of a run in a session of its own, killed or not; a context that no process of it
    outlives."""

    def __init__(self, kind: Kind, folder: Path, is_forked: bool) -> None:
        words = kind.start_words(folder)
        self.line, self._others = " ".join(words), {*descendants(os.getpid())}
        self._exit_seconds = EXIT_SECONDS + kind.exit_seconds
        self.code: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self.process = Process(folder, *words, prepare=lambda: _become(kind, words, is_forked))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def wait(self, seconds: float) -> bool:
        """Whether the command ends in this time."""
        deadline = time.monotonic() + seconds
        while self.code is None:
            self.code = self.process.poll()
            if self.code is None and time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def kill(self, number: int, target: str, rng: random.Random) -> None:
        """Send a signal to the command, to one of its descendants if there is any, or to its
        process group."""
        pid, children = self.process.pid, descendants(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            if target == "group":
                os.killpg(pid, number)
            else:
                os.kill(rng.choice(children) if target == "child" and children else pid, number)

    def clean_up(self) -> list[str]:
        """Wait for all processes that the command has left; kill those that stay and return their
        command lines."""
        deadline = time.monotonic() + self._exit_seconds
        while (left := self._family()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        lines = [f"{pid}: {_command_line(pid)}" for pid in left]
        self._kill_all()
        return lines

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill_all()
        if self.code is None:
            self.code = self.process.poll()

    def _kill_all(self) -> None:
        while left := self._family():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        self._reap_orphans()

    def end_of_output(self) -> str:
        return self.process.output()[0][-500:]

    def _family(self) -> list[int]:
        """The processes of the command that have not ended."""
        return [pid for pid in descendants(os.getpid()) if pid not in self._others]

    def _reap_orphans(self) -> None:
        own = {*self._others, self.process.pid}
        for child in psutil.Process().children():
            if child.pid not in own and has_ended(child.pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child.pid, os.WNOHANG)


def _become(kind: Kind, words: list[str], is_forked: bool) -> None:
    """In a fork: begin a session and, unless the command runs in this fork, become another."""
    os.setsid()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    except KeyboardInterrupt:  # which rlgames would report
        os._exit(128 + signal.SIGINT)
    if not is_forked:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "rlgames", *words])


def _command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:200]
    except psutil.Error:
        return "ended meanwhile"


def saved_games(folder: Path) -> dict[Path, int]:
    """The games of each latest checkpoint, 0 for one that cannot be read."""
    saved = {}
    for path in folder.rglob(LATEST):
        saved[path] = 0
        with contextlib.suppress(ConfigError):
            saved[path] = Checkpoint.read(path).games
    return saved


def run_whole(name: str, out: Path) -> tuple[float, list[str]]:
    """Run a kind without a kill in out/whole. Returns its seconds and what went wrong."""
    kind, folder = KINDS[name], out / "whole"
    shutil.rmtree(out, ignore_errors=True)
    (out / "setup").mkdir(parents=True)
    with adopting_orphans():
        if kind.setup:
            with Command(Kind(kind.setup), out / "setup", is_forked=True) as setup:
                setup.wait(COMMAND_SECONDS)
        shutil.copytree(out / "setup", folder)
        begun = time.perf_counter()
        with Command(kind, folder, kind.is_forked) as command:
            command.wait(COMMAND_SECONDS)
            seconds = time.perf_counter() - begun
            errors = [f"not killed: {line} stayed" for line in command.clean_up()]
    if command.code != 0:
        errors.append(f"not killed: exit code {command.code}: {command.end_of_output()}")
    return seconds, errors


def storm(name: str, out: Path, seed: int, part: int, kills: int, seconds: float) -> Outcome:
    """One part: this many kills of a kind whose uninterrupted run takes so long."""
    rng, outcome, begun = random.Random(f"{seed} {name} {part}"), Outcome(), time.perf_counter()
    number = 0
    with adopting_orphans():
        while outcome.signals.total() < kills and not outcome.failures:
            folder = out / f"part-{part}" / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(out / "setup", folder)
            _storm_over_run(KINDS[name], folder, rng, kills, seconds, outcome)
            if not outcome.failures:  # it is done
                files = differing_files(out / "whole" / "run", folder / "run")
                outcome.differing += [f"{folder}: {path} differs" for path in files]
                outcome.completed += 1
            if not outcome.failures:
                shutil.rmtree(folder)
            number += 1
    outcome.seconds = time.perf_counter() - begun
    return outcome


@dataclass(frozen=True)
class Blow:
    """A signal to `target` after some seconds; is_forked: how the command begins."""

    seconds: float
    number: signal.Signals
    target: str
    is_forked: bool

    @classmethod
    def draw(cls, rng: random.Random, kind: Kind, seconds: float) -> Blow:
        """At any time of a command that takes so long as a fork, or a little later."""
        is_forked = kind.is_forked and rng.random() > NEW_INTERPRETER_RATE
        if kind.is_forked and not is_forked:
            seconds += IMPORT_SECONDS * kind.processes_in_turn
        delay = rng.uniform(0.0, 1.2) * seconds
        number = rng.choices([*SIGNALS], [*SIGNALS.values()])[0]
        return cls(delay, number, rng.choices([*TARGETS], [*TARGETS.values()])[0], is_forked)

    def __str__(self) -> str:
        how = "a fork" if self.is_forked else "a new interpreter"
        return f"{self.number.name} to {self.target} of {how} after {self.seconds:.2f} s"

    def explains(self, code: int | None, output: str, kind: Kind) -> bool:
        """Whether a command that it struck may end so."""
        if kind.has_own_codes:
            return code is not None
        # An interpreter that starts reports Ctrl-C as it likes; joblib's own processes print
        # tracebacks when one of them is killed.
        is_own = self.is_forked or (kind.is_forked and self.number != signal.SIGINT)
        if is_own and "Traceback" in output:
            return False
        if "Fatal Python error: init_" in output or "Could not import runpy" in output:
            return not self.is_forked and self.number == signal.SIGINT
        partial = [3] if self.target == "child" else []
        return code in (0, -self.number, 128 + self.number, *partial)


def _storm_over_run(
    kind: Kind, folder: Path, rng: random.Random, kills: int, seconds: float, outcome: Outcome
) -> None:
    """Start, kill and resume one run until it is done, or something is wrong with it."""
    progress, saved = 0.0, dict[Path, int]()
    while not outcome.failures:
        blow = Blow.draw(rng, kind, seconds * (1.0 - 0.85 * progress))
        has_struck, left = False, list[str]()
        with Command(kind, folder, blow.is_forked) as command:
            if outcome.signals.total() < kills and not command.wait(blow.seconds):
                saved = saved_games(folder)
                command.kill(blow.number, blow.target, rng)
                has_struck = True
                outcome.signals[name_of(blow.number)] += 1
            is_main = has_struck and blow.target != "child"
            if not command.wait(EXIT_SECONDS if is_main else COMMAND_SECONDS):
                left = ["the command did not end"]
            left += [f"{line} stayed" for line in command.clean_up()]
        event = f"{folder}: {command.line}; {blow if has_struck else 'not killed'}"
        outcome.left += [f"{event}: {line}" for line in left]
        outcome.lost += [f"{event}: {line}" for line in losses(folder, saved)]
        output = command.process.output()[0]
        is_expected = blow.explains(command.code, output, kind) if has_struck else not command.code
        if not is_expected:
            outcome.errors.append(f"{event}: exit code {command.code}: {command.end_of_output()}")
        if command.code == 0:
            return
        progress = kind.progress(folder) if not outcome.failures else 0.0


def losses(folder: Path, saved: dict[Path, int]) -> list[str]:
    """A line for each checkpoint that cannot be read or has fewer games than were saved."""
    lines = []
    for path in sorted({*saved, *folder.rglob(LATEST)}):
        try:
            games = Checkpoint.read(path).games
        except ConfigError as error:
            lines.append(error.error)
        else:
            if games < saved.get(path, 0):
                lines.append(f"{path} had {saved[path]} games, now {games}")
    return lines


def run_all(chosen: argparse.Namespace, kinds: dict[str, Kind]) -> dict[str, Outcome]:
    """All parts of these kinds, as many side by side as asked for."""
    outcomes = {name: Outcome() for name in kinds}
    with ProcessPoolExecutor(chosen.processes, get_context("fork")) as pool:
        try:
            seconds = run_references(pool, chosen.out, outcomes)
            run_parts(pool, chosen, kinds, seconds, outcomes)
        except BaseException:  # Ctrl-C, for example
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def run_references(
    pool: ProcessPoolExecutor, out: Path, outcomes: dict[str, Outcome]
) -> dict[str, float]:
    """Run each kind without a kill; the seconds that each took."""
    seconds = {}
    references = {pool.submit(run_whole, name, out / name): name for name in outcomes}
    for done in as_completed(references):
        name = references[done]
        seconds[name], errors = done.result()
        outcomes[name].errors += errors
        progress(f"{name}: not killed, {seconds[name]:.1f} s", errors)
    return seconds


def run_parts(
    pool: ProcessPoolExecutor,
    chosen: argparse.Namespace,
    kinds: dict[str, Kind],
    seconds: dict[str, float],
    outcomes: dict[str, Outcome],
) -> None:
    """Run the parts of all kinds whose reference succeeded, long ones first."""
    running = {}
    for name in sorted(kinds, key=lambda name: -seconds[name]):
        for part, kills in [] if outcomes[name].errors else parts_of(kinds[name], kinds, chosen):
            out = chosen.out / name
            task = pool.submit(storm, name, out, chosen.seed, part, kills, seconds[name])
            running[task] = name, part
    for done in as_completed(running):
        (name, part), outcome = running[done], done.result()
        outcomes[name].add(outcome)
        kills, count = outcome.signals.total(), outcome.completed
        line = f"{name}, part {part}: {kills} kills, {count} runs, {outcome.seconds:.0f} s"
        progress(line, outcome.failures)
        if outcome.failures:
            words = f"--seed {chosen.seed} --kinds {name} --parts {part}"
            print(f"again: python scripts/checks/storm.py {words}", flush=True)


def parts_of(
    kind: Kind, kinds: dict[str, Kind], chosen: argparse.Namespace
) -> list[tuple[int, int]]:
    """The numbers of a kind's parts and their kills."""
    if chosen.parts:
        return [(part, PART_KILLS) for part in chosen.parts]
    kills = math.ceil(chosen.kills * kind.weight / sum(kind.weight for kind in kinds.values()))
    starts = range(0, kills, PART_KILLS)
    return [(start // PART_KILLS, min(PART_KILLS, kills - start)) for start in starts]


def table(outcomes: dict[str, Outcome]) -> Table:
    """The outcome of each kind, and of all together."""
    signals = [name_of(number) for number in SIGNALS]
    names = ["kills", *signals, "runs", "lost", "left", "differ", "errors", "s"]
    result = Table("kind", box=None, padding=(0, 1), collapse_padding=True)
    for name in names:
        result.add_column(name, justify="right")
    total = Outcome()
    for outcome in outcomes.values():
        total.add(outcome)
    for name, outcome in [*outcomes.items(), ("all", total)]:
        counts = [outcome.signals.total(), *(outcome.signals[each] for each in signals)]
        failures = (outcome.lost, outcome.left, outcome.differing, outcome.errors)
        counts += [outcome.completed, *map(len, failures), round(outcome.seconds)]
        result.add_row(name, *map(str, counts))
    return result


def name_of(number: signal.Signals) -> str:
    return number.name.removeprefix("SIG")


def progress(line: str, failures: list[str]) -> None:
    print(f"{time.perf_counter() - BEGUN:6.0f} s  {line}", flush=True)
    for each in failures:
        print(f"FAILED: {each}", flush=True)


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000, help="over all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of signals, processes and times")
    parser.add_argument("--kinds", nargs="*", default=[*KINDS], choices=[*KINDS], metavar="kind")
    parser.add_argument("--parts", nargs="*", type=int, default=[], help="of the kinds, by number")
    parser.add_argument("--processes", type=int, default=2, help="parts side by side")
    parser.add_argument("--out", type=Path, default=Path("outputs") / "storm")
    chosen = parser.parse_args()
    chosen.out = chosen.out.absolute()
    kinds = {name: KINDS[name] for name in chosen.kinds if KINDS[name].is_available()}
    skipped = [name for name in chosen.kinds if name not in kinds]
    outcomes = run_all(chosen, kinds)
    Console().print(table(outcomes))
    for name in skipped:
        print(f"skipped: {name}, which needs {KINDS[name].extra}")
    return 1 if any(outcome.failures for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
