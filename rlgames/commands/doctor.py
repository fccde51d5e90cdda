"""`rlgames doctor`: why runs do not learn, by rules over their files, and by trying what helps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgames.config.plugins import command_for_run
from rlgames.core.errors import ConfigError
from rlgames.core.jobs import num_cores
from rlgames.core.signals import INTERRUPTED, Interrupted
from rlgames.core.text import counted, printable
from rlgames.runs.diagnosis import CERTAIN, diagnose, still_improves, verdict
from rlgames.runs.directory import TRIALS
from rlgames.runs.files import DamagedRun
from rlgames.runs.find import find_runs, run_path
from rlgames.runs.series import Training
from rlgames.terminal.jobs import jobs_view
from rlgames.terminal.tables import Column, print_table

if TYPE_CHECKING:
    from rlgames.commands.doctor_trials import Outcome

MAX_SECONDS = 300.0
"""The longest time of try=true."""


@dataclass(frozen=True)
class Result:
    """What was read of each run. damaged: why the others could not be. tried: with try=, the best
    first. plugins: of the command."""

    runs: dict[Path, Training]
    damaged: dict[Path, str]
    plugins: list[str]
    tried: list[Outcome] | None = None
    exit_code: int = 0

    def as_dict(self) -> dict[str, Any]:
        """What `format=json` prints."""
        rows = [(str(path), run, diagnose(run)) for path, run in self.runs.items()]
        tried = {} if self.tried is None else {"tried": [each.as_dict() for each in self.tried]}
        return {
            "findings": [{"run": path} | each for path, _, found in rows for each in found],
            "no_finding": [
                {"run": path, "verdict": verdict(run)} for path, run, found in rows if not found
            ],
            "damaged": [{"run": str(path), "reason": why} for path, why in self.damaged.items()],
            **tried,
        }


def run(cfg: Any) -> Result:
    """Read the runs, and try what may help one of them. Raises ConfigError if there are none."""
    if not cfg.runs:
        raise ConfigError("doctor needs a run", "as in: rlgames doctor outputs")
    seconds = getattr(cfg, "try")
    result = Result({}, {}, cfg.plugins)
    for path in find_runs([str(run_path(name)) for name in cfg.runs]):
        try:
            result.runs[path] = Training.read(path)
        except DamagedRun as error:
            result.damaged[path] = error.error
    if len(result.runs) == 1 and not result.damaged:
        ((path, training),) = result.runs.items()
        result.runs[path] = with_scores(training)
    if not seconds:
        return result
    if len(result.runs) != 1:
        raise ConfigError(f"try= takes one run, not {len(result.runs)}", "name the run")
    (training,) = result.runs.values()
    if training.status == "running":
        raise ConfigError(f"{training.run.path} still trains", "stop it, or wait, before try=")
    if not training.is_weak:
        return result
    with redirect_stdout(sys.stdout if cfg.format == "table" else sys.stderr):
        return try_changes(cfg, result, training, seconds)


def try_changes(cfg: Any, result: Result, training: Training, seconds: float) -> Result:
    """Try what may help a run, for so many seconds, True: as long as the run took, with the start
    of its process; after Ctrl-C with what is known."""
    from rlgames.commands.doctor_changes import candidates
    from rlgames.commands.doctor_trials import START_SECONDS, Trials

    if seconds is True:
        seconds = min(MAX_SECONDS, START_SECONDS + (training.run.seconds or 0.0))
    trials = Trials(training, seconds, cfg.jobs or num_cores(), cfg.plugins)
    found, code = candidates(training), 0
    cost = (
        f"tries up to {counted(len(found), 'change')} in {seconds:.0f} s (first those to the "
        f"{found.base}), {counted(trials.parallel, 'training')} at a time, and keeps them in "
        f"{training.run.path / TRIALS}"
    )
    print(printable(cost), flush=True)
    try:
        with jobs_view() as view:
            trials.search(found, view)
    except Interrupted:
        code = INTERRUPTED
    return replace(result, tried=trials.ranked(), exit_code=code)


def with_scores(training: Training) -> Training:
    """A weak run with one more metric, score_spread, unless its cause is certain without it or it
    cannot be loaded here."""
    is_known = any(each["name"] in CERTAIN for each in diagnose(training))
    if is_known or not training.is_weak or not training.result.values:
        return training
    try:
        spread = score_spread(training.run.path)
    except (ConfigError, OSError, RuntimeError, ValueError):  # also of a plugin's policy
        return training
    return replace(training, lines=[*training.lines, {"train/score_spread": spread}])


def score_spread(path: Path) -> float:
    """How much the scores of a run's policy differ between positions of random play, apart from the
    direction in which they differ most, as a fraction of the largest score: 0 if it drops its
    input, and behind a layer of one unit. Raises ConfigError for a run that cannot be loaded."""
    import torch

    from rlgames.build.agents import open_run
    from rlgames.core.devices import torch_settings_restored
    from rlgames.rollouts.conformance import random_positions

    with torch_settings_restored(), torch.no_grad():
        agent = open_run(path, "latest").agent(device=torch.device("cpu"))
        positions = random_positions(agent.game)
        scores = agent.policy.scores(agent.game, positions)[0].double()
    spreads = torch.linalg.svdvals(scores - scores.mean(0)) / len(scores) ** 0.5
    return float(spreads[1:2].sum() / (scores.abs().max() or 1.0))


def show(result: Result) -> None:
    """Print the findings of each run, and what was tried."""
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
        if result.tried is not None:  # of the only run
            show_tried(training, result.tried, result.plugins)
    for path, why in result.damaged.items():
        print(printable(f"{path}: damaged ({why})"))


def show_tried(run: Training, tried: Sequence[Outcome], plugins: Sequence[str]) -> None:
    """Print a table of what was tried, and what to do. plugins: of the command."""
    from rlgames.commands.doctor_trials import cell

    rows = [each for each in tried if each.status != "not finished"]
    if not rows:
        print("the time was too short: no change was evaluated; the same command goes on")
        return
    columns = [
        Column("change", [str(each.change) for each in rows], is_text=True),
        Column("games", [f"{each.games:,}" if each.values else "" for each in rows]),
        Column(run.metric, [cell(run.metric, each.values, each.half) for each in rows]),
        Column(f"unchanged: {run.metric}", [cell(run.metric, each.control) for each in rows]),
        Column("it is", [each.status for each in rows], is_text=True),
    ]
    print_table("after equally many games", columns, "table")
    best = rows[0]
    if best.status != "better":
        print("nothing that was tried helps")
        return
    verb = "helps" if len(best.values) > 1 else "seems to help, with one seed"
    command = command_for_run("train", run.run.path, plugins, *best.change.words)
    print(*map(printable, [f"this {verb}: {best.change}", f"   {command}"]), sep="\n")
