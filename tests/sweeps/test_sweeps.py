"""An interrupted sweep, for whatever reason, is finished by `rlgames resume SWEEP`.

Its jobs are forks here, as is the sweep itself where it is killed; the slow tests start launchers.
"""

import datetime
import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import pytest
from helpers import SMALL_SALVO
from markers import quick
from omegaconf import OmegaConf
from processes import (
    Forked,
    Process,
    final_state,
    fork_jobs,
    has_ended,
    metrics_without_times,
    run,
    same,
)

from rlgames.cli import job_worker
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.options.search import HparamsConfig
from rlgames.core import signals
from rlgames.runs.directory import lock_directory
from rlgames.runs.files import read_run
from rlgames.sweeps import jobs
from rlgames.sweeps.hparam_search import Search, plan_search
from rlgames.sweeps.sweep import Job, Sweep
from rlgames.training import run as training_run
from rlgames.training.collector import Collector
from rlgames.training.components import build_components

WORDS = [*SMALL_SALVO, "games=100", "log_every=40", "save_every=20", "eval_every=40"]
WORDS += ["solve_seconds=0", "eval_games=10"]
SEEDS = ["train", "-m", *WORDS, "seed=0,1,2"]
ALL_DONE = ["3 of 3 jobs done, in sweep", "next: rlgames report sweep"]
JOBS = ["0_seed=0", "1_seed=1", "2_seed=2"]


@pytest.fixture(autouse=True)
def _forks(monkeypatch):
    monkeypatch.setattr(jobs, "start_process", Forked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep that never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    code, told = run(folder, *SEEDS, "out=sweep", prepare=fork_jobs)
    assert code == 0, told
    assert told.splitlines()[-2:] == ALL_DONE
    return folder / "sweep"


def is_whole(whole, sweep):
    for job in JOBS:
        same(final_state(whole / job), final_state(sweep / job))
        assert metrics_without_times(whole / job) == metrics_without_times(sweep / job)
        assert read_run(sweep / job)["status"] == "done"


def files(*folders):
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def in_job(seed, count, what):
    """Have something happen in the job of a seed, before its count-th batch is played."""
    calls, play = 0, Collector.next_batch

    def there(self, *args):
        nonlocal calls
        calls += 1
        if self.cfg.seed == seed and calls == count:
            what()
        return play(self, *args)

    def prepare():
        fork_jobs()
        Collector.next_batch = there

    return prepare


def ends(folder, whole, left, *done):
    """Whether resume does what is left, and that only."""
    sweep = folder / "sweep"
    before = files(*(sweep / JOBS[job] for job in done))
    code, told = run(folder, "resume", "sweep", "dry_run=true", prepare=fork_jobs)
    assert code == 0
    assert [line.split(": ")[:2] for line in told.splitlines()[:-1]] == left
    assert told.splitlines()[-1] == f"{len(left)} of 3 jobs would run, in sweep"
    lock_directory(
        sweep, 20
    ).release()  # a job that is a fork has its sweep's lock, too, until it ends
    code, told = run(folder, "resume", "sweep", prepare=fork_jobs)
    assert code == 0, told
    assert told.splitlines()[-2:] == ALL_DONE
    assert told.count(", in sweep/") == len(left)
    assert before == files(*(sweep / JOBS[job] for job in done))
    is_whole(whole, sweep)
    assert not (sweep / jobs.STOP_FILE).exists()


def test_a_sweep_that_is_done_is_left_alone(whole):
    found = json.loads((whole / "sweep.json").read_text())
    assert found["words"][:-1] == SEEDS[2:]
    assert [job["config"]["seed"] for job in found["jobs"]] == [0, 1, 2]
    assert "seed=2" in found["jobs"][2]["overrides"]
    assert read_run(whole / JOBS[1])["results"]["turns"] > 0
    before = files(*(whole / job for job in JOBS))
    code, told = run(whole.parent, "resume", "sweep", prepare=fork_jobs)
    assert (code, told.splitlines()) == (0, ALL_DONE)
    assert before == files(*(whole / job for job in JOBS))


def test_a_dry_run_lists_and_writes_nothing(typed, tmp_path):
    words = ["game=salvo", "ships=[2]", "board=4,5", "shots=1,2", "policy=mlp"]
    said = typed("train", "-m", *words, "dry_run=true")
    lines = said.stdout.splitlines()
    assert lines[1] == "1: not started: game=salvo ships=[2] board=4 shots=2 policy=mlp"
    assert lines[-1].startswith("4 of 4 jobs would run")
    assert not list(tmp_path.iterdir())


def test_a_sweep_without_a_job_is_refused(typed, tmp_path):
    said = typed("train", "-m", "game=salvo", "lr=0.1,0.2", "seed=range(5,5)")
    assert (said.returncode, said.stdout) == (2, "")
    assert "seed=range(5,5) has no values" in said.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("out", "directory"),
    [
        ("out=null", "outputs/sweeps"),
        ("out=study_${now:%Y}", f"study_{datetime.date.today():%Y}"),
        ("++out=study", "study"),
    ],
)
def test_the_directory_of_a_sweep_is_that_of_a_run(out, directory, typed):
    said = typed("train", "-m", "game=salvo", "seed=0,1", out, "dry_run=true")
    assert said.returncode == 0, said.stderr
    assert f"in {directory}" in said.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_job_that_fails_ends_no_other(whole, tmp_path):
    def fails():
        raise ZeroDivisionError("nothing to divide by")

    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 3, fails))
    assert code == 3
    *_, named, count, hint = told.splitlines()
    assert named.startswith(f"rlgames: sweep/{JOBS[1]}: failed: ")
    assert re.search(
        r"ZeroDivisionError: nothing to divide by; it was raised in .*test_sweeps\.py, line \d+; "
        r"its train.log shows where$",
        named,
    )
    assert count == "2 of 3 jobs done, in sweep"
    assert hint == "rlgames: resume with: rlgames resume sweep"
    assert "Traceback" not in told
    assert "in fails" in (tmp_path / "sweep" / JOBS[1] / "train.log").read_text()
    ends(tmp_path, whole, [["1", "unfinished"]], 0, 2)


