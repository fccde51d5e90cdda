"""Sweeps of many jobs: how jobs are composed, read and stopped."""

import json
import shutil

import pytest

from rlgames.cli.sweep_view import SweepReader
from rlgames.config import compose
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import JobComposer, load
from rlgames.config.files import Files
from rlgames.config.words import Grammar
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.runs.hyperparameters import listed_settings
from rlgames.sweeps import jobs
from rlgames.sweeps.sweep import Job, Sweep


@pytest.mark.parametrize(
    ("words", "composed"),
    [
        (["game=tictactoe", "seed=range(0,4)", "lr=0.1,1e-3"], 1),
        (["learner=ppo,reinforce", "seed=0,1"], 4),
        (["game=salvo", "board=3,4", "ships=[2],[2,1]", "policy.layers=[8],[16,4]"], 1),
        (["game=salvo", "board=3", "seed=1,2", "eval_games=${seed}"], 1),
        (["seed=1,${hydra:job.num},3"], 3),
        (["init_from=a,b", "eval_every=null,5", "learner.lr_end=null,0.5"], 1),
        (["policy=mlp", "hydra.sweep.subdir=${hydra.job.num}_${seed}", "seed=5,6"], 1),
        (["experiment=ramesh_case1,ramesh_case3", "seed=0,1"], 4),
        (["opponent=random,win_or_block", "game=tictactoe", "seed=0,1"], 4),
    ],
)
def test_each_job_has_the_config_that_it_has_alone(words, composed, monkeypatch):
    grammar = Grammar(TrainConfig, Files(), is_sweep=True)
    own = [word for word in words if word.startswith("hydra.")]
    every = grammar.jobs([grammar.plain(word) for word in words if word not in own])
    alone = [load(TrainConfig, [*own, *job], job=number) for number, job in enumerate(every)]
    calls = []
    once = compose._compose

    def counted(*arguments):
        calls.append(arguments)
        return once(*arguments)

    monkeypatch.setattr(compose, "_compose", counted)
    composer = JobComposer(own)
    for number, job in enumerate(every):
        composition = composer.load(job, number)
        assert composition.config == alone[number].config
        assert sorted(composition.words) == sorted(alone[number].words)
        for key in ("hydra.sweep.subdir", "hydra.job.override_dirname", "hydra.job.num"):
            assert composition.hydra_value(key) == alone[number].hydra_value(key)
    assert len(calls) <= composed


def test_an_invalid_value_of_a_later_job_is_an_error():
    composer = JobComposer(["game=salvo"])
    composer.load(["lr=0.1"], 0)
    for word in ("lr=-1", "lr=abc", "lr=[1]"):
        with pytest.raises(ConfigError, match="lr="):
            composer.load([word], 1)
    assert composer.load(["lr=0.2"], 2).config.lr == 0.2


def sweep_of(directory, count, **config):
    games = {"game": {"name": "salvo"}, "games": 100}
    listed = [Job([f"seed={seed}"], games | config | {"seed": seed}) for seed in range(count)]
    sweep = Sweep(directory, [], [], listed)
    sweep.write()
    return sweep


def test_a_job_reads_no_other_and_lists_what_differs(tmp_path):
    sweep = sweep_of(tmp_path, 5, lr=0.1)
    lines = (tmp_path / "sweep.json").read_text().splitlines()
    broken = [line if number in (0, 4) else "{" for number, line in enumerate(lines)]
    (tmp_path / "sweep.json").write_text("\n".join(broken))
    alone = Sweep.read_job(tmp_path, 3)
    assert alone.jobs[0].config == sweep.jobs[3].config
    assert alone.path(0) == sweep.path(3) == tmp_path / "3_seed=3"
    assert listed_settings(alone.path(0), sweep.jobs[3].config) == {"seed": 3}
    with pytest.raises(ConfigError, match="is not the manifest of a sweep"):
        Sweep.read_job(tmp_path, 2)
    with pytest.raises(ConfigError, match="is not the manifest of a sweep"):
        Sweep.read_job(tmp_path, 9)


def test_the_time_left_counts_no_job_of_an_earlier_process(tmp_path):
    sweep = sweep_of(tmp_path, 4)
    for number in range(3):
        sweep.path(number).mkdir()
        run = {"status": "done", "metric": "turns", "best_by": "turns", "games": 100}
        (sweep.path(number) / "run.json").write_text(json.dumps(run))
    seconds = iter(range(0, 1000, 10))
    reader = SweepReader(sweep, lambda: next(seconds))
    assert (reader.progress.fraction, reader.progress.seconds_left) == (0.75, None)
    sweep.path(3).mkdir()
    run = {"status": "running", "metric": "turns", "best_by": "turns"}
    (sweep.path(3) / "run.json").write_text(json.dumps(run))
    (sweep.path(3) / "metrics.jsonl").write_text('{"games": 50}\n')
    reader.read()
    assert reader.progress.work == 0.5
    assert reader.progress.seconds_left == reader.progress.seconds


class Handed:
    """What a launcher hands to run_job."""

    def __init__(self, directory):
        self.directory, self.owner, self.job, self.options = (
            *(str(directory), jobs.this_process()), "0:0", []
        )  # fmt: skip


def test_a_stopping_sweep_starts_no_job_and_ends_its_launcher(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(jobs, "start_process", lambda *_: pytest.fail("a job was started"))
    (tmp_path / jobs.STOP_FILE).touch()
    with pytest.raises(Interrupted):
        jobs.run_job(Handed(tmp_path))
    (tmp_path / jobs.STOP_FILE).unlink()
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(Interrupted):
        jobs.run_job(Handed(tmp_path))
    assert "no space left in" in capfd.readouterr().err


def test_the_command_that_resumes_names_the_plugins(tmp_path):
    sweep = Sweep(tmp_path, ["seed=0,1", "plugins=[mine]"], ["hydra/launcher=joblib"])
    end = "hydra/launcher=joblib 'plugins=[mine]'"
    assert sweep.resume_command() == f"rlgames resume {tmp_path} {end}"
