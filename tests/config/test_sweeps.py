"""`rlgames train -m`: many runs, in processes or in this one, whatever proposes them."""

import datetime
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml
from helpers import SMALL_TRAINING, check_refused
from run_files import metrics_without_times

SMALL = [*SMALL_TRAINING, "solve_seconds=0", "learner.epochs=1"]
HERE = ["-m", *SMALL, "hydra/launcher=basic"]
"""A sweep in this process, which is quicker."""

SWEEP = [*HERE, "seed=0,1", "hydra.sweep.dir=s"]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def status(run):
    return json.loads(Path(run, "run.json").read_text())["status"]


def jobs(sweep="s"):
    return {path.parent.name for path in Path(sweep).glob("*/run.json")}


def test_a_sweep_starts_only_what_is_missing(typed):
    done = typed("train", *SWEEP)
    assert done.returncode == 0, done.stderr
    assert jobs() == {"seed=0", "seed=1"}
    Path("s/seed=1/run.json").unlink()
    Path("s/seed=1/checkpoints/latest.safetensors").unlink()
    Path("s/seed=1").rename("gone")
    printed = typed("resume", "s").stdout
    assert "seed=0: done before\n" in printed
    assert "seed=1: starts\n" in printed
    # With one seed more, it runs that seed.
    printed = typed("train", *SWEEP, "seed=0,1,2").stdout
    assert printed.count("done before") == 2
    assert "seed=2: starts\n" in printed


def test_a_preset_may_say_what_varies(typed, folder):
    preset = {"defaults": ["tictactoe", "_self_"], "games": 40, "eval_games": 10}
    preset["hydra"] = {"sweeper": {"params": {"lr": "0.1,0.2"}}}
    (folder / "mine/experiment").mkdir(parents=True)
    text = f"# @package _global_\n{yaml.dump(preset)}"
    (folder / "mine/experiment/two.yaml").write_text(text)
    words = ["-m", "experiment=two", "hydra/launcher=basic", "--config-dir", "mine", "out=s"]
    done = typed("train", *words)
    assert done.returncode == 0, done.stderr
    assert jobs() == {"lr=0.1", "lr=0.2"}


DIVERGES = ["learner.optimizer=sgd", "learner.max_grad_norm=null", "reward.scale=1e6"]
DIVERGES += ["learner.epochs=4"]
"""With lr=100; with lr=1e-9 it learns nothing."""


def test_a_failed_job_in_a_process_is_named(rlgames, folder):
    done = rlgames("train", "-m", *SMALL, *DIVERGES, "seed=0", "lr=1e-9,100", "out=s")
    assert done.returncode == 3, done.stderr
    assert "lr=1e-09: starts\n" in done.stdout
    assert "lr=1e-09: done, exploitability " in done.stdout
    assert "lr=100: failed, update " in done.stdout
    assert "best by exploitability: lr=1e-09 with " in done.stdout
    assert done.stderr.startswith("rlgames: 1 of 2 jobs failed, the first lr=100: update ")
    assert done.stderr.endswith("; rlgames resume s runs what is not done\n")
    assert [status(folder / "s" / job) for job in ("lr=1e-09", "lr=100")] == ["done", "failed"]
    assert "lr=1e-09: starts\n" in (folder / "s/lr=1e-09/output.log").read_text()


@pytest.mark.slow
def test_processes_give_the_results_of_this_process(rlgames, tmp_path):
    for words in (["jobs=2", "out=a"], ["jobs=1", "out=b"], ["hydra/launcher=basic", "out=c"]):
        done = rlgames("train", "-m", *SMALL, "seed=0,1,2", *words)
        assert done.returncode == 0, done.stderr
    for seed in range(3):
        one, two, three = (metrics_without_times(tmp_path / run / f"seed={seed}") for run in "abc")
        assert one == two == three
    assert rlgames("resume", "a", "jobs=3").stdout.count(": done before\n") == 3


