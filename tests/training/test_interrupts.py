"""A run whose process is killed, is sent a signal, or cannot write.

Each run is a forked process that does what `rlgames …` does, and receives real signals.
"""

import importlib
import os
import resource
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import SMALL_SALVO, resumable
from markers import quick, slow
from processes import Process, Terminal, run
from run_files import final_state, metrics_without_times, same, tensorboard_events
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rlgames
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.learners.ppo import Ppo
from rlgames.runs import storage
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.runs.log import RunLog
from rlgames.training.evaluator import Evaluator
from rlgames.training.image_callback import ImageCallback
from rlgames.training.loop import TrainingLoop
from rlgames.training.sources import GameSource

pytestmark = pytest.mark.usefixtures("shown_games")

WORDS = [*SMALL_SALVO, "log_every=40", "save_every=60", "eval_every=100", "solve_seconds=0"]


@pytest.fixture(scope="module")
def whole(shown_games, tmp_path_factory):
    """A run that never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    code, output = run(folder, "train", *WORDS, "games=600", "out=run")
    assert code == 0, output
    return folder / "run"


def latest(folder):
    return Checkpoint.read(folder / "run" / "checkpoints" / "latest.safetensors")


def ends_as(whole, folder, **more):
    """Assert that the run in this folder ends like the uninterrupted one when it is resumed."""
    code, output = run(folder, "resume", "run", **more)
    assert code == 0, output
    same(final_state(whole), final_state(folder / "run"))
    assert metrics_without_times(whole) == metrics_without_times(folder / "run")
    configs = [(path / "config.yaml").read_text() for path in (whole, folder / "run")]
    assert configs[0] == configs[1]
    left = sorted(path.name for path in (folder / "run" / "checkpoints").iterdir())
    assert left == ["best.safetensors", "latest.safetensors"]
    shown_once(folder / "run")
    assert tensorboard_events(whole) == tensorboard_events(folder / "run")


def shown_once(run):
    """Assert that TensorBoard shows each step of a scalar once, the same ones as metrics.jsonl."""
    events = EventAccumulator(str(run), size_guidance={"scalars": 0}).Reload()
    viewer = plugin_event_accumulator.EventAccumulator(str(run))
    viewer.Reload()
    lines = read_metrics(run / "metrics.jsonl")
    for name in ("train/loss", "eval/turns"):
        for shown in (events.Scalars(name), viewer.Tensors(name)):
            steps = [event.step for event in shown]
            assert steps == [line["games"] for line in lines if name in line]


def killed_at(stage, count):
    """A function that makes the process kill itself at a stage of its count-th save."""
    saves, replace_file = 0, storage.replace_file

    @contextmanager
    def saved(directory, name):
        nonlocal saves
        saves += "safetensors" in name
        is_it = saves == count and "safetensors" in name
        with replace_file(directory, name) as file:
            yield file
            if is_it and stage == "half written":
                file.truncate(file.tell() // 2)
                os.kill(os.getpid(), signal.SIGKILL)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: setattr(storage, "replace_file", saved)


@pytest.mark.parametrize("stage", quick(["half written", "after it is renamed"], "half written"))
def test_killed_while_saving(stage, whole, tmp_path):
    """At all other moments: tests/runs/test_power_loss.py."""
    words = ("train", *WORDS, "games=600", "out=run")
    code, output = run(tmp_path, *words, prepare=killed_at(stage, 7))
    assert code == -signal.SIGKILL, output
    assert latest(tmp_path).games > 0
    ends_as(whole, tmp_path)


def signalled(place, name, number, count=3, times=1):
    """A function that makes the process receive a signal at the count-th call of a method."""
    calls, call = 0, getattr(place, name)

    def there(*args, **kwargs):
        nonlocal calls
        calls += 1
        done = call(*args, **kwargs)
        if calls == count:
            for _ in range(times):
                signal.raise_signal(number)
        return done

    return lambda: setattr(place, name, there)


PLACES = {
    "playing": (GameSource, "prepare"),
    "learning": (Ppo, "update"),
    "evaluating": (Evaluator, "evaluate"),
    "logging": (RunLog, "on_metrics"),
    "saving": (Checkpoint, "write"),
    "drawing": (ImageCallback, "on_evaluation_end"),
}


@pytest.mark.parametrize(
    ("place", "number", "count"),
    [
        *(pytest.param(place, signal.SIGTERM, 3, marks=pytest.mark.slow) for place in PLACES),
        ("playing", signal.SIGINT, 5),
        slow(("learning", signal.SIGHUP, 3)),
        ("saving", signal.SIGTERM, 2),
        slow(("drawing", signal.SIGTERM, 1)),
        slow(("evaluating", signal.SIGTERM, 7)),
        slow(("playing", signal.SIGUSR1, 2)),
        slow(("learning", signal.SIGUSR2, 4)),
        slow(("saving", signal.SIGXCPU, 3)),
    ],
)
def test_stopped_by_a_signal(place, number, count, whole, tmp_path):
    prepare = signalled(*PLACES[place], number, count)
    words = ("train", *WORDS, "games=600", "out=run")
    code, output = run(tmp_path, *words, prepare=prepare)
    assert code == 128 + number, output
    last = output.splitlines()[-1]
    assert "saved after" in last
    assert last.endswith("resume with: rlgames resume run")
    assert "Traceback" not in output
    played = latest(tmp_path).games
    assert f"after {played:,} games" in last
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert max((line["games"] for line in lines), default=0) <= played
    ends_as(whole, tmp_path)


@pytest.mark.parametrize("times", quick([1, 2], 1))
def test_stopped_while_the_results_are_written(times, whole, tmp_path):
    prepare = signalled(RunLog, "finish", signal.SIGINT, count=1, times=times)
    code, output = run(tmp_path, "train", *WORDS, "games=600", "out=run", prepare=prepare)
    assert code == 130, output
    last = output.splitlines()[-1]
    assert ("after the run was finished" if times == 1 else "stopped at once") in last
    assert (read_run(tmp_path / "run")["status"] == "done") == (times == 1)
    ends_as(whole, tmp_path)
    assert read_run(tmp_path / "run")["status"] == "done"


def test_a_second_ctrl_c_stops_at_once(whole, tmp_path):
    prepare = signalled(Ppo, "update", signal.SIGINT, count=10, times=2)
    words = ("train", *WORDS, "games=600", "out=run")
    code, output = run(tmp_path, *words, prepare=prepare)
    assert code == 130, output
    assert "stopped at once" in output
    assert latest(tmp_path).games == 180  # what was due to be saved, not what was played
    ends_as(whole, tmp_path)


FURTHER = [
    [signal.SIGTERM] * 2,  # from a batch system and from torchrun
    [signal.SIGXCPU] * 3,  # one each second
    [signal.SIGUSR2, signal.SIGINT, signal.SIGTERM],  # LSF
    [signal.SIGINT, signal.SIGHUP, signal.SIGCONT],  # a terminal
]


def save_during(numbers, interrupts):
    with interrupts.shielded():
        for number in numbers:
            signal.raise_signal(number)
        assert interrupts.pending == numbers[0]


@pytest.mark.parametrize("numbers", FURTHER)
def test_further_signals_do_not_tear_what_the_first_one_saves(numbers):
    with Interrupts() as interrupts, pytest.raises(Interrupted) as caught:
        save_during(numbers, interrupts)
    assert (caught.value.number, interrupts.is_forced) == (numbers[0], False)


def test_a_batch_signal_reaches_the_host_program_after_saving(tmp_path, monkeypatch):
    """As submitit, whose handler requeues the job and exits: the run is saved before."""
    monkeypatch.chdir(tmp_path)
    seen = []

    def requeue(number, _):
        seen.append((number, latest(tmp_path).games))
        raise SystemExit(1)

    monkeypatch.setattr(Ppo, "update", Ppo.update)
    signalled(Ppo, "update", signal.SIGUSR2, count=4)()
    previous = signal.signal(signal.SIGUSR2, requeue)
    try:
        with pytest.raises(SystemExit):
            rlgames.train([*WORDS, "games=600", "out=run"])
        assert signal.getsignal(signal.SIGUSR2) is requeue
    finally:
        signal.signal(signal.SIGUSR2, previous)
    assert seen == [(signal.SIGUSR2, 80)]
    assert read_run(tmp_path / "run")["status"] == "interrupted"


def test_an_ignored_batch_signal_stays_ignored():
    previous = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGUSR1)
        assert interrupts.pending is None
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_terminal_that_closes_stops_the_run_which_is_saved(tmp_path):
    """The kernel and the shell may each send SIGHUP, and nothing more can be printed."""
    terminal = Terminal(tmp_path, "train", *WORDS, "games=1000000", "out=run")
    deadline = time.monotonic() + 60
    while not (tmp_path / "run/checkpoints/latest.safetensors").exists():
        assert time.monotonic() < deadline
        terminal.wait_for("playing", "learning", "games", seconds=10)
    os.close(terminal.file)
    os.kill(terminal.pid, signal.SIGHUP)
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    assert read_run(tmp_path / "run")["status"] == "interrupted"


def at_play(count, what):
    """A function that makes something happen before the count-th batch is collected."""
    calls, collect = 0, GameSource.prepare

    def there(*args):
        nonlocal calls
        calls += 1
        if calls == count:
            what()
        return collect(*args)

    return lambda: setattr(GameSource, "prepare", there)


def small_files(max_bytes):
    """Limit the size of files, which then fail as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))


