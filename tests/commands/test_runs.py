"""`rlgames runs`: what it lists, and what it removes."""

import datetime
import json
import os
import platform
import random
import shutil
import signal
import time

import pytest
from processes import Process, final_state, run, same
from test_report import write

import rlgames as package
from rlgames.cli.runs import age_in_words, bytes_in_words, runs_command
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.directory import lock_directory

SMALL = ["board=3", "ships=[2]", "games=100", "batch=50", "policy.layers=[8]", "solve_seconds=0"]


@pytest.fixture
def runs(tmp_path):
    """Three runs: the last to start is done, one has failed, and one is in progress."""
    here = {"pid": os.getpid(), "host": platform.node()}
    for name, status, day, lr in (
        ("a", "failed", 20, 0.1),
        ("b", "running", 21, 0.2),
        ("c", "done", 22, 0.3),
    ):
        start = {"start": f"2026-11-{day}T10:00:00+00:00"}
        write(tmp_path / "runs" / name, status, facts=start | here, lr=lr)
    return tmp_path / "runs"


def listed(typed, *words):
    said = typed("runs", *words, "format=json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def names(found):
    return [run["run"].removeprefix("runs/") for run in found["runs"]]


def test_runs_are_listed_the_newest_first(runs, typed):
    found = listed(typed, "runs")
    assert names(found) == ["c", "b", "a"]
    done = found["runs"][0]
    size = sum(path.stat().st_size for path in (runs / "c").iterdir())
    assert (done["status"], done["metric"], done["value"]) == ("done", "turns", 5.0)
    assert (done["size"], done["game"], done["learner"]) == (size, "salvo", "td")
    lines = typed("runs", "runs").stdout.splitlines()
    assert lines[0].startswith("3 runs, ")
    assert " ".join(lines[2].split()) == "run game learner status age size metric value"
    assert "running at 25%" in lines[5]


def test_conditions_order_and_columns(runs, typed):
    assert names(listed(typed, "runs", "where=lr<0.25,started>2026-11-20T12:00")) == ["b"]
    assert names(listed(typed, "runs", "sort=-lr", "top=2")) == ["c", "b"]
    lines = typed("runs", "runs", "sort=lr", "columns=[run,lr]").stdout.splitlines()
    assert [line.split() for line in lines[4:]] == [
        ["runs/a", "0.1"], ["runs/b", "0.2"], ["runs/c", "0.3"],
    ]  # fmt: skip


@pytest.mark.parametrize("start", ["9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+10:00"])
def test_a_time_that_no_clock_shows_does_not_hide_the_other_runs(start, runs, typed):
    write(runs / "odd", facts={"start": start})
    assert len(listed(typed, "runs")["runs"]) == 4
    said = typed("runs", "runs", "where=started>2026-11-21")
    assert (said.returncode, said.stdout.splitlines()[0][:6]) == (0, "2 runs")


def test_every_line_fits_a_narrow_terminal_and_the_results_stay(runs, monkeypatch, capsys):
    monkeypatch.setattr("rlgames.cli.text_tables.terminal_width", lambda: 54)
    assert runs_command([str(runs)], []) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 54
    assert lines[2].split()[-1] == "value"
    assert lines[-1].startswith("no room for: ")
    assert runs_command([str(runs)], ["columns=all", "where=status=done"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 54
    shown = dict(line.split(maxsplit=1) for line in lines if not line.startswith(" "))
    assert shown["value"] == "5.0000"
    assert shown["learner"] == "td"
    assert "size" in shown


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sort=strted"], "did you mean started?"),
        (["columns=[run,sze]"], "did you mean size?"),
        (["where=status=gone"], "no run matches where=status=gone"),
        (["where=lr<0.1x"], "0.1x is not a number"),
        (["where=status>=done"], "text has no order; use = or !="),
        (["delete=true"], "add yes=true to remove what is listed"),
        (["delete=true", "prune=true", "yes=true"], "contradict"),
        (["prune=true", "keep=bst"], "did you mean best?"),
        (["delete=true", "keep=[best]", "yes=true"], "keep= is for prune=true"),
        (["keep=[best]"], "keep= is for prune=true"),
        (["where=started<9999-12-31T23:59:59-10:00"], "is not a date"),
    ],
)
def test_bad_words_remove_nothing(words, hint, runs, typed):
    said = typed("runs", "runs", *words)
    assert (said.returncode, hint in said.stderr) == (2, True), said.stderr
    assert {path.name for path in runs.iterdir()} == {"a", "b", "c"}


def test_damaged_runs_alone_are_listed(runs, typed):
    (runs / "a/run.json").write_text("{bad")
    said = typed("runs", "runs/a")
    assert said.returncode == 0
    assert "damaged" in said.stdout
    assert names(listed(typed, "runs", "where=status=damaged")) == ["a"]


def test_only_what_is_named_is_deleted(runs, typed):
    outside = runs.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (runs / "a" / "notes.txt").write_text("mine")
    (runs / "a" / "events.out.tfevents.1.of.another.program").write_text("x")
    (runs / "a" / "wandb").mkdir()
    (runs / "a" / "wandb" / "latest-run").symlink_to(outside / "precious")
    (write(runs / "link", lr=0.9) / "pictures").symlink_to(outside)
    (write(runs / "damaged") / "run.json").write_text("{")
    said = typed("runs", "runs", "delete=true", "yes=true")
    assert said.returncode == 3
    assert "runs/link/pictures is a link" in said.stderr
    assert "left alone, because it is in progress: runs/b" in said.stdout
    assert "left alone, because it is damaged: runs/damaged" in said.stdout
    assert {path.name for path in runs.iterdir()} == {"a", "b", "link", "damaged"}
    left = {path.name for path in (runs / "a").iterdir()}
    assert left == {"notes.txt", "events.out.tfevents.1.of.another.program"}
    assert (outside / "precious").read_text() == "x"


def test_a_run_or_a_sweep_that_is_locked_is_left_alone(runs, typed):
    for directory in (runs / "c", runs):
        (runs / "sweep.json").write_text("{}")
        lock = lock_directory(directory)
        said = typed("runs", "runs/c", "delete=true", "yes=true", "format=json")
        lock.release()
        assert (said.returncode, (runs / "c" / "run.json").exists()) == (3, True)
        assert "is running in" in said.stderr
        assert json.loads(said.stdout) == {"removed": []}
    for name in "abc":
        (runs / name / "run.json").write_text((runs / "c" / "run.json").read_text())
    assert typed("runs", "runs", "delete=true", "yes=true").returncode == 0
    assert not runs.exists()  # the last job takes the sweep with it


def test_a_run_of_a_study_in_progress_is_left_alone(runs, typed):
    (runs.parent / "sweep.json").write_text("{}")
    lock = lock_directory(runs.parent)
    said = typed("runs", "runs/c", "delete=true", "yes=true")
    lock.release()
    assert (said.returncode, (runs / "c" / "run.json").exists()) == (3, True)
    assert "is running in" in said.stderr


def test_the_last_run_of_a_study_takes_the_study_with_it(tmp_path, typed):
    (tmp_path / "study").mkdir()
    (tmp_path / "study/sweep.json").write_text("{}")
    for name in ("one/0", "one/1", "two/0"):
        write(tmp_path / "study" / name)
    assert typed("runs", "study", "delete=true", "yes=true").returncode == 0
    assert not (tmp_path / "study").exists()


def test_a_pruned_run_is_evaluated_as_before_but_not_extended(tmp_path, typed):
    run = package.train(["game=salvo", *SMALL, "keep_every=50", f"out={tmp_path}/run"])
    policy = Checkpoint.read(run / "checkpoints/latest.safetensors").policy
    before = listed(typed, "run")["runs"][0]["size"]
    said = typed("runs", "run", "prune=true", "yes=true", "format=json")
    removed = json.loads(said.stdout)["removed"]
    assert [each["what"] for each in removed] == ["2 checkpoints", "resume state"]
    assert before - listed(typed, "run")["runs"][0]["size"] == pytest.approx(
        sum(each["bytes"] for each in removed), rel=0.1
    )
    assert {path.stem for path in (run / "checkpoints").iterdir()} == {"best", "latest"}
    latest = Checkpoint.read(run / "checkpoints/latest.safetensors")
    assert {*latest.state} == {"progress"}
    assert all(bool((latest.policy[name] == policy[name]).all()) for name in policy)
    said = typed("resume", "run", "games=200")
    assert said.returncode == 2
    assert "init_from=run, or train with keep_resume_state=true" in said.stderr
    assert json.loads(typed("runs", "run", "prune=true", "format=json").stdout) == {"removed": []}


def test_a_run_that_converged_is_final_without_its_resume_state(tmp_path, typed):
    words = ["game=tictactoe", "learner=behavior_cloning", "policy.layers=[4]", "batch=16"]
    words += ["teacher=win_or_block", "games=1000", "eval_every=16", "eval_games=4"]
    words += ["learner.patience=1", "keep_resume_state=false", "solve_seconds=0"]
    run = package.train([*words, f"out={tmp_path}/run"])
    assert Checkpoint.read(run / "checkpoints/latest.safetensors").games < 1000
    said = typed("eval", "run", "checkpoint=final", "games=4", "solve_seconds=0", "format=json")
    assert json.loads(said.stdout)["checkpoint"] == "final"


def test_a_damaged_checkpoint_is_not_made_sound_by_pruning(tmp_path, typed):
    package.train(["game=salvo", *SMALL, f"out={tmp_path}/run"])
    latest = tmp_path / "run/checkpoints/latest.safetensors"
    content = bytearray(latest.read_bytes())
    content[-1] ^= 1
    latest.write_bytes(content)
    said = typed("runs", "run", "prune=true", "yes=true")
    assert said.returncode == 3
    assert "latest.safetensors is damaged" in said.stderr
    assert latest.read_bytes() == content


def test_a_finished_run_keeps_its_resume_state_if_asked_or_if_it_is_small(tmp_path, monkeypatch):
    def has_state(*words):
        run = package.train(["game=salvo", *SMALL, *words, f"out={tmp_path}/{len(words)}{words}"])
        return "processes" in Checkpoint.read(run / "checkpoints/latest.safetensors").state

    assert has_state()
    assert not has_state("keep_resume_state=false")
    monkeypatch.setattr("rlgames.training.run.MAX_RESUME_STATE_BYTES", 100)
    assert not has_state("eval_every=100")
    assert has_state("keep_resume_state=true", "eval_every=100")


def test_ages_and_sizes_in_words():
    now = datetime.datetime.fromisoformat("2026-11-25T12:00:00+00:00")
    times = ("25T11:59:50", "25T11:30:00", "22T11:00:00")
    ages = [age_in_words(f"2026-11-{time}+00:00", now) for time in times]
    assert ages == ["10s", "30min", "3d"]
    assert [bytes_in_words(size) for size in (0, 1023, 1536, 3_121_000_000)] == [
        "0 B", "1023 B", "1.5 KiB", "2.91 GiB",
    ]  # fmt: skip


@pytest.mark.slow
def test_deleting_under_a_storm_of_kills_takes_only_what_is_named(tmp_path):
    """Trainings and deletions beside each other are killed at random moments, and go on."""
    random_moments = random.Random(3)
    words = ["train", "game=salvo", *SMALL, "games=400", "log_every=50", "save_every=50"]
    code, told = run(tmp_path, *words, "lr=0.001", "out=runs/old0")
    assert code == 0, told
    for number in range(1, 300):
        shutil.copytree(tmp_path / "runs/old0", tmp_path / f"runs/old{number}")
    (tmp_path / "runs/old3/mine.txt").write_text("mine")
    os.symlink(tmp_path / "runs/old0", tmp_path / "runs/link")
    code, told = run(tmp_path, *words, "lr=0.1", "seed=0", "out=alone")
    assert code == 0, told
    delete = ["runs", "runs", "where=lr<0.01", "delete=true", "yes=true"]
    train = [*words, "lr=0.1", "seed=0"]
    kills = 0
    for _ in range(25):
        commands = [["resume", f"runs/{name}"] for name in ("new0", "new1")]
        for name, command in zip(("new0", "new1"), commands, strict=True):
            if not (tmp_path / "runs" / name / "checkpoints/latest.safetensors").exists():
                command[:] = [*train, f"out=runs/{name}", "exist_ok=true"]
        if not (old := num_old_runs(tmp_path)):
            break
        *trainings, deletion = (Process(tmp_path, *each) for each in (*commands, delete))
        fewer = random_moments.randrange(30)
        while (code := deletion.poll()) is None and num_old_runs(tmp_path) > old - fewer:
            time.sleep(random_moments.uniform(0.001, 0.01))
        for process in trainings if code is not None else (*trainings, deletion):
            if process.poll() is None:
                kills += 1
                process.send(signal.SIGKILL)
                os.waitpid(process.pid, 0)
    assert kills > 5
    left = listed_runs(tmp_path, delete)
    assert left == []
    assert [path.name for path in (tmp_path / "runs/old3").iterdir()] == ["mine.txt"]
    for path in sorted((tmp_path / "runs").glob("new*")):
        if (path / "checkpoints/latest.safetensors").exists():
            code, told = run(tmp_path, "resume", str(path))
            assert code == 0, told
            same(final_state(path), final_state(tmp_path / "alone"))
    assert len(list((tmp_path / "runs").glob("new*"))) >= 2


def num_old_runs(folder):
    return len(list((folder / "runs").glob("old*/run.json")))


def listed_runs(folder, delete):
    """The old runs that a last deletion leaves, if it has any to delete."""
    if num_old_runs(folder):
        code, told = run(folder, *delete)
        assert code == 0, told
    return sorted((folder / "runs").glob("old*/run.json"))
