"""Which runs `latest` and where= choose, and whether a run is still running."""

import json
import os
import shutil
import threading
import time

import pytest
from helpers import check_refused

from rlgames.commands.match import matching_runs
from rlgames.core.errors import ConfigError
from rlgames.core.locks import lock
from rlgames.runs.directory import lock_directory
from rlgames.runs.find import run_path
from rlgames.runs.table import Run, read_runs
from rlgames.runs.where import matching

DAYS = {"old": "2026-11-27", "mid": "2026-11-28", "new": "2026-11-29"}


def write_run(path, start=None, **fields):
    """A run by its files; start: of the form of run.json, or a day."""
    (path / "checkpoints").mkdir(parents=True)
    (path / "checkpoints/latest.safetensors").touch()
    config = {"game": {"name": "salvo", "ships": [4, 2]}, "lr": 0.1, "seed": 0}
    record = {"status": "done", "config": config | fields.pop("config", {})} | fields
    if start is not None:
        record["start"] = start if "T" in start else f"{start}T12:00:00+00:00"
    (path / "run.json").write_text(json.dumps(record))
    return path


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Runs of three days, the newest of which is neither the first nor the last by name."""
    monkeypatch.chdir(tmp_path)
    for name, day in DAYS.items():
        write_run(tmp_path / "outputs" / name, day)
    return tmp_path / "outputs"


def touch_old(outputs):
    (outputs / "old/checkpoints/games_10.safetensors").touch()
    (outputs / "old/checkpoints/games_10.safetensors").unlink()


def copy_all(outputs):
    outputs.rename(outputs.with_name("moved"))
    for name in ("new", "mid", "old"):
        shutil.copytree(outputs.with_name("moved") / name, outputs / name)


@pytest.mark.parametrize(
    "change",
    [
        touch_old,
        copy_all,
        lambda outputs: write_run(outputs / "zone", "2026-11-29T13:00:00+02:00"),
        lambda outputs: write_run(outputs / "unknown"),
        lambda outputs: (write_run(outputs / "bad", "2027-01-01") / "run.json").write_text("{"),
    ],
)
def test_latest_is_the_run_that_started_last(change, three):
    change(three)
    assert run_path("latest").name == "new"
    assert matching_runs(["latest"], "status=done")[0] == "outputs/new"


def test_of_runs_of_one_second_the_one_with_the_last_number_is_the_latest(three):
    for number in (9, 10):
        write_run(three / f"{number}", "2026-11-30")
    assert run_path("latest").name == "10"
    assert matching_runs(["latest"], "started=2026-11-30") == ["outputs/10", "outputs/9"]


def chosen(where):
    return {run.path.name for run in matching(read_runs(["outputs"]), where)}


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("started=2026-11-28", "mid"),
        ("started!=2026-11-28", "old new"),
        ("started<=2026-11-28", "old mid"),
        ("started<2026-11-28", "old"),
        ("started>2026-11-28", "new"),
        ("started>=2026-11-28", "mid new"),
        ("started=2026-11-28T12:00", "mid"),
        ("started>2026-11-28T12:00", "new"),
        ("started<=2026-11-28T12:00:00+00:00", "old mid"),
        ("started<2026-11-28T13:00+01:00", "old"),
    ],
)
def test_a_day_and_a_minute_are_all_of_their_time(where, names, three, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert chosen(where) == {*names.split()}


JOB = "lr=0.01,seed=0"


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (f'path="outputs/{JOB}"', JOB),
        (f"path!='outputs/{JOB}',lr!=0.2", "old mid new"),
        ('path="*,seed=0" , status="done"', JOB),
        ("ships!=[4, 2]", ""),
        ("status=d*,path!=*/o*,path!='*/lr=*'", "mid new"),
    ],
)
def test_a_value_with_commas_or_signs_is_quoted(where, names, three):
    write_run(three / JOB, "2026-11-30", config={"lr": 0.01})
    if names:
        assert chosen(where) == {*names.split()}
    else:
        with pytest.raises(ConfigError, match="no run matches"):
            chosen(where)


@pytest.mark.parametrize(
    "where",
    [
        f"path!=outputs/{JOB}",
        "status!=done and seed=1",
        "status!=done seed=1",
        "status!=done;seed=1",
        "status!==done",
        "seed!=0|1",
        "lr=>0.1",
        "lr!=0.1&&seed=0",
        "lr<0.1<0.2",
        "not status=done",
        "path!=\"a'",
        "lr=",
    ],
)
def test_what_is_not_a_condition_is_an_error(where, three, typed):
    for words in (["report", "outputs"], ["eval", "latest"], ["arena", "outputs"]):
        check_refused(typed(*words, f"where={where}"), "where=", "is not a condition; as in")
        if where != "status!=done and seed=1":
            break


@pytest.mark.parametrize("sign", ["=", "!="])
def test_an_unknown_status_is_an_error(sign, three):
    with pytest.raises(ConfigError, match="finished is not a status") as error:
        chosen(f"status{sign}finished")
    assert error.value.hint.startswith("available: running, ")
    assert chosen("status!=died") == {*DAYS}


# ---------------------------------------------------------------- running or not


@pytest.mark.parametrize(
    ("pid", "host"),
    [(1, "pod-a1"), (os.getpid(), None), (None, None)],
    ids=["elsewhere", "own", "none"],
)
def test_a_run_is_running_while_its_directory_is_locked(pid, host, tmp_path):
    """Whatever run.json says about its process: another one may have that number now."""
    run = write_run(tmp_path / "run", status="running", pid=pid, host=host)
    assert Run.read(run).status == "died"  # no lock has ever been there
    lock = lock_directory(run)
    assert Run.read(run).status == "running"
    lock.release()
    assert Run.read(run).status == "died"


def test_who_looks_at_a_lock_keeps_nobody_from_taking_it(tmp_path):
    """A report of a run that was killed, at the moment when it resumes."""
    lock_directory(tmp_path).release()
    looking = open(tmp_path / "lock", "rb")  # noqa: SIM115
    assert lock(looking.fileno())
    threading.Timer(0.03, looking.close).start()
    lock_directory(tmp_path).release()
