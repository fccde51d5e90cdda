"""What all benchmarks share: rounds in turn, medians and ratios, tables, workers.

It needs the standard library only, as the peers' environment imports it, too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-bench" / "bin" / "python"
"""The interpreter of the peers, made by `make bench-peers`."""


@dataclass(frozen=True)
class Rounds:
    """The same figure measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self) -> str:
        """The median and, of several rounds, the range."""
        if len(self.values) == 1:
            return short(self.median)
        low, high = min(self.values), max(self.values)
        return f"{short(self.median)} ({short(low)} to {short(high)})"


def in_turn(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Rounds]:
    """Measure all sides once, then all again, so that what disturbs the machine disturbs each."""
    results: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name, side in sides.items():
            results[name].append(side())
            progress(f"round {number + 1} of {rounds}, {name}: {short(results[name][-1])}")
    return {name: Rounds(tuple(values)) for name, values in results.items()}


def ratio(ours: Rounds, peer_results: Rounds) -> str:
    """The ratio of the medians and, of several rounds, the range of the ratios of one round."""
    if len(ours.values) == 1:
        return f"{ours.median / peer_results.median:.3g}"
    each = [mine / other for mine, other in zip(ours.values, peer_results.values, strict=True)]
    return f"{ours.median / peer_results.median:.3g} ({min(each):.3g} to {max(each):.3g})"


def short(value: float) -> str:
    """Three digits or all before the point, thousands separated by commas."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(head: Sequence[str], results: Mapping[str, Rounds]) -> str:
    """A table of results by name."""
    return rows(head, [[name, each.text()] for name, each in results.items()])


BEGUN = time.perf_counter()


def progress(line: str) -> None:
    """A line on the error stream, with the seconds since the start."""
    print(f"{time.perf_counter() - BEGUN:6.0f} s  {line}", file=sys.stderr, flush=True)


class Worker:
    """A script of this folder in a process of its own, asked by lines of JSON and answering so."""

    def __init__(self, script: str, python: str | Path = sys.executable, threads: int = 1) -> None:
        self.script = script
        self._process = subprocess.Popen(
            [str(python), str(ROOT / "scripts" / "bench" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.__exit__(*error)

    def ask(self, **words: Any) -> dict[str, Any]:
        """Raises RuntimeError for a question that failed, or a worker that ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        results: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in results:
            raise RuntimeError(f"{self.script}: {results['error']}")
        return results

    def speed(self, **words: Any) -> float:
        return float(self.ask(**words)["speed"])


def serve(answer: Callable[..., dict[str, Any]]) -> None:
    """Be a worker: answer each line until there are no more; nothing else is printed there."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            results = answer(**json.loads(line))
        except Exception as error:  # reported to the caller
            results = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(results), file=out, flush=True)
