"""Mistakes against perfect play, counted while a run trains."""

import json

import pytest
from helpers import command, read_result, resume_run
from markers import quick
from run_files import final_state, flat, metrics_without_times, same

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.signals import Interrupted
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics
from rlgames.training.loop import TrainingLoop
from rlgames.training.train import train

SMALL = ["experiment=null", "policy=mlp", "policy.layers=[8]", "batch=8", "games=48"]
SMALL += ["eval_games=8", "eval_every=16", "save_every=8", "log_every=16", "solve_seconds=0"]
LINES = [*SMALL, "game=connect4", "rows=3", "columns=4", "line=3", "reward=outcome"]
MEASURED = ["analyze_every=16"]


def cfg(words, path):
    return load_config(TrainConfig, [*words, f"out={path}"])


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The result of a run that counts mistakes."""
    return train(cfg([*LINES, *MEASURED], tmp_path_factory.mktemp("runs") / "run"))


def test_measurements_change_nothing_in_a_training(measured, tmp_path):
    plain = train(cfg(LINES, tmp_path / "plain"))
    counted, without = (
        Checkpoint.read(run.directory / "checkpoints" / "latest.safetensors")
        for run in (measured, plain)
    )
    assert counted.state["progress"]["done_at"]["measure"] == 48
    assert without.state["progress"]["regret"] is None
    same(counted.policy, without.policy)
    for name in ("learner", "source"):
        same(flat(counted.state[name]), flat(without.state[name]))
    lines = [
        [line for line in metrics_without_times(run.directory) if not is_measured(json.loads(line))]
        for run in (measured, plain)
    ]
    assert lines[0] == lines[1]


def is_measured(line):
    return "eval/regret" in line


def test_they_are_logged_and_belong_to_the_results_of_the_final_network(measured):
    lines = read_metrics(measured.directory / "metrics.jsonl")
    counts = [line for line in lines if "eval/regret" in line]
    assert [line["games"] for line in counts] == [16, 32, 48]
    results = read_result(measured.directory, "train_final")
    assert results["regret"] == counts[-1]["eval/regret"] > 0


@pytest.mark.parametrize("batches", quick([1, 2], 1))
def test_a_run_that_is_interrupted_counts_the_same_mistakes(
    measured, batches, tmp_path, monkeypatch
):
    directory, real, count = tmp_path / "run", TrainingLoop.measure, 0

    def interrupted(self):
        nonlocal count
        count += 1
        if count > batches:  # in the middle: the games are played, and nothing is noted
            self.training.evaluator.regret(self.training.greedy)
            raise Interrupted(15)
        real(self)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingLoop, "measure", interrupted)
        with pytest.raises(Interrupted):
            train(cfg([*LINES, *MEASURED], directory))
    resume_run(directory)
    same(final_state(measured.directory), final_state(directory))
    assert metrics_without_times(measured.directory) == metrics_without_times(directory)


def test_the_regret_is_what_analyze_finds(tmp_path):
    words = [*SMALL, "game=salvo", "board=3", "ships=[2]", "shots=1", "analyze_every=48"]
    run = package.train([*words, f"out={tmp_path}/run"])
    logged = read_metrics(run / "metrics.jsonl")
    regret = next(line["eval/regret"] for line in logged if "eval/regret" in line)
    report = command("analyze", run, ["checkpoint=final", "games=all"]).as_dict()
    assert regret == report["losses"]["all"]["loss"]["mean"]
