"""Which of a test's parameters the quick tests take."""

import pytest


def quick(values, *chosen):
    """All values as parameters; those that are not chosen are slow."""
    return [one if one in chosen else pytest.param(one, marks=pytest.mark.slow) for one in values]