def test_sweeps_of_one_second_have_different_directories(typed, monkeypatch):
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 29, 10, 0, 0, tzinfo=tz)

    monkeypatch.setattr("hydra.core.utils.datetime", Clock)
    for lr in (0.01, 0.02):
        assert typed("train", *HERE, f"lr={lr}").returncode == 0
    first = Path("outputs/sweeps/2026-11-29_100000")
    for path, lr in ((first, 0.01), (Path(f"{first}_1"), 0.02)):
        assert yaml.safe_load((path / "0/config.yaml").read_text())["lr"] == lr
        assert typed("resume", str(path)).stdout.startswith("0: done before\n")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["lr=0.5"], "lr"),
        (["seed=1,2"], "seed"),
        (["seed=0"], "seed"),
        (["batch=5,10"], "batch"),
    ],
)
def test_a_directory_holds_one_sweep(words, key, typed):
    Path("s").mkdir()
    overrides = {"task": [*SMALL, "seed=0,1"], "hydra": []}
    text = yaml.safe_dump({"hydra": {"overrides": overrides}})
    Path("s/multirun.yaml").write_text(text)
    check_refused(
        typed("train", *SWEEP, "experiment=null", *words),
        f"s holds another sweep, with another {key}",
    )
    assert Path("s/multirun.yaml").read_text() == text


def test_a_sweep_is_not_written_into_a_run(typed):
    Path("s").mkdir()
    Path("s/run.json").write_text("{}")
    check_refused(typed("train", *SWEEP), "s already holds a run; name another out=")


@pytest.mark.parametrize(
    ("command", "words", "reason"),
    [
        ("train", ["jobs=2"], "jobs= is for a sweep; add -m"),
        ("train", ["-m", "seed=0,1", "jobs=many"], "jobs=many is not a whole number from 1"),
        ("train", ["-m", "seed=0,1", "jobs=0"], "jobs=0 is not a whole number from 1 to 1,024"),
        ("resume", ["run", "jobs=2"], "jobs= is for a sweep, and run is a run"),
    ],
)
def test_jobs_is_a_number_and_for_sweeps(command, words, reason, typed):
    Path("run").mkdir()
    words = words if command == "resume" else [*SMALL, *words]
    check_refused(typed(command, *words), reason)
    assert not Path("outputs").exists()


def test_lists_ranges_and_globs_are_swept_together(typed):
    words = [*HERE, "seed=range(2)", "lr=0.01,0.02", "sampling=glob(stoch*)", "out=s"]
    done = typed("train", *words)
    assert done.returncode == 0, done.stderr
    assert len(jobs()) == 4


def test_a_sweep_without_a_preset_resumes_without_one(typed):
    words = ["game=salvo", "board=2", "ships=[1]", "shots=1", "experiment=null", "policy=mlp"]
    words += ["policy.layers=[2]", "games=4", "batch=4", "eval_games=2", "solve_seconds=0"]
    words += ["hydra/launcher=basic"]
    assert typed("train", "-m", *words, "seed=0,1", "out=s").returncode == 0
    shutil.rmtree("s/seed=1")
    done = typed("resume", "s")
    assert done.returncode == 0, done.stderr
    one, two = (Path(f"s/seed={seed}/config.yaml").read_text() for seed in (0, 1))
    assert two == one.replace("seed: 0", "seed: 1").replace("seed=0", "seed=1")


