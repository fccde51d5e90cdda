"""Configs are composed by Hydra itself."""

import hydra
import pytest

from rlgames.config import compose


@pytest.fixture(scope="module", autouse=True)
def _hydra():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compose, "compose", hydra.compose)
        yield
