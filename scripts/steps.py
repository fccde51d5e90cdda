"""Commands of rlgames as steps of a longer job: each in a process of its own, none done twice.

A training that was interrupted continues from its last checkpoint.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import connect4_exact
import lookahead_gain
import value_losses

from rlgames.cli import main as cli_main
from rlgames.core.errors import ConfigError, report_error
from rlgames.runs.files import LATEST

SCRIPTS = {
    "value_losses": value_losses.main,
    "connect4_exact": connect4_exact.main,
    "lookahead_gain": lookahead_gain.main,
}
"""Scripts beside this one that a step may name in place of a command."""

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results.md"
SEEDS, TWO, ONE = range(3), range(2), range(1)


@dataclass(frozen=True)
class Step:
    """One command: a training whose directory is `name`, or anything else whose JSON is kept.

    words: the command; {NAME} in a word stands for the path of that step, which comes first, and
    OUT for the directory of all of them. after: other steps that come first. weight: about how
    many seconds it takes, so that long ones begin first. threads: how many it computes with.
    """

    name: str
    words: tuple[str, ...]
    weight: float = 30.0
    after: tuple[str, ...] = ()
    threads: int = 1

    @property
    def needs(self) -> list[str]:
        named = [word.partition("{")[2].partition("}")[0] for word in self.words if "{" in word]
        return [*named, *self.after]

    def path(self, out: Path) -> Path:
        return out / (self.name if self.words[0] == "train" else self.name + ".json")

    def log(self, out: Path) -> Path:
        """What it printed, below its command."""
        path = self.path(out)
        return path.with_name(path.name + ".log")

    def is_stale(self, out: Path) -> bool:
        """Whether its log, if there is one, begins with another command."""
        try:
            with open(self.log(out), encoding="utf-8") as log:
                return log.readline() != self.first_line
        except OSError:
            return False

    @property
    def first_line(self) -> str:
        return json.dumps(self.words) + "\n"

    def discard(self, out: Path) -> None:
        """Delete what it left."""
        shutil.rmtree(self.path(out), ignore_errors=True)
        for path in (self.path(out), self.log(out)):
            path.unlink(missing_ok=True)

    def done(self, out: Path) -> bool:
        path = self.path(out)
        if self.is_stale(out):
            return False
        if self.words[0] != "train":
            return path.exists()
        try:
            run = json.loads((path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(run["status"] == "done")

    def command(self, out: Path) -> list[str]:
        words, path = [_filled(word, out) for word in self.words], str(self.path(out))
        if self.words[0] != "train":
            return words
        return ["resume", path] if self.is_interrupted(out) else [*words, f"out={path}"]

    def is_interrupted(self, out: Path) -> bool:
        """Whether it is a training that can continue from a checkpoint."""
        checkpoint = self.path(out) / "checkpoints" / LATEST
        return self.words[0] == "train" and checkpoint.exists()

    def run(self, out: Path) -> None:
        """In a process of its own: run the command and keep what it printed; exit with its code."""
        path, printed, start = self.path(out), self.log(out), time.perf_counter()
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.words[0] == "train" and not self.is_interrupted(out):
            shutil.rmtree(path, ignore_errors=True)
        with open(printed, "w", encoding="utf-8") as log:
            log.write(self.first_line)
            log.flush()
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            words = self.command(out)
            try:
                code = SCRIPTS.get(words[0], partial(cli_main.run, words[0]))(words[1:])
            except ConfigError as error:
                code = report_error(error, as_json=False)
            sys.stdout.flush()
        if code == 0 and self.words[0] != "train":
            # The JSON is the last line: nothing else is kept.
            report = json.loads(printed.read_text(encoding="utf-8").splitlines()[-1])
            report["wall_seconds"] = time.perf_counter() - start
            unfinished = path.with_suffix(".tmp")
            unfinished.write_text(json.dumps(report), encoding="utf-8")
            unfinished.replace(path)
        sys.exit(code)


def _filled(word: str, out: Path) -> str:
    word = word.replace("OUT", str(out))
    before, brace, rest = word.partition("{")
    name, _, after = rest.partition("}")
    return before + str(out / name) + after if brace else word


def train(
    name: str,
    *words: str,
    weight: float = 30.0,
    seeds: range = SEEDS,
    after: tuple[str, ...] = (),
    threads: int = 1,
) -> list[Step]:
    """One training for each seed, named <name>/<seed>; SEED in a word stands for it."""
    return [
        Step(
            f"{name}/{seed}",
            ("train", *(word.replace("SEED", str(seed)) for word in words), f"seed={seed}"),
            weight,
            after,
            threads,
        )
        for seed in seeds
    ]


def measure(
    name: str, run: str, *words: str, weight: float = 5.0, seeds: range = SEEDS
) -> list[Step]:
    """`rlgames eval` of each seed of a training, named <run>/<seed>.<name>."""
    return [
        Step(
            f"{run}/{seed}.{name}",
            ("eval", f"{{{run}/{seed}}}", *words, "format=json"),
            weight,
        )
        for seed in seeds
    ]


def main(
    description: str, folder: str, every: list[Step], section: Callable[[Path], str], mark: str
) -> int:
    """Run the steps that the command line names and write their section of docs/results.md.

    folder: where their directories go, below outputs/. section: the text made of that directory.
    mark: the section's own; see write_section.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("outputs") / folder)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the steps' names")
    parser.add_argument("--table", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    failed = False
    if not chosen.table:
        failed = not run_all(every, chosen.out, tuple(chosen.only))
    write_section(RESULTS, mark, section(chosen.out))
    return 3 if failed else 0


def write_section(page: Path, mark: str, text: str) -> None:
    """Put the text between the page's comments that begin and end this section, or at its end."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    before, steps, rest = old.partition(begin)
    after = rest.partition(end)[2] if steps else ""
    page.write_text(before + begin + text + end + after, encoding="utf-8")


def run_all(every: list[Step], out: Path, only: tuple[str, ...] = ()) -> bool:
    """Run what is not done, long chains first, each after what it needs; whether all succeeded.

    every: each after those that it needs. only: the beginnings of the names of those to run, all
    if there are none. What another command has left is deleted, with all that was made from it.
    As many run side by side as there are cores for their threads.
    Steps are forked from this process, which has loaded everything and computes nothing itself.
    """
    for module in ("commands.evaluate", "commands.solve", "cli.display", "training.run"):
        importlib.import_module(f"rlgames.{module}")
    stale: set[str] = set()
    for step in every:
        if step.is_stale(out) or stale & set(step.needs):
            stale.add(step.name)
    requested = [step for step in every if not only or step.name.startswith(only)]
    for step in requested:
        if step.name in stale:
            step.discard(out)
    finished = {step.name for step in every if step.name not in stale and step.done(out)}
    # A step of several threads would wait for the others' cores, so it is early.
    seconds = _seconds_to_end(every)
    waiting = sorted(
        (step for step in requested if step.name not in finished),
        key=lambda step: (-step.threads, -seconds[step.name]),
    )
    print(f"{len(requested) - len(waiting)} of {len(requested)} steps are done", flush=True)
    start, failed = time.perf_counter(), 0
    running: dict[int, tuple[ForkProcess, Step, float]] = {}
    cores = os.cpu_count() or 1
    while True:
        ready = [step for step in waiting if set(step.needs) <= finished]
        free = cores - sum(min(step.threads, cores) for _, step, _ in running.values())
        for step in ready:
            if min(step.threads, cores) <= free:
                free -= min(step.threads, cores)
                waiting.remove(step)
                process = get_context("fork").Process(target=step.run, args=(out,))
                process.start()
                running[process.sentinel] = process, step, time.perf_counter()
        if not running:
            break  # all is done, or what is left waits for something that failed
        for sentinel in wait(list(running)):
            assert isinstance(sentinel, int)
            process, step, began = running.pop(sentinel)
            process.join()
            now = time.perf_counter()
            how = "" if process.exitcode == 0 else f"FAILED ({process.exitcode}) "
            print(
                f"{(now - start) / 60:5.1f} min  {how}{step.name}, {now - began:.0f} s", flush=True
            )
            if process.exitcode == 0:
                finished.add(step.name)
            failed += process.exitcode != 0
    for step in waiting:
        print(f"left out: {step.name}", flush=True)
    return not failed and not waiting


def _seconds_to_end(every: list[Step]) -> dict[str, float]:
    """Of each step, with the longest chain of steps that need it, one after the other."""
    chain: dict[str, float] = {}
    for step in reversed(every):
        chain[step.name] = step.weight + chain.get(step.name, 0.0)
        for name in step.needs:
            chain[name] = max(chain.get(name, 0.0), chain[step.name])
    return chain