CANNOT_WRITE = {
    "File too large": lambda: small_files(4_000),
    "No such file": lambda: shutil.rmtree("run"),
}


@pytest.mark.parametrize("why", CANNOT_WRITE)
def test_cannot_save(why, whole, tmp_path):
    words = ("train", *WORDS, "games=600", "out=run")
    code, output = run(tmp_path, *words, prepare=at_play(12, CANNOT_WRITE[why]))
    assert code == 3, output
    assert "Traceback" not in output
    last = [line for line in output.splitlines() if not line.startswith(" ")][-1]
    assert why in last
    if why == "No such file":
        assert not (tmp_path / "run").exists()
        return
    assert "rlgames resume run" in last, output
    assert latest(tmp_path).games > 0
    ends_as(whole, tmp_path)


def test_trains_on_when_pictures_cannot_be_written(whole, tmp_path):
    prepare = at_play(2, lambda: Path("run/pictures").write_text("no folder"))
    code, output = run(tmp_path, "train", *WORDS, "games=600", "out=run", prepare=prepare)
    assert code == 0, output
    assert output.count("pictures failed (") == 1
    assert "run/pictures" in output
    same(final_state(whole), final_state(tmp_path / "run"))
    assert tensorboard_events(whole) == tensorboard_events(tmp_path / "run")


