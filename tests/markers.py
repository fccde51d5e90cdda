"""Which of a test's parameters the quick tests take, and the devices that are here."""

from collections.abc import Iterable
from typing import Any

import pytest

from rlgames.core.devices import available_devices

ACCELERATOR = available_devices()[0]
"""The device that tests for accelerators run on; "cpu" without any."""

DEVICES = ["cpu", *([] if ACCELERATOR == "cpu" else [pytest.param(ACCELERATOR, id="accelerator")])]


def quick(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """All values as parameters; those that are not chosen are slow."""
    return [value if value in chosen else slow(value) for value in values]


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """All values as parameters, of which one in `step` is quick and the rest are slow."""
    return [slow(value) if number % step else value for number, value in enumerate(values)]


def slow(value: Any) -> Any:
    """A value, or a tuple of one for each parameter, that only the slow tests take."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)
