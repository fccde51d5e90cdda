"""Weights from a file."""

import pytest
import torch

from rlgames.core.tensor_checks import load_weights


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