def test_a_job_without_memory_gets_a_hint(tmp_path, monkeypatch, capsys):
    def fails(*_):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(job_worker, "_train", fails)
    sweep = Sweep(tmp_path, [], [], [Job([], {"seed": 0}, "one")])
    assert job_worker._run(sweep, 0, []) == 3
    reason = "out of memory; smaller batch= or games= may help"
    assert capsys.readouterr().err == f"rlgames: {reason}\n"
    assert sweep.reason_unfinished(0).endswith(reason)


def test_a_job_that_cannot_begin_ends_no_other(tmp_path, monkeypatch, typed):
    assemble = build_components

    def breaks(cfg, *more):
        if cfg.seed == 0 and cfg.out:
            raise RuntimeError("no\nroom")
        return assemble(cfg, *more)

    with monkeypatch.context() as patched:
        patched.setattr(training_run, "build_components", breaks)
        said = typed("train", "-m", *WORDS, "seed=0,1", "games=20", "out=sweep")
    assert said.returncode == 3
    assert f"sweep/{JOBS[0]}: failed: " in said.stderr
    assert "RuntimeError: no room" in said.stderr
    assert "1 of 2 jobs done" in said.stdout
    assert "0: not started" in typed("resume", "sweep", "dry_run=true").stdout


def test_a_job_whose_checkpoint_is_damaged_says_so(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "sweep")
    job = tmp_path / "sweep" / JOBS[1]
    (job / "run.json").write_text(json.dumps(read_run(job) | {"status": "running"}))
    assert Sweep.read(tmp_path / "sweep").reason_unfinished(1) == "killed"
    latest = job / "checkpoints/latest.safetensors"
    latest.write_bytes(latest.read_bytes()[:-1])
    reason = Sweep.read(tmp_path / "sweep").reason_unfinished(1)
    assert reason.startswith(f"cannot resume: {latest} ")


@pytest.mark.slow
def test_a_job_that_is_killed_ends_no_other(whole, tmp_path):
    kill = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 4, kill))
    assert code == 3
    assert f"rlgames: sweep/{JOBS[1]}: killed" in told
    ends(tmp_path, whole, [["1", "unfinished"]], 0, 2)