def test_a_failed_job_ends_no_other(typed):
    typed("train", *SWEEP)
    Path("s/seed=0/checkpoints/latest.safetensors").write_text("damaged")
    done = typed("train", *SWEEP, "seed=0,1,2")
    assert done.returncode == 3
    assert "1 of 3 jobs failed, the first seed=0: " in done.stderr
    assert "; rlgames resume s runs what is not done" in done.stderr
    assert status("s/seed=2") == "done"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["learner=ppo,dqn", "policy=ntuple"], "rlgames: learner=ppo does not train policy=ntuple"),
        (
            ["policy=mlp,conv", "learner=ppo,dqn", "sampling=stochastic"],
            "rlgames: policy=mlp: learner=dqn outputs action values",
        ),
        (["line=3,4"], "rlgames: line=4 is longer"),
        (["lr=0.1,2000"], "lr=2000.0 is out of range"),
        (["lr=choice(0.1,2000)", "seed=0,1"], "lr=2000.0 is out of range"),
        (["line=range(2,9)", "seed=0,1"], "line=8 is out of range"),
    ],
)
def test_a_sweep_is_checked_before_its_first_job(words, reason, typed, folder):
    before = {*folder.rglob("*")}
    check_refused(typed("train", "-m", "game=tictactoe", "games=20", *words), reason)
    assert {*folder.rglob("*")} == before


@pytest.mark.parametrize(
    "word", ["plugins=[evil]", "hydra.callbacks.a._target_=evil.main", "seed=${oc.env:HOME}"]
)
def test_a_sweep_of_a_stranger_runs_no_code(word, typed, folder):
    (folder / "evil.py").write_text("from pathlib import Path\nPath('marker').touch()\n")
    overrides = {"task": [*SMALL, word], "hydra": ["hydra.launcher._target_=evil.main"]}
    (folder / "s").mkdir()
    (folder / "s/multirun.yaml").write_text(yaml.safe_dump({"hydra": {"overrides": overrides}}))
    check_refused(typed("resume", "s"), "type its words again if you trust them")
    assert not os.path.exists("marker")


OPTUNA = [*HERE, "hydra/sweeper=optuna", "out=s"]


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna")


def test_optuna_proposes_jobs_and_continues_its_study(optuna, typed):
    words = [*OPTUNA, "lr=tag(log,interval(0.001,0.1))"]
    words += ["hydra.sweeper.storage=sqlite:///s.db", "hydra.sweeper.study_name=one"]
    done = typed("train", *words, "hydra.sweeper.n_trials=2")
    assert done.returncode == 0, done.stderr
    assert "best by " in done.stdout
    done = typed("train", *words, "hydra.sweeper.n_trials=3")
    assert done.stdout.count(": starts\n") == 1
    assert len(jobs()) == 3
    check_refused(typed("resume", "s"), "was started with hydra.sweeper.storage=sqlite:///s.db")


def test_a_search_without_storage_proposes_the_same_when_it_resumes(optuna, typed):
    words = ["lr=interval(0.001,0.1)", "hydra.sweeper.n_trials=2", "hydra.sweeper.seed=3"]
    assert typed("train", *OPTUNA, *words).returncode == 0
    (last, *_) = sorted(jobs())
    shutil.rmtree(f"s/{last}")
    done = typed("resume", "s")
    assert done.returncode == 0, done.stderr
    assert f"{last}: starts\n" in done.stdout
    assert done.stdout.count("done before") == 1
    assert len(jobs()) == 2


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a=range(0.5,3.5,0.5)", "FloatDistribution(high=3.0, log=False, low=0.5, step=0.5)"),
        (
            "a=range(0.001,0.01,0.003)",
            "FloatDistribution(high=0.007, log=False, low=0.001, step=0.003)",
        ),
        ("a=range(1,5)", "IntDistribution(high=4, log=False, low=1, step=1)"),
        ("a=range(5,0,-2)", "IntDistribution(high=5, log=False, low=1, step=2)"),
        ("a=float(range(1,5))", "FloatDistribution(high=4.0, log=False, low=1.0, step=1.0)"),
        ("a=interval(1,4)", "FloatDistribution(high=4.0, log=False, low=1.0, step=None)"),
        ("a=int(interval(1,4))", "IntDistribution(high=4, log=False, low=1, step=1)"),
        (
            "a=tag(log,interval(1e-4,1))",
            "FloatDistribution(high=1.0, log=True, low=0.0001, step=None)",
        ),
        ("a=null,2,x", "CategoricalDistribution(choices=('null', '2', 'x'))"),
        ("a=int(choice(1.5,2))", "CategoricalDistribution(choices=('1', '2'))"),
    ],
)
def test_optuna_searches_the_values_that_the_words_have(word, expected, optuna):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from hydra_plugins.rlgames_optuna import distribution

    (override,) = OverridesParser.create().parse_overrides([word])
    assert str(distribution(override)) == expected


