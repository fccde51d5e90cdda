"""Fractions of the time: every moment counts once, in the phase and the line it belongs to."""

import time
from types import SimpleNamespace

import pytest
from helpers import resume_run
from numba.core.event import trigger_event

import rlgames
from rlgames.core.compiling import clock
from rlgames.runs.files import read_metrics
from rlgames.training.progress import PHASES, LogLine


def fractions(metrics):
    return {phase: metrics[f"time/{phase}"] for phase in PHASES}


def test_a_phase_inside_another_counts_once():
    metrics = LogLine()
    with metrics.timed("evaluating"), metrics.timed("saving"):
        time.sleep(0.05)
    line = fractions(metrics.close())
    assert line["saving"] == pytest.approx(1, abs=0.2)
    assert sum(line.values()) <= 1


def test_time_of_compilation_is_left_out_of_the_speed():
    def kernel():
        """Nothing."""

    metrics, dispatcher = LogLine(), SimpleNamespace(py_func=kernel)
    with metrics.timed("playing"):
        time.sleep(0.02)
        with trigger_event("numba:compile", {"dispatcher": dispatcher}):
            time.sleep(0.2)
            during = clock()
        assert clock() - during < 0.1
    metrics.num_games = 10
    line = metrics.close()
    assert 100 < line["time/games_per_s"] <= 500
    assert 0.8 < line["time/playing"] <= 1


def test_every_line_counts_moves_updates_and_seconds_also_after_a_resume(tmp_path):
    words = ["game=salvo", "board=4", "ships=[4]", "shots=2", "experiment=null", "games=32"]
    sizes = ["batch=16", "log_every=16", "eval_games=4", "policy.layers=[4]", "solve_seconds=0"]
    run = rlgames.train([*words, *sizes, f"out={tmp_path / 'run'}"])
    resume_run(run, "games=64")
    lines = [line for line in read_metrics(run / "metrics.jsonl") if "train/turns" in line]
    moves = 0.0
    for number, line in enumerate(lines, 1):
        moves += 16 * line["train/turns"]  # a turn of Salvo is a move
        assert (line["games"], line["time/updates"]) == (16 * number, number)
        assert line["time/moves"] == pytest.approx(moves)
    assert len(lines) == 4
    seconds = [line["time/seconds"] for line in lines]
    assert seconds == sorted(seconds)


def test_fractions_add_up_after_a_resume():
    """The line that a checkpoint interrupts has the time of both processes."""
    first, second = LogLine(), LogLine()
    with first.timed("playing"):
        time.sleep(0.06)
    second.load_state_dict(first.state_dict())
    with second.timed("learning"):
        time.sleep(0.06)
    line = fractions(second.close())
    assert line["playing"] == pytest.approx(0.5, abs=0.2)
    assert line["learning"] == pytest.approx(0.5, abs=0.2)
    assert 0.9 < sum(line.values()) <= 1
