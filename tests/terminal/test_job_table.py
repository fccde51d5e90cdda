"""The table of the jobs of a sweep: what it shows in any width and height."""

import json
import re

import pytest
from helpers import rendered
from rich.console import Console

from rlgames.core.jobs import Job, Outcome, Task
from rlgames.terminal.jobs import JobTable


def write_run(path, games, turns, status="running"):
    """A run of 1,000 games, so far, by its files: 100 games a second, evaluated ten times."""
    path.mkdir(parents=True)
    lines = [
        {"games": 100 * n, "eval/turns": turn, "time/seconds": n, "time/games_per_s": 100.0}
        for n, turn in enumerate(turns, 1)
    ]
    assert lines[-1]["games"] == games
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {"game": {"name": "salvo"}, "games": 1000}
    run = {"status": status, "metric": "turns", "best_by": "turns", "config": config}
    (path / "run.json").write_text(json.dumps(run))


@pytest.fixture
def view(tmp_path):
    """Four jobs: done, running, failed and waiting."""
    done, running, failed, _ = jobs = [
        Job(f"lr={lr},seed=0", lambda: None) for lr in (0.001, 0.01, 0.1, 1.0)
    ]
    view = JobTable(Console())
    view.on_jobs(jobs)
    for job in (done, running, failed):
        job.task = Task(print, (), tmp_path / job.name, games=1000)
        view.on_start(job)
    write_run(tmp_path / done.name, 1000, [9, 8, 7, 6, 5, 5, 5, 5, 5, 5], "done")
    write_run(tmp_path / running.name, 500, [9, 8, 7, 6, 5])
    done.outcome = Outcome("done")
    failed.outcome = Outcome("failed", error="the loss is not a finite number")
    return view


def drawn(view, width, height):
    """The lines of the table, without colors."""
    shown = rendered(view, width, height=height, no_color=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()


def test_a_row_shows_state_games_speed_time_left_metric_and_curve(view):
    head, _, done, running, failed, waiting, summary = drawn(view, 100, height=24)
    assert head.split() == ["job", "state", "games", "games/s", "left", "turns"]
    # Fewer turns are better, so the curves rise.
    assert done.split()[:4] == ["lr=0.001,seed=0", "done", "1,000", "5"]
    assert done.split()[4][-1] == "█"
    assert running.split()[:6] == ["lr=0.01,seed=0", "50%", "500", "100", "0:05", "5"]
    assert len(running.split()[6]) == 5
    assert failed.split() == ["lr=0.1,seed=0", "failed"]
    assert waiting.split() == ["lr=1.0,seed=0", "waiting"]
    # 5 s of the running one, and 10 s of the next.
    assert summary == "0:00, 0:15 left; 4 jobs: 1 waiting, 1 running, 1 done, 1 failed"


def test_narrow_and_low_terminals_show_the_jobs_that_run(view):
    lines = drawn(view, 60, height=24)
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["job", "state", "left", "turns"]
    assert lines[3].split()[:4] == ["lr=0.01,seed=0", "50%", "0:05", "5"]
    view.on_jobs([Job(f"seed={seed}", lambda: None) for seed in range(20)])
    lines = drawn(view, 60, height=9)
    assert [line.split()[0] for line in lines[2:6]] == [
        *(f"lr={lr},seed=0" for lr in (0.001, 0.01, 0.1, 1.0)),
    ]
    assert lines[6] == "and 20 other jobs"
    assert len(lines) == 8