def test_a_launchers_worker_ends_with_the_sweep(tmp_path):
    """After it has done a job, while it waits for the next one."""
    owner = subprocess.Popen(["sleep", "60"])
    worker = os.fork()
    if not worker:
        try:
            jobs.start_process = lambda *_: subprocess.Popen(["true"], stdin=subprocess.PIPE)
            name = f"{socket.gethostname()}:{owner.pid}"
            settings = {"directory": str(tmp_path), "job": "0:0", "owner": name, "options": []}
            jobs.run_job(OmegaConf.create(settings))
            (tmp_path / "done").touch()
            time.sleep(60)
        finally:
            os._exit(0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "done").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not has_ended(worker)
    owner.kill()
    owner.wait()
    while not has_ended(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 1


JOBLIB = """
import os, sys, time
from joblib import Parallel, delayed
from rlgames.sweeps.launchers import end_joblib_workers_too

end_joblib_workers_too()
folder = sys.argv[1]
job = f"import os; open(f'{folder}/{{os.getpid()}}', 'w').close(); time.sleep(60)"
Parallel(n_jobs=2, backend="loky")(delayed(exec)(job, {"time": time}) for _ in range(2))
"""


@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="joblib is an extra")
def test_joblibs_workers_end_with_the_sweep_before_their_first_job(tmp_path):
    """The first job of these does nothing that would end them."""
    sweep = subprocess.Popen([sys.executable, "-c", JOBLIB, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(workers := os.listdir(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    sweep.kill()
    sweep.wait()
    deadline = time.monotonic() + 10
    while not all(has_ended(int(pid)) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(has_ended(int(pid)) for pid in workers)


@pytest.mark.slow
def test_a_sweep_that_is_killed(whole, tmp_path):
    def kill():
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 4, kill))
    assert code == -signal.SIGKILL, told
    left = [["1", "unfinished"], ["2", "not started"]]
    ends(tmp_path, whole, left, 0)
    resumed = read_run(tmp_path / "sweep" / JOBS[1])["resumed"]
    assert [part["games"] for part in resumed] == [60]  # it saved when the sweep was gone


@pytest.mark.parametrize(
    "number",
    quick([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2], signal.SIGTERM),
)
def test_a_sweep_is_stopped_by_a_signal(number, whole, tmp_path):
    def tell():
        os.kill(os.getppid(), number)
        time.sleep(60)

    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 3, tell))
    assert code == 128 + number, told
    assert "job 1 interrupted after 40 games" in told
    output = (tmp_path / "sweep" / JOBS[1] / "output.log").read_text()
    assert "interrupted, saved after 40 games" in output
    last = told.splitlines()[-1]
    assert last == "rlgames: interrupted, resume with: rlgames resume sweep"
    left = [["1", "unfinished"], ["2", "not started"]]
    ends(tmp_path, whole, left, 0)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_jobs_of_a_sweep_at_once(whole, tmp_path):
    def interrupt():
        os.kill(os.getppid(), signal.SIGINT)
        while not (tmp_path / "sweep" / jobs.STOP_FILE).exists():
            time.sleep(0.01)
        with signals.held_back():  # it would save for a long time
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)

    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 3, interrupt))
    assert code == 130, told
    assert read_run(tmp_path / "sweep" / JOBS[1])["status"] == "running"  # it could not write more
    code, told = run(tmp_path, "resume", "sweep", prepare=fork_jobs)
    assert code == 0, told
    is_whole(whole, tmp_path / "sweep")


@pytest.mark.slow
def test_a_batch_system_that_signals_a_job_and_its_supervisor_lets_it_save(whole, tmp_path):
    def stop():
        os.kill(os.getppid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)

    code, told = run(tmp_path, *SEEDS, "out=sweep", prepare=in_job(1, 3, stop))
    assert code == 143, told
    output = (tmp_path / "sweep" / JOBS[1] / "output.log").read_text()
    assert "interrupted, saved after 40 games" in output
    left = [["1", "unfinished"], ["2", "not started"]]
    ends(tmp_path, whole, left, 0)


def test_a_launchers_worker_requeues_a_job_once_it_has_saved(whole, tmp_path):
    """As submitit does, in the handler that its workers have."""
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    shutil.copy(whole / "sweep.json", sweep)

    def requeue(*_):
        sys.exit(40 + (read_run(sweep / JOBS[1])["status"] == "interrupted"))

    def stop():
        os.kill(os.getppid(), signal.SIGUSR2)
        time.sleep(60)

    def work():
        signal.signal(signal.SIGUSR2, requeue)
        in_job(1, 3, stop)()
        job = {"directory": str(sweep), "job": f"1:{JOBS[1]}", "owner": "elsewhere:1"}
        jobs.run_job(OmegaConf.create(job | {"options": []}))

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
    assert worker.exitcode == 41
    output = (sweep / JOBS[1] / "output.log").read_text()
    assert "interrupted, saved after 40 games" in output


