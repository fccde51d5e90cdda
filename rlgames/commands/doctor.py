"""`rlgames doctor`: why runs do not learn, from their files alone; nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config.commands import DoctorConfig
from rlgames.core.errors import ConfigError
from rlgames.core.text import counted, printable
from rlgames.runs.diagnosis import diagnose, still_improves, verdict
from rlgames.runs.files import DamagedRun
from rlgames.runs.find import find_runs, run_path
from rlgames.runs.series import Training


@dataclass(frozen=True)
class Result:
    """What was read of each run. damaged: why the others could not be."""

    runs: dict[Path, Training]
    damaged: dict[Path, str]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        rows = [(str(path), run, diagnose(run)) for path, run in self.runs.items()]
        return {
            "findings": [{"run": path} | each for path, _, found in rows for each in found],
            "no_finding": [
                {"run": path, "verdict": verdict(run)} for path, run, found in rows if not found
            ],
            "damaged": [{"run": str(path), "reason": why} for path, why in self.damaged.items()],
        }


def run(cfg: DoctorConfig) -> Result:
    """Read the runs. Raises ConfigError if there are none."""
    if not cfg.runs:
        raise ConfigError("doctor needs a run", "as in: rlgames doctor outputs")
    result = Result({}, {})
    for path in find_runs([str(run_path(name)) for name in cfg.runs]):
        try:
            result.runs[path] = Training.read(path)
        except DamagedRun as error:
            result.damaged[path] = error.error
    return result


def show(result: Result) -> None:
    """Try the rules, and print the findings of each run."""
    for path, training in result.runs.items():
        games = counted(training.run.games, "game")
        lines = [f"{path}: {training.setting('learner')}, {training.status} after {games}"]
        findings = diagnose(training)
        for place, finding in enumerate(findings, 1):
            lines.append(f"{place}. {finding['cause']}: {finding['evidence']}")
            lines.append(f"   try {finding['try']}")
        if not findings:
            lines.append(verdict(training))
            if still_improves(training):
                lines.append(f"   try rlgames resume {path} games={2 * training.run.games}")
        print(*map(printable, lines), sep="\n")
    for path, why in result.damaged.items():
        print(printable(f"{path}: damaged ({why})"))
