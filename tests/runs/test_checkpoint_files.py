"""The file of a checkpoint."""

import torch
from safetensors.torch import load_file

from rlgames.runs.checkpoint import Checkpoint


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
