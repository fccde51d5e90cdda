"""Shared settings of the tests: one thread, and rlgames as a person calls it."""

import os
import subprocess
import sys

import pytest

os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def rlgames(tmp_path):
    """Run `rlgames …` as a process in a directory of its own."""

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "rlgames", *words],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
