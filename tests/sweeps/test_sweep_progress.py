"""What one sees of a sweep while it runs: a table in a terminal, plain lines elsewhere."""

import json
import platform
import signal
from types import SimpleNamespace

import pytest
from helpers import SMALL_SALVO, rendered
from processes import fork_jobs, run, session

from rlgames.cli import sweep_view
from rlgames.cli.progress import Progress
from rlgames.cli.sweep_view import (
    JobProgress,
    RenderedSweep,
    SweepProgress,
    SweepReader,
    shown_jobs,
)
from rlgames.runs.run_info import MetricsFollower
from rlgames.sweeps.evaluations import JobEvaluation
from rlgames.sweeps.sweep import Job, Sweep

WORDS = [*SMALL_SALVO, "log_every=40", "save_every=100", "eval_every=100", "eval_games=10"]
WORDS += ["solve_seconds=0"]


def job(number, status, games=50, curve=()):
    run = Progress(100, 0.0, games=games, metric="turns", curve=curve)
    return JobProgress(number, f"seed={number}", status, run)


VIEW = SweepProgress(
    jobs=(
        job(0, "done", 100, curve=((50, 8.0), (100, 5.25))),
        job(1, "running", 40, curve=((20, 8.0), (40, 6.5))),
        job(2, "waiting", 0),
    ),
    total=4,
    work=1.4,
    seconds=14.0,
)


def drawn(view, width=80, **settings):
    return rendered(
        RenderedSweep(SimpleNamespace(progress=view)), width, color_system=None, **settings
    )


def test_a_line_for_each_job_and_one_for_all():
    first, second, third, bar, summary = drawn(VIEW, height=30).splitlines()
    assert first.split()[:3] == ["0", "seed=0", "done"]
    assert "100%" in first
    assert "turns 5.25" in first
    assert first.rstrip()[-1] == "█"  # the best so far
    assert second.split()[:3] == ["1", "seed=1", "running"]
    assert "40%" in second
    assert third.split() == ["2", "seed=2", "waiting", *third.split()[3:]]
    assert bar.startswith(" 35% ")
    assert bar.rstrip().endswith("0:14")
    assert summary.strip() == "1 of 4 jobs done, 1 running, 0:26 left"


@pytest.mark.parametrize("width", [20, 44, 64, 120])
def test_the_table_fits_every_terminal(width):
    lines = drawn(VIEW, width, height=30).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 5


def test_a_low_terminal_shows_the_jobs_that_matter():
    jobs = [job(number, "done") for number in range(10)]
    jobs += [job(10, "failed"), job(11, "running"), job(12, "running")]
    jobs += [job(number, "waiting") for number in range(13, 20)]
    assert [each.number for each in shown_jobs(jobs, 6)] == [9, 10, 11, 12, 13, 14]
    text = drawn(SweepProgress(jobs, 20, 1.0, 1.0), height=10)
    assert len(text.splitlines()) == 9
    assert "14 more jobs" in text


def test_files_are_read_line_by_line_and_again_once_replaced(tmp_path):
    path, follower = tmp_path / "metrics.jsonl", MetricsFollower(tmp_path)
    assert follower.new_lines() == (False, [])
    path.write_text('{"games": 1}\n{"games": 2, "a"')
    assert follower.new_lines() == (True, [{"games": 1}])
    assert follower.new_lines() == (False, [])
    with path.open("a") as file:
        file.write(': 5}\n{"games": 3}\n')
    assert follower.new_lines() == (False, [{"games": 2, "a": 5}, {"games": 3}])
    other = tmp_path / "other"
    other.write_text('{"games": 1}\n')
    other.replace(path)
    assert follower.new_lines() == (True, [{"games": 1}])


def test_a_sweep_is_read_from_the_files_of_its_jobs(tmp_path):
    reader = SweepReader(Sweep(tmp_path, [], [], [Job(["seed=0"], {"games": 10})]))
    assert reader.progress.jobs[0].status == "waiting"
    folder = tmp_path / "0"
    folder.mkdir()
    (folder / "run.json").write_text(
        '{"status": "done", "metric": "turns", "results": {"turns": 4}}'
    )
    reader.read()
    (job,) = reader.progress.jobs
    assert (job.status, job.headline, reader.progress.fraction) == ("done", "turns 4", 1.0)


