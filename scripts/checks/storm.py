"""Kills runs at random times, resumes them, and compares them with runs that were never killed.

    python scripts/checks/storm.py      # 1,000 kills over all kinds: make storm
    python scripts/checks/storm.py --kills 50 --kinds ppo eval
    python scripts/checks/storm.py --seed 1    # other kills

A run of each kind is started, killed and resumed until it is done, then another one. Which signal,
to which process and when follows from the seed and the kind. After each kill no process may be left
and no checkpoint lost; in the end every file must equal that of the run that was never killed.
Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psutil
from forks import Process, has_ended
from run_files import differing_files

from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import LATEST, SWEEP_FILE

EXIT_SECONDS = 15.0
"""How long a command may live after a signal, and then its processes."""

COMMAND_SECONDS = 120.0
"""A command that has not ended by then, after a signal to a part of it, hangs."""

POLL_SECONDS = 0.01
SIGNALS = {signal.SIGKILL: 7, signal.SIGTERM: 1, signal.SIGINT: 1, signal.SIGHUP: 1}
TARGETS = {"main": 6, "child": 2, "group": 2}
"""What is killed, with weights."""

SMALL = "experiment=null solve_seconds=0 eval_games=20 batch=20"
NETWORK = f"policy=mlp policy.layers=[8] {SMALL}"
SALVO = f"train game=salvo board=3 ships=[2] shots=1 {NETWORK}"
TICTACTOE = f"train game=tictactoe reward=outcome {NETWORK}"
CONNECT4 = f"train game=connect4 rows=4 columns=4 line=3 reward=outcome {NETWORK}"
SLIDE = f"train game=2048 board=2 {SMALL}"
SAVES = "log_every=40 eval_every=200 save_every=60"

KINDS = {
    "ppo": f"{SALVO} games=600 {SAVES}",
    "dqn": f"{TICTACTOE} learner=dqn sampling=epsilon_greedy games=400 learner.buffer_size=200 "
    f"learner.minibatch_size=16 {SAVES}",
    "td_ntuple": f"{SLIDE} learner=td_ntuple policy=ntuple sampling=argmax games=600 "
    f"restart_fraction=0.5 window=4 {SAVES}",
    "alphazero": f"{TICTACTOE} learner=alphazero search=mcts games=400 search.simulations=4 "
    "search.leaf=value learner.buffer_size=500 learner.updates_per_batch=4 "
    f"learner.minibatch_size=32 {SAVES}",
    "adp": f"{SLIDE} columns=2 target=32 learner=adp policy=linear games=600 reward=score "
    f"sampling=epsilon_greedy {SAVES}",
    "behavior_cloning": f"{CONNECT4} learner=behavior_cloning teacher=win_or_block games=600 "
    f"{SAVES}",
    "past_selves": f"{CONNECT4} opponent=past opponent.every=100 games=400 keep_every=100 {SAVES}",
    "sweep": f"{SALVO} -m games=200 log_every=40 eval_every=100 seed=0,1",
    "eval": "eval run games=20000 batch=125 threads=2 solve_seconds=0",
}
"""The commands of runs of a few seconds, by kind."""

SETUP = {"eval": f"{SALVO} games=40 log_every=40 out=run"}
"""The training that a kind needs."""


def start_words(name: str, folder: Path) -> list[str]:
    """The command that starts a run of a kind or, if it has begun, resumes it."""
    words, run = KINDS[name].split(), folder / "run"
    if words[0] == "eval":
        return words
    has_begun = (run / SWEEP_FILE).exists() or (run / "checkpoints" / LATEST).exists()
    return ["resume", "run"] if has_begun else [*words, "out=run"]


class Command:
    """A command in its own session, killed or not; a context that no process of it outlives."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.line = " ".join(words)
        self.code: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self.process = Process(folder, *words, prepare=_begin_session)
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
        pid = self.process.pid
        children = [each for each in self.family() if each != pid]
        with contextlib.suppress(ProcessLookupError):
            if target == "group":
                os.killpg(pid, number)
            else:
                os.kill(rng.choice(children) if target == "child" and children else pid, number)

    def family(self) -> list[int]:
        """The processes of the session that have not ended, orphans too."""
        return [pid for pid in psutil.pids() if _session(pid) == self.process.pid]

    def clean_up(self) -> list[str]:
        """Wait for all processes that the command has left; kill those that stay and return their
        command lines."""
        deadline = time.monotonic() + EXIT_SECONDS
        while (left := self.family()) and time.monotonic() < deadline:
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
        while left := self.family():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)


def _session(pid: int) -> int:
    """The session of a process; 0 if the process has ended."""
    try:
        return 0 if has_ended(pid) else os.getsid(pid)
    except ProcessLookupError:
        return 0


def _begin_session() -> None:
    os.setsid()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    except KeyboardInterrupt:  # which rlgames would report
        os._exit(128 + signal.SIGINT)


def _command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:200]
    except psutil.Error:
        return "ended meanwhile"


