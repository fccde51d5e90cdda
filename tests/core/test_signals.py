"""Ctrl-C while a library is in a long call, when Python runs no handler of signals."""

import signal
import subprocess
import sys
import time

import pytest

from rlgames.core.signals import Interrupted, Interrupts

CODE = """
import sys, time
import numpy as np
from rlgames.core import signals

signals.PATIENCE_SECONDS = 0.2

def call():
    a = np.random.default_rng(0).random((4000, 4000))
    print("begun", flush=True)
    {call}

report = lambda line: print(line, flush=True)
try:
    with signals.exit_on_second_interrupt(report), signals.Interrupts() as interrupts:
        with interrupts.shielded():
            call()
except KeyboardInterrupt:
    print("stopped after the call", flush=True)
    signals.exit_without_cleanup(130)
"""


def started(call):
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(call=call)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize(
    ("call", "code", "last"),
    [
        ("np.linalg.svd(a)", 130, "ended by a second Ctrl-C"),
        ("time.sleep(60)", 130, "stopped after the call"),
    ],
)
def test_a_second_ctrl_c_ends_a_call_that_does_not_return(call, code, last):
    process = started(call)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopping; a second Ctrl-C ends this at once\n"
    process.send_signal(signal.SIGINT)
    lines = ["", *process.stdout.read().splitlines()]
    assert (process.wait(), lines[-1]) == (code, last)
    assert time.monotonic() - begin < 10


def test_one_ctrl_c_waits_for_the_end_of_the_call():
    process = started("time.sleep(0.6)")
    process.send_signal(signal.SIGINT)
    lines = process.stdout.read().splitlines()
    assert lines == ["stopping; a second Ctrl-C ends this at once", "stopped after the call"]
    assert process.wait() == 130


def test_other_signals_count_for_nothing():
    process = started("time.sleep(0.6)")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.read().splitlines() == ["stopped after the call"]
    assert process.wait() == 130


def press_ctrl_c_twice(interrupts):
    with interrupts.shielded():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_second_ctrl_c_is_not_forgotten_when_another_signal_follows():
    """What the second Ctrl-C has torn is not saved because of a later signal."""
    with Interrupts() as interrupts:
        with pytest.raises(Interrupted):
            press_ctrl_c_twice(interrupts)
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.is_forced
