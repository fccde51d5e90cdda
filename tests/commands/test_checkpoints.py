"""The selected checkpoint and the final network of a run: each is reported under its own name."""

import shutil

import pytest
import torch
from helpers import command, read_result

import rlgames as package
from rlgames.commands import evaluate
from rlgames.commands.train import print_result
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.rng import Rng
from rlgames.runs.checkpoint import Checkpoint
from rlgames.training.evaluator import Evaluator
from rlgames.training.train import train

SMALL = ["game=battleship", "board=5", "ships=[2]", "games=400", "batch=50", "policy.layers=[16]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose best checkpoint shoots at both ends of the line first."""
    run = package.train([*SMALL, f"out={tmp_path_factory.mktemp('runs')}/run"])
    final = Checkpoint.read(run / "checkpoints/latest.safetensors")
    policy = {name: torch.zeros_like(tensor) for name, tensor in final.policy.items()}
    [bias] = [tensor for tensor in policy.values() if tensor.shape == (5,)]
    bias += torch.tensor([5.0, 3.0, 1.0, 2.0, 4.0])
    Checkpoint(final.config, 50, policy, {}).write(run / "checkpoints/best.safetensors")
    return run


def test_a_user_chooses_the_checkpoint_and_every_report_names_it(run, capsys):
    results = {
        name: command("eval", run, [] if name is None else [f"checkpoint={name}"])
        for name in (None, "best", "latest", "final")
    }
    reports = {name: result.as_dict() for name, result in results.items()}
    assert reports[None]["checkpoint"] == reports["best"]["checkpoint"] == "best (selected)"
    assert reports["latest"]["checkpoint"] == reports["final"]["checkpoint"] == "final"
    assert reports[None]["checkpoint_games"] == reports["best"]["checkpoint_games"] == 50
    assert reports["final"]["checkpoint_games"] == 400
    assert reports[None]["moves"]["mean"] == 4.25  # 3, 5, 5 and 4 turns
    assert reports["final"]["moves"]["mean"] < 4.25
    assert reports["latest"]["moves"] == reports["final"]["moves"]
    assert read_result(run, "eval") == reports[None]
    assert read_result(run, "eval_best") == reports["best"]
    assert read_result(run, "eval_final") == reports["final"]
    evaluate.show(results["final"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "checkpoint final" in printed
    assert "trained for 400 games" in printed
    evaluate.show(results["best"])
    assert "checkpoint best (selected)" in " ".join(capsys.readouterr().out.split())


def evaluations(monkeypatch):
    """The streams that evaluations draw from, and the sum of the weights that each evaluates."""
    calls = []
    real = Evaluator.evaluate

    def evaluate(self, greedy, num_games, stream):
        calls.append((stream, sum(float(p.detach().sum()) for p in greedy.policy.parameters())))
        return real(self, greedy, num_games, stream)

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    return calls


def test_a_run_reports_its_best_and_its_final_network(tmp_path, monkeypatch, capsys):
    calls = evaluations(monkeypatch)
    first_is_best = lambda self, metrics, best: [0.0, 0.0] if best is None else None  # noqa: E731
    monkeypatch.setattr(Evaluator, "better", first_is_best)
    result = train(load_config(TrainConfig, [*SMALL, "eval_every=100", f"out={tmp_path}/run"]))
    saved = read_result(tmp_path / "run")
    assert saved["checkpoint_games"] == 100
    assert saved["exact"]
    streams = [stream for stream, _ in calls]
    assert streams == ["eval"] * 4 + ["final"] * 2  # games that selected nothing
    assert calls[-2][1] == calls[-3][1]  # the final weights first
    assert calls[-1][1] == calls[0][1] != calls[-2][1]
    best = command("eval", tmp_path / "run", ["checkpoint=best"]).as_dict()
    final = command("eval", tmp_path / "run", ["checkpoint=final"]).as_dict()
    assert saved["turns"] == best["moves"]["mean"]
    assert read_result(tmp_path / "run", "train_final")["turns"] == final["moves"]["mean"]
    assert saved["checkpoint_games"] == best["checkpoint_games"]
    print_result(result)
    printed = " ".join(capsys.readouterr().out.split())
    assert "all layouts (exact)" in printed
    assert "best (selected) final" in printed
    values = f"{best['moves']['mean']:.4f} {final['moves']['mean']:.4f}"
    assert f"trained, greedy {values}" in printed


def test_a_final_network_that_is_the_best_is_evaluated_once(tmp_path, monkeypatch, capsys):
    calls = evaluations(monkeypatch)
    result = train(load_config(TrainConfig, [*SMALL, "eval_every=400", f"out={tmp_path}/run"]))
    saved = read_result(tmp_path / "run")
    assert [stream for stream, _ in calls] == ["eval", "final"]
    assert saved["checkpoint_games"] == 400
    references = {name: saved[name] for name in ("random", "optimal")}
    assert saved == read_result(tmp_path / "run", "train_final") | references
    print_result(result)
    assert "best (selected) and final" in capsys.readouterr().out


def test_other_commands_and_python_load_the_chosen_checkpoint(run):
    first_shots = {}
    for name in ("best", "final"):
        shown = command("show", run, [f"checkpoint={name}", "solve_seconds=0"]).as_dict()
        first_shots[name] = shown["actions"][0]["probability"]
        agent = package.load(run, name)
        state = agent.game.initial(1, Rng(0))
        watched = agent.choose(agent.game.public(state)).tolist()
        assert (watched == [0]) == (name == "best")
    best = torch.tensor([5.0, 3.0, 1.0, 2.0, 4.0]).softmax(0)[0]
    assert first_shots["best"] == pytest.approx(float(best))
    assert first_shots["final"] != first_shots["best"]


def test_python_knows_the_names_of_the_command_line(run, tmp_path, monkeypatch):
    shutil.copytree(run, tmp_path / "outputs/run")
    monkeypatch.chdir(tmp_path)
    assert package.load("tictactoe").game.spec.name == "tictactoe"
    report = package.evaluate("tictactoe", ["games=2", "solve_seconds=0"])
    assert report["player"] == "tictactoe"
    assert same_policy(package.load("latest"), package.load("outputs/run/checkpoints"))
    with pytest.raises(ConfigError, match="no run 'tictacto', and no agent of this name"):
        package.load("tictacto")


def same_policy(first, second):
    one, other = first.policy.state_dict(), second.policy.state_dict()
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_checkpoint_that_is_not_there_is_refused(run, tmp_path):
    path = run / "checkpoints/latest.safetensors"
    with pytest.raises(ConfigError, match="is not a run directory"):
        command("eval", path, ["checkpoint=final"])
    with pytest.raises(ConfigError, match="needs a run"):
        command("eval", None, ["player=random", "game=tictactoe", "checkpoint=best"])
    with pytest.raises(ConfigError, match="checkpoint"):
        command("eval", run, ["checkpoint=finale"])
    unfinished = tmp_path / "run"
    (unfinished / "checkpoints").mkdir(parents=True)
    latest = Checkpoint.read(path)
    started = Checkpoint(latest.config, 50, latest.policy, latest.state)
    started.write(unfinished / "checkpoints/latest.safetensors")
    with pytest.raises(ConfigError, match="not finished"):
        command("eval", unfinished, ["checkpoint=final"])
    with pytest.raises(ConfigError, match="has no best checkpoint"):
        command("eval", unfinished, ["checkpoint=best"])
    assert command("eval", unfinished, []).as_dict()["checkpoint"] == "latest"
    assert command("eval", path, []).as_dict()["checkpoint"] == "final"