def test_proposed_values_are_written_as_people_write_them(optuna):
    from hydra_plugins.rlgames_optuna import words_of

    params = {"a": 0.1 + 0.2, "b": 3, "c": "null", "d": 1e-5}
    assert words_of(params) == ["a=0.3", "b=3", "c=null", "d=1e-05"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "hydra/sweeper=optuna has nothing to search; give a key a range"),
        (["lr=0.01"], "hydra/sweeper=optuna has nothing to search"),
        (["seed=range(3,3)"], "seed=range(3,3): there is no such value"),
        (["lr=tag(log,interval(0,1))"], "lr=tag(log,interval(0,1)): "),
        (["lr=0.1,0.2", "hydra.sweeper.sampler=grid"], "the sampler is Optuna's TPE"),
        (["lr=0.1,0.2", "hydra.sweeper.n_trials=0"], "n_trials=0 is not a positive number"),
    ],
)
def test_optuna_says_what_it_cannot_search(words, reason, optuna, typed, folder):
    check_refused(typed("train", *OPTUNA, *words), reason)
    assert not Path("s").exists()


def test_optuna_searches_globs_and_params_of_a_preset(optuna, typed, folder):
    Path("own/experiment").mkdir(parents=True)
    params = "hydra:\n  sweeper:\n    params:\n      lr: 0.01,0.02\n"
    Path("own/experiment/mine.yaml").write_text(
        f"# @package _global_\ndefaults: [tictactoe_mlp]\n{params}"
    )
    words = ["sampling=glob(stoch*)", "hydra.sweeper.n_trials=2", "experiment=mine"]
    done = typed("train", *OPTUNA, "--config-dir=own", *words)
    assert done.returncode == 0, done.stderr
    assert all("lr=0.0" in name and "sampling=stochastic" in name for name in jobs())


def test_a_trial_that_fails_is_not_a_result(optuna, typed):
    words = [*OPTUNA, *DIVERGES, "lr=1e-9,100", "hydra.sweeper.n_trials=3"]
    words += ["hydra.sweeper.seed=2"]  # which proposes each in turn
    words += ["hydra.sweeper.storage=sqlite:///s.db", "hydra.sweeper.study_name=one"]
    done = typed("train", *words)
    assert done.returncode == 0, done.stderr
    states = [
        trial.state.name
        for trial in optuna.load_study(study_name="one", storage="sqlite:///s.db").trials
    ]
    assert states == ["COMPLETE", "FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    words = [*words, "lr=99,100", "out=t", "hydra.sweeper.study_name=two"]
    done = typed("train", *words, "hydra.sweeper.n_trials=2")
    assert done.returncode == 3
    assert "2 of 2 jobs failed" in done.stderr


def test_a_trial_whose_process_was_killed_is_proposed_again(optuna, typed):
    storage = "sqlite:///s.db"
    study = optuna.create_study(study_name="one", storage=storage)
    space = {"lr": optuna.distributions.FloatDistribution(0.01, 0.02)}
    for name in ("s", "t"):  # the second is of another sweep, which may still run
        study.ask(space).set_user_attr("sweep", str(Path(name).absolute()))
    words = [*OPTUNA, "lr=interval(0.01,0.02)", f"hydra.sweeper.storage={storage}"]
    words += ["hydra.sweeper.study_name=one", "hydra.sweeper.n_trials=1"]
    assert typed("train", *words).returncode == 0
    first, second, again = optuna.load_study(study_name="one", storage=storage).trials
    assert [each.state.name for each in (first, second, again)] == ["FAIL", "RUNNING", "COMPLETE"]
    assert again.params == first.params
    assert typed("train", *words).stdout.count(": starts") == 0
