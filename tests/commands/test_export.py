"""A run's network as an ONNX file."""

import json
from typing import Any

import pytest
import torch

import rlgames as package
from rlgames.core.errors import ConfigError
from rlgames.factory.agents import load_agent
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games

BRIEF = ["experiment=null", "games=20", "batch=20", "eval_games=1", "solve_seconds=0"]


def trained(folder, *words):
    """A run of a few games, with large weights: what a network makes of boards should differ."""
    return package.train([*BRIEF, "lr=0.05", *words, f"out={folder}/run"])


@pytest.fixture(scope="module", autouse=True)
def _packages():
    """Here, since each worker would take a second to import them."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("small"), "game=battleship", "policy.layers=[4]")


@pytest.mark.parametrize(
    "words",
    [
        ["game=battleship", "board=5", "policy=mlp", "policy.layers=[32]"],
        pytest.param(
            ["game=connect4", "reward=outcome", "policy=conv", "policy.channels=[8,8]"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["game=battleship", "policy=conv"], marks=pytest.mark.slow),
        pytest.param(
            ["game=battleship", "board=5", "policy=belief_propagation", "policy.layers=[8]"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["game=2048", "reward=score", "policy=embedding", "policy.canonical=true"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["game=2048", "reward=score", "policy=staged", "policy.at=[8,32]", "policy.layers=[9]"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["game=tictactoe", "reward=outcome", "learner=dqn", "sampling=epsilon_greedy"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_exported_network_gives_the_same_scores(words, tmp_path):
    import onnx
    import onnxruntime

    run = trained(tmp_path, *words)
    path = package.export_onnx(run)
    assert path == run / "policy.onnx"
    agent: Any = load_agent(run)
    moves, _ = collect_games(agent.game, [Random(agent.game)], 7, torch.Generator().manual_seed(4))
    session = onnxruntime.InferenceSession(path)
    for count in (1, 2, len(moves)):
        inputs = agent.policy.inputs(agent.game, moves.state[:count])
        with torch.no_grad():
            meant = [output for output in agent.policy(inputs) if output is not None]
        found = session.run(None, {"inputs": inputs.numpy()})
        for own, other in zip(meant, found, strict=True):
            torch.testing.assert_close(torch.from_numpy(other), own, rtol=1e-5, atol=1e-5)
    assert [output.name for output in session.get_outputs()] == ["scores", "value"][: len(meant)]
    told = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(told["game"])["name"] == agent.game.spec.name


def test_the_command_writes_to_the_given_path(typed, small, tmp_path):
    done = typed("export", str(small), "out=a file (é).onnx")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert 'inputs: ["batch", 3, 1, 10]\noutputs: scores, value\n' in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a file (é).onnx"]


def test_nothing_but_onnx_files_is_overwritten(typed, small):
    checkpoint = small / "checkpoints" / "latest.safetensors"
    before = checkpoint.read_bytes()
    done = typed("export", str(small), f"out={checkpoint}")
    assert done.returncode == 2
    assert "is not an ONNX file" in done.stderr
    assert checkpoint.read_bytes() == before


def test_an_agent_is_exported_to_the_current_directory(typed, tmp_path):
    done = typed("export", "hex")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["hex.onnx"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["game=tictactoe", "reward=outcome", "policy=table", "learner=td"], "policy=table"),
        pytest.param(
            ["game=2048", "reward=score", "policy=mlp", "learner=td_lambda", "games=1"],
            "learner=td_lambda",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_no_network_is_refused(words, told, tmp_path):
    run = trained(tmp_path, *words, "sampling=epsilon_greedy", "lr=0.001")
    with pytest.raises(ConfigError, match="no network") as refused:
        package.export_onnx(run)
    assert told in str(refused.value)
    assert not (run / "policy.onnx").exists()


def test_without_the_extra_it_says_what_to_install(typed, small, monkeypatch):
    missing = {"onnxscript": None}
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: missing.get(name, name))
    done = typed("export", str(small))
    assert done.returncode == 2
    assert "pip install 'rlgames[onnx]'" in done.stderr
    assert "needs a run" in typed("export").stderr
