"""Shared settings of the tests: one thread, and rlgames as a person calls it."""

import os
import subprocess
import sys

import pytest
from runs import Process

from rlgames import cli

os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def rlgames(tmp_path):
    """Run `rlgames …` as a process, a fork of this one, in a directory of its own."""

    def run(*words):
        return Process(tmp_path, *words, apart=True).ended(300)

    return run


@pytest.fixture
def typed(tmp_path, monkeypatch, capfd):
    """The same within this process, which is quicker: for what ends before anything is learnt."""

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["rlgames", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return subprocess.CompletedProcess(words, ended.value.code, *capfd.readouterr())

    return run
