"""A damaged run is reported as such and changes nothing about the others."""

import contextlib
import io
import json
import math
import os
import shutil
import warnings
from dataclasses import replace

import pytest
from untrusted_files import trained

from rlgames.commands import report
from rlgames.config.commands import ReportConfig
from rlgames.config.compose import load_config
from rlgames.drawing import figures
from rlgames.runs.table import Run

TEXTS = {
    "empty": b"",
    "truncated": b'{"status": "do',
    "binary": b"\xff\x00{" * 100,
    "another kind": b"[1]",
    "deep": b"[" * 100_000,
    "repeated names": b'{"status": "done", "status": "failed", "games": 1, "games": 2}\n',
    "huge number": b'{"games": ' + b"9" * 100_000 + b"}\n",
    "long": b" " * (1 << 21),
    "surrogate": b'{"status": "\\ud800"}\n',
}


def symlink(path):
    os.symlink("/dev/zero", path)


FILE_SYSTEM = {"missing": lambda path: None, "folder": os.mkdir, "pipe": os.mkfifo, "link": symlink}

VALUES = {
    "status": [None, "x", "\x1b[31m\x07\n", ["done"]],
    "config": [None, [], {}, {"game": {"name": [1]}}],
    "games": [-1, 0.5, 10**19, True],
    "seconds": [-1, math.inf, "x"],
    "start": ["", "9999-12-31T23:59:59", 5],
    "metric": [3, "[red]"],
}
"""Odd values of the fields of run.json."""


RESULTS = [3, {"turns": "high"}, {"turns": 1e308}, {"turns": math.nan}, {"": {}}, [], None]
RESULTS += [{"turns": 10**400}, {"checkpoint_games": -1}, {"win": {"rate": 1e308, "ci95": [1]}}]
"""Odd results of a report."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with four sound runs, two values of lr with two seeds each, and one to damage."""
    folder = tmp_path_factory.mktemp("runs")
    made = trained("plain", folder / "made")
    run = json.loads((made / "run.json").read_text())
    for number in range(5):
        path = folder / "all" / ("victim" if number == 4 else str(number))
        shutil.copytree(made, path)
        own = run["config"] | {"lr": (0.1, 0.2, 0.1, 0.2, 0.1)[number], "seed": number // 2}
        (path / "run.json").write_text(json.dumps(run | {"config": own}))
    return folder / "all"


@pytest.fixture
def victim(runs):
    """The run to damage, which is sound again afterwards."""
    path, spare = runs / "victim", runs.parent / "spare"
    shutil.copytree(path, spare)
    yield path
    shutil.rmtree(path)
    spare.rename(path)


def report_on(runs, *words):
    return report.run(replace(load_config(ReportConfig, list(words)), runs=[str(runs)]))


def printed(result, form):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        report.show(replace(result, config=replace(result.config, format=form)))
    assert all(char.isprintable() or char == "\n" for char in text.getvalue())
    return text.getvalue()


def refuse(name):
    raise AssertionError(f"{name} is no JSON")


def sound_and_damaged(result):
    """What JSON says, by path, of the sound runs, and why others are damaged."""
    fields = json.loads(json.dumps(result.as_dict()), parse_constant=refuse)
    sound = {run["path"]: run for run in fields["runs"]}
    return sound, {run["path"]: run["reason"] for run in fields["damaged"]}


def check_reports(victim):
    """Assert that reports list the other runs as ever. Returns why the victim is damaged."""
    runs, others = victim.parent, [str(victim.parent / name) for name in "0123"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = report_on(runs)
        sound, damaged = sound_and_damaged(result)
        assert [sound[path]["status"] for path in others] == ["done"] * 4
        assert {*sound, *damaged} <= {*others, str(victim)}
        for form in ("table", "markdown", "latex", "csv"):
            assert ("damaged" in printed(result, form)) == bool(damaged)
        assert printed(report_on(runs, "compare=lr"), "table")
        report_on(runs, f"curves={runs.parent}/figure.svg", "metric=[train/turns]", "by=run")
    return damaged.get(str(victim), "")


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl"])
def test_an_odd_file_is_reported_and_changes_nothing_about_other_runs(name, victim, monkeypatch):
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: None)  # which takes longest
    whole = (victim / name).read_bytes()
    for text in TEXTS.values():
        (victim / name).write_bytes(text)
        reason = check_reports(victim)
        assert reason.startswith(name) or name == "metrics.jsonl"  # only curves read it
    (victim / name).write_bytes(whole)
    for make in FILE_SYSTEM.values():
        (victim / name).rename(victim.parent / "spared")
        make(victim / name)
        reason = check_reports(victim)
        assert not reason or reason.startswith(name) or "not a regular file" in reason
        if (victim / name).is_dir():
            (victim / name).rmdir()
        (victim / name).unlink(missing_ok=True)
        (victim.parent / "spared").rename(victim / name)


@pytest.mark.parametrize("name", VALUES)
def test_odd_values_in_run_json_are_reported(name, victim):
    run = json.loads((victim / "run.json").read_text())
    for value in VALUES[name]:
        (victim / "run.json").write_text(json.dumps(run | {name: value}))
        reason = check_reports(victim)
        assert not reason or reason.startswith(f"run.json: {name}: ") or " has no " in reason


@pytest.mark.parametrize("name", ["train_best", "train_final", "eval_mine"])
def test_odd_values_in_a_report_are_reported(name, victim):
    path = victim / f"reports/{name}.json"
    report = json.loads((victim / "reports/train_best.json").read_text())
    odd = [report | {"result": value} for value in RESULTS]
    odd += [report | {field: 3} for field in report]
    for text in [*TEXTS.values(), *(json.dumps(each).encode() for each in odd)]:
        path.write_bytes(text)
        reason = Run.read(victim).damage
        assert not reason or reason.startswith(f"reports/{name}.json: ")
        assert reason or text in [json.dumps(each).encode() for each in odd[: len(RESULTS)]]
    assert check_reports(victim).startswith(f"reports/{name}.json: result: 3 is not what")
