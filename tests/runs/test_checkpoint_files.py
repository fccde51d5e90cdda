"""The file of a checkpoint."""

import re

import torch
from helpers import SMALL_TRAINING
from safetensors.torch import load_file

import rlgames as package
from rlgames.runs.checkpoint import Checkpoint


def test_a_run_says_at_its_start_what_large_checkpoints_take(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("rlgames.runs.checkpoint.LARGE_BYTES", 1)
    package.train([*SMALL_TRAINING, f"out={tmp_path}/run"])
    said = capsys.readouterr().err
    assert re.search(r"a checkpoint takes 0\.\d GB, so the run takes up to 0\.\d GB; ", said)
    assert "GB are free" in (tmp_path / "run/train.log").read_text()
    monkeypatch.undo()
    package.train([*SMALL_TRAINING, f"out={tmp_path}/small"])
    assert "GB" not in capsys.readouterr().err


def test_a_checkpoint_holds_columns_of_a_table_and_shared_tensors(tmp_path):
    """The columns are written in parts of whole rows, without a copy of the table."""
    table = torch.arange(3 * 70_000.0).view(-1, 3)
    policy = {
        "values": table[:, 0],
        "again": table[:, 0],
        "small": torch.tensor(2, dtype=torch.int8),
    }
    state = {
        "learner": {"sizes": table[:, 2], "none": torch.empty(0, 4)},
        "flags": torch.ones(3).bool(),
    }
    path = tmp_path / "a.safetensors"
    Checkpoint({}, 5, policy, state).write(path)
    read = Checkpoint.read(path)
    assert {name: tensor.tolist() for name, tensor in read.policy.items()} == {
        name: tensor.tolist() for name, tensor in policy.items()
    }
    assert read.state["learner"]["sizes"].equal(table[:, 2])
    assert read.state["learner"]["none"].shape == (0, 4)
    assert read.state["flags"].dtype == torch.bool
    library = load_file(path)
    assert library["state/learner/sizes"].equal(table[:, 2])
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]
