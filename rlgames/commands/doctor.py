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
from rlgames.runs.history import History


@dataclass(frozen=True)
class Result:
    """What the files of each run say; findings: as in JSON. damaged: runs without one."""

    runs: list[tuple[Path, History, list[dict[str, str]]]]
    damaged: dict[Path, str]

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        found = [(str(path), each) for path, _, findings in self.runs for each in findings]
        healthy = [(str(path), run) for path, run, findings in self.runs if not findings]
        return {
            "findings": [{"run": path} | finding for path, finding in found],
            "no_finding": [{"run": path, "verdict": verdict(run)} for path, run in healthy],
            "damaged": [{"run": str(path), "reason": why} for path, why in self.damaged.items()],
        }


def run(cfg: DoctorConfig) -> Result:
    """Read the runs and try the rules. Raises ConfigError if there are none."""
    if not cfg.runs:
        raise ConfigError("doctor needs a run", "as in: rlgames doctor outputs")
    result = Result([], {})
    for path in find_runs([str(run_path(name)) for name in cfg.runs]):
        try:
            history = History.read(path)
            result.runs.append((path, history, diagnose(history)))
        except DamagedRun as error:
            result.damaged[path] = error.error
    return result


def show(result: Result) -> None:
    """Print the findings of each run, and what to try."""
    for path, history, findings in result.runs:
        info, learner = history.info, history.settings.get("learner")
        lines = [f"{path}: {learner}, {info.status} after {counted(info.games, 'game')}"]
        for place, finding in enumerate(findings, 1):
            lines.append(f"{place}. {finding['cause']}: {finding['evidence']}")
            lines.append(f"   try {finding['try']}")
        if not findings:
            lines.append(verdict(history))
            if still_improves(history):
                lines.append(f"   try rlgames resume {path} games={2 * info.games}")
        print(*map(printable, lines), sep="\n")
    for path, why in result.damaged.items():
        print(printable(f"{path}: damaged ({why})"))
