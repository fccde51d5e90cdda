"""The file of a checkpoint, and the memory that training from it and saving it takes."""

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rlgames.learners.td_ntuple import TdNtuple
from rlgames.runs.checkpoint import Checkpoint

SAID = 3 * 16**6 * 4 * TdNtuple.floats_per_value("temporal_coherence", None)
"""Bytes of 3 tuples of 6 cells."""


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlgames.runs.checkpoint.PART_BYTES", 1000)
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


@pytest.mark.slow
def test_training_a_table_takes_no_more_memory_than_is_said_before(tmp_path):
    """Of 3 tuples of 6 cells, with the two sums of temporal coherence, and of resuming it."""
    words = ["experiment=2048_ntuple", "batch=8", "learner.threads=1", "eval_games=2", "games=16"]
    words += ["keep_resume_state=true", "solve_seconds=0"]
    tuples = "policy.tuples=[[0,1,2,3,4,5],[4,5,6,7,8,9],[0,1,2,4,5,6]]"
    for name, more in (("a", "policy.tuples=[[0,1]]"), ("b", tuples)):
        peak_bytes(
            ["train", *words, more, f"out={tmp_path}/{name}"]
        )  # compiles, which takes memory
    base = peak_bytes(["train", *words, "policy.tuples=[[0,1]]", f"out={tmp_path}/base"])
    trained = peak_bytes(["train", *words, tuples, f"out={tmp_path}/run"])
    assert trained - base <= SAID * 1.15
    assert peak_bytes(["resume", f"{tmp_path}/run", "games=32"]) - base <= SAID * 1.15


def peak_bytes(words):
    """The most memory that a command holds, in bytes."""
    process, peak = subprocess.Popen([sys.executable, "-m", "rlgames", *words]), 0
    while process.poll() is None:
        with contextlib.suppress(OSError):
            found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, 1024 * int(found[1]) if found else 0)
        time.sleep(0.02)
    assert process.returncode == 0
    return peak
