"""Where composing is tested, Hydra itself composes."""

import hydra
import pytest

from rlgames.config import compose

COMPOSING = ("test_conf", "test_hydra", "test_plugins")


@pytest.fixture(scope="module", autouse=True)
def _hydra(request):
    with pytest.MonkeyPatch.context() as patched:
        if request.module.__name__ in COMPOSING:
            patched.setattr(compose, "compose", hydra.compose)
        yield