def test_a_refused_job_and_one_that_died_are_named(tmp_path):
    sweep = Sweep(tmp_path, [], [], [Job([f"seed={n}"], {"games": 10}) for n in range(2)])
    for number in range(2):
        sweep.path(number).mkdir()
    (sweep.path(0) / "train.log").write_text("wrong\n")
    state = {"status": "running", "pid": 2**22 + 1, "host": platform.node()}
    (sweep.path(1) / "run.json").write_text(json.dumps(state))
    assert [job.status for job in SweepReader(sweep).progress.jobs] == ["failed", "died"]


def test_jobs_whose_training_is_done_wait_until_their_evaluations_start(tmp_path):
    evaluation = JobEvaluation("played", ["eval", "{}"], {})
    sweep = Sweep(tmp_path, [], [], [Job(["seed=0"], {"games": 10}, "one", [evaluation])])
    (tmp_path / "one").mkdir()
    state = {"status": "done", "metric": "turns", "results": {"turns": 4}}
    (tmp_path / "one/run.json").write_text(json.dumps(state))
    log = tmp_path / "one/output.log"
    log.write_text("done\n")
    reader = SweepReader(sweep)
    reader.read()
    assert reader.progress.jobs[0].status == "waiting"
    log.write_text("done\nplayed: rlgames eval\n")
    reader.read()
    reader.read()
    (job,) = reader.progress.jobs
    assert (job.status, job.run.curve) == ("evaluating", [(10, 4.0)])


@pytest.mark.slow
def test_plain_lines_in_a_pipe(tmp_path):
    code, text = run(
        tmp_path, "train", "-m", *WORDS, "games=200", "seed=0,1", "out=sweep", prepare=fork_jobs
    )
    assert code == 0, text
    lines = text.splitlines()
    for number in range(2):
        assert f"job {number}, in sweep/{number}_seed={number}" in lines
        start = f"job {number} done after 200 games in 0:0"
        assert sum(line.startswith(start) and ", turns " in line for line in lines) == 1
    assert lines[-2:] == ["2 of 2 jobs done, in sweep", "next: rlgames report sweep"]
    assert "\x1b" not in text
    output = (tmp_path / "sweep" / "0_seed=0" / "output.log").read_text()
    assert f"next: rlgames eval {tmp_path}/sweep/0_seed=0\n" in output


def test_a_table_in_a_terminal_until_control_c(tmp_path):
    words = ["train", "-m", *WORDS, "games=100000", "seed=0,1", "out=sweep"]
    terminal = session(tmp_path, *words, rows=20, prepare=fork_jobs)
    text = terminal.wait_until(lambda text: "turns" in text and "1 running" in text)
    first, second, _, summary = text.splitlines()[-4:]
    assert first.split()[:3] == ["0", "seed=0", "running"]
    assert second.split()[:3] == ["1", "seed=1", "waiting"]
    assert "0 of 2 jobs done" in summary
    terminal.type("\x03")
    terminal.wait_for("resume with: rlgames resume sweep")
    assert terminal.ended() == 128 + signal.SIGINT
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")
    assert "Traceback" not in terminal.raw
    state = json.loads((tmp_path / "sweep" / "0_seed=0" / "run.json").read_text())
    assert state["status"] == "interrupted"


@pytest.mark.slow
def test_a_sweep_with_joblib_from_its_first_to_its_last_line(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    words = ["train", "-m", *WORDS, "games=400", "seed=0,1,2", "out=sweep"]
    terminal = session(tmp_path, *words, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    terminal.wait_until(lambda text: "2 running" in text and "turns" in text)
    text = terminal.wait_for("next: rlgames report sweep")
    assert terminal.ended() == 0
    *jobs, _, summary, count, following = text.splitlines()
    assert [line.split()[:3] for line in jobs] == [[str(n), f"seed={n}", "done"] for n in range(3)]
    assert all("100%" in line and "turns" in line for line in jobs)
    assert summary.startswith("3 of 3 jobs done")
    assert (count, following) == ("3 of 3 jobs done, in sweep", "next: rlgames report sweep")


def test_no_table_for_a_dumb_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    sweep = Sweep(tmp_path, [], [], [])
    with sweep_view.sweep_view(sweep):
        pass
