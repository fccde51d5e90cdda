"""What the tables of docs/results.md are made of: the results of steps, as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlgames.evaluation.aggregate import mean_of_runs
from rlgames.runs.files import read_metrics, read_run

MISSING = "–"


class Figures:
    """The results of the steps in one directory; None for anything that is missing.

    words: the command of each step, by its name, as Step.words.
    """

    def __init__(self, out: Path, words: dict[str, tuple[str, ...]] | None = None) -> None:
        self.out, self.words = out, words or {}

    def commands(self, *runs: str) -> str:
        """A list of the commands that train and evaluate these runs."""
        lines = []
        for run in runs:
            if words := self.words.get(f"{run}/0"):
                lines.append(f"- `{run}`: `{_typed(words)}`")
            prefix = f"{run}/0."
            for name, words in self.words.items():
                if name.startswith(prefix):
                    lines.append(f"  - {name.removeprefix(prefix)}: `{_typed(words)}`")
        return "\n".join(lines)

    def report(self, name: str) -> dict[str, Any] | None:
        """The JSON of an `eval` or a `solve`."""
        path = self.out / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def reports(self, run: str, measure: str) -> list[dict[str, Any]]:
        """One for each seed of a training."""
        paths = sorted((self.out / run).glob(f"*.{measure}.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def metrics(self, run: str) -> list[list[dict[str, float]]]:
        """The lines of metrics.jsonl, for each seed that is done."""
        return [
            read_metrics(path)
            for path in sorted((self.out / run).glob("*/metrics.jsonl"))
            if read_run(path.parent).get("status") == "done"
        ]

    def seconds(self, run: str) -> list[float]:
        """How long each training took, from its first game to its last."""
        return [duration(lines) for lines in self.metrics(run)]


def duration(metrics: list[dict[str, float]]) -> float:
    """The seconds from a training's first game to its last."""
    return max(line["time/seconds"] for line in metrics if "time/seconds" in line)


def _typed(words: tuple[str, ...]) -> str:
    """A command as a person types it; RUN and OTHER/SEED stand for run directories."""
    first, *rest = (word for word in words if word not in ("format=json", "solve_seconds=0"))
    rest = ["seed=SEED" if word == "seed=0" else word for word in rest]
    if first == "eval":
        rest = ["RUN" if word.startswith("{") else word for word in rest]
    text = " ".join(["rlgames", first, *rest])
    return text.replace("/0}", "/SEED").replace("{", "")


def mean(values: Sequence[float], digits: int = 2) -> str:
    """The mean over seeds: with its 95% interval from three on, of two with both of them.

    Equal values of three or more seeds have no interval: it would have no width.
    """
    if not values:
        return MISSING
    middle = sum(values) / len(values)
    shown = f"{middle:,.{digits}f}"
    if len(values) == 1:
        return shown
    if len(values) == 2:
        return f"{shown} ({min(values):,.{digits}f}, {max(values):,.{digits}f})"
    if max(values) - min(values) < 1e-9:
        return f"{shown} ({len(values)} equal)"
    return f"{shown} ± {mean_of_runs([np.array(values)]).half:,.{digits}f}"


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def over(reports: list[dict[str, Any]], *path: str, digits: int = 2, times: float = 1.0) -> str:
    """The mean over seeds of a figure deep in their reports."""
    values: list[Any] = list(reports)
    for name in path:
        values = [value[name] for value in values]
    return mean([times * value for value in values], digits)


def reached(reports: list[dict[str, Any]], tile: int) -> str:
    """How many of the games reach a tile, in %."""
    rates = [report["reach"].get(str(tile), {"rate": 0.0})["rate"] for report in reports]
    return MISSING if None in rates else mean([100 * rate for rate in rates], 1)


def over_games(reports: list[dict[str, Any]], key: str, digits: int = 2) -> str:
    """The mean of `score` or `moves`: of one seed with its interval over games."""
    if len(reports) != 1 or reports[0][key]["ci95"] is None:
        return over(reports, key, "mean", digits=digits)
    low, high = reports[0][key]["ci95"]
    return f"{reports[0][key]['mean']:,.{digits}f} ± {(high - low) / 2:,.{digits}f}"
