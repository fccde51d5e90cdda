"""Memory in huge pages."""

import os
import re
from pathlib import Path

import pytest
import torch

from rlgames.core.pages import collapse_pages
from rlgames.core.tensor_checks import load_weights


def memory(file, name):
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self", file).read_text())[1])


def test_memory_in_small_pages_is_moved_into_huge_ones():
    values = torch.arange(3 << 22, dtype=torch.float32).view(-1, 3)  # 48 MiB
    expected = values.clone()
    before = memory("smaps_rollup", "AnonHugePages") if can_collapse() else 0
    collapse_pages(values[:, 1])
    assert values.equal(expected)
    if can_collapse():
        assert memory("smaps_rollup", "AnonHugePages") - before > 1 << 25


def can_collapse():
    """Whether this is Linux 6.1 or later with huge pages."""
    modes = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    kernel = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    return kernel >= (6, 1) and modes.exists() and "[never]" not in modes.read_text()


def test_weights_that_are_not_finite_or_have_no_dimension():
    module = torch.nn.Module()
    module.register_buffer("scale", torch.tensor(1.0))
    load_weights(module, {"scale": torch.tensor(2.0)})
    assert module.state_dict()["scale"] == 2
    with pytest.raises(ValueError, match="not finite"):
        load_weights(module, {"scale": torch.tensor(torch.nan)})
    module.register_buffer("none", torch.empty(0, 4))
    load_weights(module, {"scale": torch.tensor(3.0), "none": torch.empty(0, 4)})
    assert module.state_dict()["scale"] == 3
