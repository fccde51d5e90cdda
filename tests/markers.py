"""Which of a test's parameters the quick tests take."""

from collections.abc import Iterable
from typing import Any

import pytest


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