@pytest.mark.slow
def test_submitit_requeues_a_job_that_is_preempted(tmp_path, whole):
    if not installed("hydra_plugins.hydra_submitit_launcher"):
        pytest.skip("needs the launcher submitit_local")
    words = [*SEEDS[:-1], "games=30000", "eval_every=10000", "seed=0"]
    command = [sys.executable, "-m", "rlgames", *words, "hydra/launcher=submitit_local"]
    with subprocess.Popen([*command, "out=sweep"], cwd=tmp_path, text=True) as process:
        job = tmp_path / "sweep" / "0"
        while not (job / "checkpoints/latest.safetensors").exists():
            assert process.poll() is None
            time.sleep(0.1)
        os.kill(parent_of(read_run(job)["pid"]), signal.SIGUSR2)
    assert process.returncode == 0
    assert read_run(job)["status"] == "done"
    assert len(read_run(job)["resumed"]) == 1


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_a_sweep_has_one_owner(tmp_path):
    words = (*SEEDS, "out=sweep")
    first = Process(tmp_path, *words, prepare=in_job(0, 2, lambda: time.sleep(60)))
    while not (tmp_path / "sweep" / JOBS[0] / "checkpoints/latest.safetensors").exists():
        time.sleep(0.05)
    code, told = run(tmp_path, "resume", "sweep", prepare=fork_jobs)
    assert (code, told.count("\n")) == (2, 1)
    assert "another process" in told
    first.send(signal.SIGTERM)
    assert first.wait()[0] == 143
    code, told = run(tmp_path, *words, prepare=fork_jobs)
    assert code == 2
    assert "already holds a sweep" in told
    assert "rlgames resume sweep" in told


REFUSED = {
    ("train", "objective=final/turns"): "objective=final/turns belongs to a sweep; add -m",
    ("train", "-m", "objective=final/turns"): "objective= needs a search",
    ("train", "-m", "hydra/sweeper=optuna"): "hydra/sweeper=optuna is not supported here",
    ("train", "-m", "hydra/launcher=joblip"): "did you mean joblib?",
    ("train", "-m", "hydra.launcher.jobs=2"): "jobs",
    ("train", "-m", "lr=interval(0.1,0.2)"): "is an interval; add hparams_search=tpe",
    ("resume", "sweep", "games=50"): "games=50 cannot change the jobs of a sweep",
    ("resume", "sweep", "hparams_search=tpe"): "only hparams_search.trials= can change",
    ("resume", "sweep", "config=x.yaml"): "config=x.yaml cannot change the jobs of a sweep",
    ("resume", "sweep", "exist_ok=true"): "exist_ok=true cannot change the jobs of a sweep",
    ("resume", "sweep", "dry_rum=true"): "cannot change the jobs of a sweep",
}


def test_what_does_not_fit_is_refused_in_one_line(typed, tmp_path, whole):
    (tmp_path / "sweep").symlink_to(whole)
    for words, told in REFUSED.items():
        said = typed(*words)
        assert said.returncode == 2, words
        assert told in said.stderr
        assert len(said.stderr.splitlines()) == 1, said.stderr


def test_a_launcher_that_is_not_installed_is_named_with_its_extra(typed):
    plugins = {"joblib": "joblib", "submitit_slurm": "submitit", "ray": "ray"}
    for name, extra in plugins.items():
        if not installed(f"hydra_plugins.hydra_{extra}_launcher"):
            said = typed("train", "-m", f"hydra/launcher={name}")
            told = f"hydra/launcher={name} is not installed; pip install 'rlgames[{extra}]'"
            assert said.stderr == f"rlgames: {told}\n"
    if not installed("optuna"):
        said = typed("train", "-m", "hparams_search=tpe")
        assert said.stderr.endswith("needs Optuna; pip install 'rlgames[optuna]'\n")


def installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_nothing_that_a_manifest_names_is_imported_or_run(typed, tmp_path, whole, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "wicked.py").write_text("from pathlib import Path\nPath('marker').touch()\n")
    good = json.loads((whole / "sweep.json").read_text())
    (tmp_path / "sweep").mkdir()

    def resumed(*words, **changes):
        (tmp_path / "sweep/sweep.json").write_text(json.dumps(good | changes))
        return typed("resume", "sweep", "dry_run=true", *words)

    job = good["jobs"][0]
    with_plugin = [job | {"config": job["config"] | {"plugins": ["wicked"]}}]
    said = resumed(jobs=with_plugin)
    assert "this sweep needs plugins=[wicked]; name them yourself if you trust them" in said.stderr
    assert said.stderr.endswith("rlgames resume sweep 'plugins=[wicked]'\n")
    assert not (tmp_path / "marker").exists()
    assert resumed("plugins=[wicked]", jobs=with_plugin).returncode == 0
    assert (tmp_path / "marker").exists()
    assert resumed(launcher=["hydra/launcher=evil"]).returncode == 0
    wrong: Any = ({"jobs": 3}, {"jobs": [{}]}, {"jobs": [job | {"links": [1]}]})
    for changes in (*wrong, {"words": None}, {"search": 7}):
        said = resumed(**changes)
        assert said.returncode == 2
        assert "is not the manifest of a sweep" in said.stderr


