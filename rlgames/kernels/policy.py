"""Policies as kernels take them: what a kind of policy gives so that kernels can play and search.

mlp.py implements these functions for networks, and value_search.py for n-tuples, by
`rules.implement`. All have the fields num_inputs, the numbers that compute_outputs reads of a
position, and has_value, whether the last output is the value of the position.
"""

from __future__ import annotations

from typing import Any

from rlgames.kernels.rules import Position, found_by_type
from rlgames.kernels.words import Floats


@found_by_type
def read_position(
    policy: Any, rules: Any, position: Position, seat: int, inputs: Floats, outputs: Floats
) -> None:
    """Write the inputs of compute_outputs for a position, float32 [num_inputs]; or, for a policy
    that needs none, the outputs. seat: the one to move."""


@found_by_type
def compute_outputs(policy: Any, inputs: Floats, outputs: Floats) -> None:
    """Write the scores of all actions, float32 [M, A], and a column more, if there is one, for the
    value of the position to the seat to move."""
