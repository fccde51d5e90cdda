"""Weights and states of optimizers from a file."""

import pytest
import torch
from torch import nn

from rlgames.core.tensor_checks import check_optimizer_state, load_weights
from rlgames.learners.gradient import make_optimizer


def test_weights_that_are_not_finite_or_have_no_dimension():
    module = nn.Module()
    module.scale = nn.Parameter(torch.tensor(1.0))
    load_weights(module, {"scale": torch.tensor(2.0)})
    assert module.state_dict()["scale"] == 2
    with pytest.raises(ValueError, match="scale are not finite"):
        load_weights(module, {"scale": torch.tensor(torch.nan)})
    module.register_buffer("none", torch.empty(0, 4))
    load_weights(module, {"scale": torch.tensor(3.0), "none": torch.empty(0, 4)})
    assert module.state_dict()["scale"] == 3


def test_buffers_may_be_infinite_unless_they_are_trained():
    outer, inner = nn.Module(), nn.Module()
    outer.inner = inner
    inner.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1))
    load_weights(outer, outer.state_dict())
    inner.trained_buffers = ("mask",)
    with pytest.raises(ValueError, match="mask are not finite"):
        load_weights(outer, outer.state_dict())


@pytest.mark.parametrize("name", ["adam", "fused_adam", "rmsprop", "rmsprop_per_matrix", "sgd"])
def test_the_sign_of_a_state_matters_for_counters_and_squares_only(name):
    """A weight without a dimension has states without one, which may be negative."""
    module = nn.Module()
    module.scale, module.matrix = (nn.Parameter(torch.ones(shape)) for shape in ((), (2, 3)))
    optimizer = make_optimizer(name, module, 0.1, 0.9)
    (-2 * module.scale - module.matrix.sum()).backward()
    optimizer.step()
    state = optimizer.state_dict()["state"]
    check_optimizer_state(optimizer, state)
    for index, states in state.items():
        for each, value in states.items():
            wrong = {index: states | {each: -value.abs() - 1}}
            if each == "exp_avg":
                check_optimizer_state(optimizer, wrong)
            else:
                with pytest.raises(ValueError, match=f"{each} of weight {index} is out of range"):
                    check_optimizer_state(optimizer, wrong)