@dataclass(frozen=True)
class Blow:
    """A signal to `target` after some seconds."""

    seconds: float
    number: signal.Signals
    target: str

    @classmethod
    def draw(cls, rng: random.Random, seconds: float) -> Blow:
        """At any time of a command that takes so long, or a little later."""
        number = rng.choices([*SIGNALS], [*SIGNALS.values()])[0]
        target = rng.choices([*TARGETS], [*TARGETS.values()])[0]
        return cls(rng.uniform(0.0, 1.2) * seconds, number, target)

    def explains(self, code: int | None, output: str) -> bool:
        """Whether a command that it struck may end so."""
        partial = [3] if self.target == "child" else []
        is_expected = code in (0, -self.number, 128 + self.number, *partial)
        # Ctrl-C in a destructor, of which Python only tells.
        num_ignored = output.count("Exception ignored")
        return is_expected and output.count("Traceback") <= num_ignored


@dataclass
class Outcome:
    """What kills of one kind of run have shown. failures: a line for each."""

    signals: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.signals += other.signals
        self.completed += other.completed
        self.failures += other.failures


def run_whole(name: str, out: Path) -> tuple[float, list[str]]:
    """Run a kind without a kill in out/whole. Returns its seconds and what went wrong."""
    folder = out / "whole"
    shutil.rmtree(out, ignore_errors=True)
    (out / "setup").mkdir(parents=True)
    if name in SETUP:
        with Command(SETUP[name].split(), out / "setup") as setup:
            setup.wait(COMMAND_SECONDS)
    shutil.copytree(out / "setup", folder)
    begun = time.perf_counter()
    with Command(start_words(name, folder), folder) as command:
        command.wait(COMMAND_SECONDS)
        seconds = time.perf_counter() - begun
        errors = [f"not killed: {line} stayed" for line in command.clean_up()]
    if command.code != 0:
        errors.append(f"not killed: exit code {command.code}: {command.process.output()[0][-500:]}")
    return seconds, errors


def storm(name: str, out: Path, seed: int, kills: int, seconds: float) -> Outcome:
    """This many kills of a kind whose uninterrupted run takes so long."""
    rng, outcome = random.Random(f"{seed} {name}"), Outcome()
    while outcome.signals.total() < kills and not outcome.failures:
        folder = out / f"run-{outcome.completed}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(out / "setup", folder)
        seconds = min(seconds, _storm_over_run(name, folder, rng, kills, seconds, outcome))
        if not outcome.failures:  # it is done
            files = differing_files(out / "whole" / "run", folder / "run")
            outcome.failures += [f"{folder}: {path} differs" for path in files]
        if not outcome.failures:
            outcome.completed += 1
            shutil.rmtree(folder)
    return outcome


def _storm_over_run(
    name: str, folder: Path, rng: random.Random, kills: int, seconds: float, outcome: Outcome
) -> float:
    """Start, kill and resume one run until it is done, or something is wrong with it. Returns the
    seconds of its processes."""
    begun, saved = time.perf_counter(), dict[Path, int]()
    while not outcome.failures:
        blow = Blow.draw(rng, seconds)
        has_struck, lines = False, list[str]()
        with Command(start_words(name, folder), folder) as command:
            if outcome.signals.total() < kills and not command.wait(blow.seconds):
                saved = saved_games(folder)
                command.kill(blow.number, blow.target, rng)
                has_struck = True
                outcome.signals[blow.number.name] += 1
            is_main = has_struck and blow.target != "child"
            if not command.wait(EXIT_SECONDS if is_main else COMMAND_SECONDS):
                lines = ["the command did not end"]
            lines += [f"{line} stayed" for line in command.clean_up()]
        lines += losses(folder, saved)
        output = command.process.output()[0]
        if not (blow.explains(command.code, output) if has_struck else command.code == 0):
            lines.append(f"exit code {command.code}: {output[-500:]}")
        event = f"{folder}: {command.line}; {blow if has_struck else 'not killed'}"
        outcome.failures += [f"{event}: {line}" for line in lines]
        if command.code == 0:
            break
    return time.perf_counter() - begun


def saved_games(folder: Path) -> dict[Path, int]:
    """The games of each latest checkpoint, 0 for one that cannot be read."""
    saved = {}
    for path in folder.rglob(LATEST):
        saved[path] = 0
        with contextlib.suppress(ConfigError):
            saved[path] = Checkpoint.read(path).games
    return saved


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


def storm_of(name: str, chosen: argparse.Namespace) -> Outcome:
    """The kills of one kind, after its uninterrupted run."""
    out, kills = chosen.out / name, -(-chosen.kills // len(chosen.kinds))
    seconds, errors = run_whole(name, out)
    outcome = Outcome(failures=errors) if errors else storm(name, out, chosen.seed, kills, seconds)
    line = f"{name}: {outcome.signals.total()} kills, {outcome.completed} runs of {seconds:.1f} s"
    print("\n".join([line, *(f"FAILED: {each}" for each in outcome.failures)]), flush=True)
    return outcome


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000, help="over all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of signals, processes and times")
    parser.add_argument("--kinds", nargs="*", default=[*KINDS], choices=[*KINDS], metavar="kind")
    parser.add_argument("--processes", type=int, default=2, help="kinds side by side")
    parser.add_argument("--out", type=Path, default=Path("outputs") / "storm")
    chosen = parser.parse_args()
    chosen.out = chosen.out.absolute()
    total = Outcome()
    with ProcessPoolExecutor(chosen.processes, get_context("fork")) as pool:
        for outcome in pool.map(partial(storm_of, chosen=chosen), chosen.kinds):
            total.add(outcome)
    signals = ", ".join(f"{count} {name}" for name, count in total.signals.most_common())
    print(f"{total.signals.total()} kills ({signals}), {total.completed} runs")
    print(f"{len(total.failures)} failures")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