def test_a_run_directory_has_one_owner(whole, tmp_path):
    words = ("train", *WORDS, "games=600", "out=run")
    first = Process(tmp_path, *words, prepare=at_play(12, lambda: time.sleep(60)))
    last = tmp_path / "run/checkpoints/latest.safetensors"
    while not last.exists() or latest(tmp_path).games < 180:
        time.sleep(0.05)
    for second in (words, ("resume", "run")):
        code, output = run(tmp_path, *second)
        assert code == 2, output
        assert "another process is running in run" in output
    first.send(signal.SIGKILL)
    first.wait()
    code, output = run(tmp_path, *words)
    assert code == 2
    assert "already holds a run" in output
    assert "rlgames resume run" in output
    ends_as(whole, tmp_path)


def test_a_run_without_a_checkpoint_can_be_started_again(tmp_path):
    words = ("train", *WORDS, "games=40", "out=run")
    kill = lambda self, *names: os.kill(os.getpid(), 9)  # noqa: E731
    killing = lambda: setattr(TrainingLoop, "save_state", kill)  # noqa: E731
    assert run(tmp_path, *words, prepare=killing)[0] == -9
    code, output = run(tmp_path, "resume", "run")
    assert code == 2
    assert "there is no checkpoint at run" in output
    (tmp_path / "run/events.out.tfevents.1.host.12.0").touch()  # of another program
    code, output = run(tmp_path, *words)
    assert code == 0, output
    files = sorted((tmp_path / "run").glob("events.*"))
    assert [path.stat().st_size > 0 for path in files] == [False, True, True]
    shown_once(tmp_path / "run")


@pytest.mark.slow
def test_a_torn_line_of_metrics_is_removed(whole, tmp_path):
    words = ("train", *WORDS, "games=600", "out=run")
    run(tmp_path, *words, prepare=signalled(Ppo, "update", signal.SIGKILL, 20))
    with open(tmp_path / "run/metrics.jsonl", "a") as file:
        file.write('{"games": 400, "train/lo')
    ends_as(whole, tmp_path)


def test_a_run_is_locked_before_it_is_read(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    first = resumable(tmp_path / "run", "games=700")
    with pytest.raises(ConfigError, match="another process"):
        resumable(tmp_path / "run", "games=700")
    del first
    resumable(tmp_path / "run", "games=700")


SWALLOWING = """
import signal

try:
    signal.raise_signal(signal.SIGINT)
    while True:
        pass
except:
    pass
"""
"""A module that receives a signal while it is imported, and swallows the exception."""


def test_control_c_in_an_import_that_swallows_it_ends_the_command(tmp_path):
    (tmp_path / "swallowing.py").write_text(SWALLOWING)
    (tmp_path / "mine.py").write_text("import swallowing")
    for words, expected in (
        (["games"], "rlgames: interrupted\n"),
        (["games", "format=json"], '{"error": "interrupted", "hint": ""}\n'),
    ):
        assert run(tmp_path, *words, "plugins=[mine]") == (130, expected)


def test_a_signal_in_an_import_is_kept_for_the_next_shielded_block(tmp_path, monkeypatch):
    (tmp_path / "swallowing.py").write_text(SWALLOWING.replace("while True:\n        pass", ""))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "swallowing", raising=False)
    with Interrupts() as interrupts:
        importlib.import_module("swallowing")
        with pytest.raises(Interrupted), interrupts.shielded():
            pass
