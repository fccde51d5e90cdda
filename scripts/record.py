"""docs/strength.json: what `make strength` has measured so far, by step.

All steps together take hours. Those of several days or machines add up in this file; a step whose
command has changed since then counts as not measured.
"""

from __future__ import annotations

import datetime
import fnmatch
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import MISSING, Figures, duration
from steps import RESULTS, SCRIPTS, Step

from rlgames.runs.files import read_metrics

RECORD = RESULTS.with_name("strength.json")
DIGITS = 6
SHOWN = {
    *("score", "moves", "win", "draw", "loss", "seats", "reach", "exploitability_seats"),
    *("mean", "max", "ci95", "rate", "count", "optimal", "wall_seconds"),
}
"""The keys of reports that tables show; those of `reach` are numbers."""


class RecordedFigures(Figures):
    """The results of steps, those of earlier runs included."""

    def __init__(self, out: Path, steps: Sequence[Step], record: dict[str, Any]) -> None:
        super().__init__(out, {step.name: step.words for step in steps})
        self.steps = steps
        self.record = {
            name: entry
            for name, entry in record.items()
            if list(self.words.get(name, ())) == entry["command"]
        }

    def report(self, name: str) -> dict[str, Any] | None:
        entry = self.record.get(name)
        return dict(entry["report"]) if entry else None

    def reports(self, run: str, measure: str) -> list[dict[str, Any]]:
        return [entry["report"] for entry in self._entries(f"{run}/*.{measure}")]

    def metrics(self, run: str) -> list[list[dict[str, float]]]:
        runs = fnmatch.filter((step.name for step in self.steps if step.done(self.out)), f"{run}/?")
        return [read_metrics(self.out / name / "metrics.jsonl") for name in sorted(runs)]

    def seconds(self, run: str) -> list[float]:
        return [entry["seconds"] for entry in self._entries(f"{run}/?")]

    def _entries(self, pattern: str) -> list[dict[str, Any]]:
        return [self.record[name] for name in sorted(fnmatch.filter(self.record, pattern))]

    def dates(self) -> str:
        """When the figures were measured: "on ..." or "from ... to ..."."""
        every = sorted({entry["date"] for entry in self.record.values()}) or [MISSING]
        return f"on {every[0]}" if len(every) == 1 else f"from {every[0]} to {every[-1]}"


def update(path: Path, out: Path, steps: Sequence[Step]) -> dict[str, Any]:
    """Put the steps that are done in `out` into the record; return the whole record."""
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for step in steps:
        if not step.done(out):
            continue
        date = datetime.date.fromtimestamp(step.path(out).stat().st_mtime)
        entry: dict[str, Any] = {"date": date.isoformat(), "command": list(step.words)}
        if step.words[0] == "train":
            metrics = read_metrics(step.path(out) / "metrics.jsonl")
            entry["seconds"] = _rounded(duration(metrics))
        else:
            report = json.loads(step.path(out).read_text(encoding="utf-8"))
            entry["report"] = _rounded(report if step.words[0] in SCRIPTS else _shown(report))
        record[step.name] = entry
    lines = [f"{json.dumps(name)}: {json.dumps(record[name])}" for name in sorted(record)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return record


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items() if k in SHOWN or k.isdigit()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