SEARCH = [*WORDS, "hparams_search=tpe", "hparams_search.trials=4", "games=40"]
SEARCH += ["lr=tag(log,interval(0.001,0.1))", "policy.layers=[4],[8]", "learner.epochs=range(1,4)"]


@pytest.mark.slow
@pytest.mark.skipif(not installed("optuna"), reason="needs Optuna")
def test_a_killed_search_resumes_with_the_same_proposals(tmp_path):
    code, told = run(tmp_path, "train", "-m", *SEARCH, "out=whole", prepare=fork_jobs)
    assert code == 0, told
    assert "4 of 4 jobs done, in whole" in told.splitlines()
    assert "best: job " in told
    winner = json.loads((tmp_path / "whole/sweep.json").read_text())["search"]["winner"]
    results = [read_run(path)["results"]["turns"] for path in (tmp_path / "whole").glob("*_*")]
    assert winner["selection"] == min(results)
    assert f"{winner['objective']} {winner['selection']:.4f}" in told
    launched, kill = 0, lambda: os.kill(os.getpid(), signal.SIGKILL)

    def killed():
        class Killed(Forked):
            def __init__(self, *args):
                nonlocal launched
                launched += 1
                super().__init__(*args)
                if launched == 3:
                    kill()

        jobs.start_process = Killed

    code, told = run(tmp_path, "train", "-m", *SEARCH, "out=sweep", prepare=killed)
    assert code == -signal.SIGKILL
    code, told = run(tmp_path, "resume", "sweep", "hparams_search.trials=2")
    assert (code, "hparams_search.trials=2 is too few: 3 were" in told) == (2, True), told
    said = run(tmp_path, "resume", "sweep", "dry_run=true")[1]
    assert "1 more trials, by best/turns" in said
    code, told = run(tmp_path, "resume", "sweep", prepare=fork_jobs)
    assert code == 0, told
    assert told.count(", in sweep/") <= 2
    configs = [
        json.loads((tmp_path / name / "sweep.json").read_text())["jobs"]
        for name in ("whole", "sweep")
    ]
    assert configs[0] == configs[1]
    assert len({json.dumps(job["overrides"]) for job in configs[0]}) == 4


@pytest.mark.skipif(not installed("optuna"), reason="needs Optuna")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["objective=final/trns"], "did you mean turns?"),
        (["board=interval(3,5)"], "board= cannot be searched over"),
        (["learner=td,reinforce"], "learner= cannot be searched over"),
        (["lr=interval(0.1,200)"], "lr=200.0 is out of range"),
        (["lr=tag(log,interval(0,1))"], "is not a range"),
        (["lr=tag(lg,interval(0.1,1))"], "has the tag lg; the only tag is log"),
        (["lr=0.1,0.2", "seed=0,1"], "seed= cannot be searched over"),
        (["learner.epochs=interval(1,5)"], "use learner.epochs=int(interval(1,5))"),
    ],
)
def test_a_search_that_cannot_be_is_refused(words, told, typed, tmp_path):
    said = typed("train", "-m", *WORDS, "hparams_search=random", *words)
    assert said.returncode == 2
    assert told in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not installed("optuna"), reason="needs Optuna")
def test_the_jobs_of_a_search_have_values_as_typed(tmp_path):
    space = ["learner.max_grad_norm=null,null", "policy.layers=[4,2],[4,2]"]
    plan = plan_search(HparamsConfig(), space, None, load_config(TrainConfig, WORDS))
    search = Search(Sweep(tmp_path, [], [], search=plan))
    search._suggest(search.study.ask())
    words = ["learner.max_grad_norm=null", "policy.layers=[4,2]"]
    assert search.sweep.jobs[0].overrides == words


@pytest.mark.skipif(not installed("optuna"), reason="needs Optuna")
def test_a_search_that_is_interrupted_during_an_import_proposes_nothing(tmp_path):
    plan = plan_search(
        HparamsConfig(), ["lr=interval(0.1,1)"], None, load_config(TrainConfig, WORDS)
    )
    search, interrupts = Search(Sweep(tmp_path, [], [], search=plan)), signals.Interrupts()
    interrupts.pending = signal.SIGINT
    with pytest.raises(signals.Interrupted):
        search.run([], interrupts)
    assert not search.sweep.jobs


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local", "ray"])
def test_launchers(launcher, tmp_path, rlgames, whole):
    if not installed(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher"):
        pytest.skip(f"needs the launcher {launcher}")
    done = rlgames(*SEEDS, f"hydra/launcher={launcher}", "out=sweep")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "3 of 3 jobs done, in sweep" in done.stdout
    is_whole(whole, tmp_path / "sweep")
