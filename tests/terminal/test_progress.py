"""The live view of a training: what it shows, in any width, and how it ends."""

import collections
import fcntl
import json
import re
import signal
import struct
import termios
from pathlib import Path

import pytest
from helpers import SMALL_SALVO, rendered
from processes import FreshTerminal, Terminal

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.callbacks import Callback
from rlgames.core.memory import peak_memory
from rlgames.terminal.progress import PlainProgress, Progress, blocks
from rlgames.training.train import train

WORDS = [*SMALL_SALVO, "log_every=40", "eval_every=100", "eval_games=20"]

VIEW = Progress(
    total=1000,
    clock=lambda: 100.0,
    begun=0.0,
    games=500,
    metric="turns",
    random=8.0,
    optimal=4.0,
    curve=[(100, 8.0), (300, 6.0)],
    latest={"time/games_per_s": 1234.5, "time/playing": 0.5, "time/learning": 0.25},
)
VIEW.on_metrics(500, {"eval/turns": 4.5})
VIEW.on_checkpoint(300, is_best=True)
VIEW.on_checkpoint(500, is_best=False)


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    """What the process of the tests takes is none of the views'."""
    monkeypatch.setattr("rlgames.terminal.progress.peak_memory", lambda: 0)


def drawn(view, width=80, **settings):
    return rendered(view, width, height=24, **settings)


def heights(columns, **fields):
    return Progress(10, games=10, **fields).heights(columns)


def test_a_curve_lies_between_random_play_and_the_optimum():
    # Nothing is known of the first tenth, and nothing has been played of the last half.
    assert VIEW.heights(10) == [0, 0, 0.5, 0.5, 0.875]
    assert heights(2, metric="score", curve=((5, 3.0), (10, 9.0))) == [0, 1]
    assert heights(1, metric="points", random=0.5, curve=((5, 0.75),)) == [0.5]
    # A value beyond the bounds stays inside.
    salvo = {"metric": "turns", "random": 8.0}
    assert heights(2, **salvo, optimal=4.0, curve=((1, 3.9),)) == [1, 1]
    assert heights(2, **salvo, curve=((1, 8.5), (10, 7.0))) == [0, 1]
    assert blocks([-1, 0, 0.5, 1], 1) == [" ▁▄█"]
    assert blocks([-1, 0, 0.5, 0.75, 1], 2) == ["   ▄█", " ▁███"]


def test_the_time_left_is_that_of_the_games_left():
    assert VIEW.seconds_left() == 100.0
    later = {"begun": 0.0, "clock": lambda: 10.0}
    assert Progress(1000, **later, games=500, first=400).seconds_left() == 50.0
    assert Progress(1000, **later).seconds_left() is None


def test_the_first_update_which_compiles_does_not_count_for_the_time_left():
    """Hours were shown at first, and minutes a moment later."""
    now = [0.0]
    view = Progress(1000, clock=lambda: now[0], begun=0.0)
    for seconds, games, left in ((40.0, 10, None), (42.0, 20, None), (50.0, 60, 188.0)):
        now[0] = seconds
        view.on_update(games, {})
        assert view.seconds_left() == (left and pytest.approx(left))
    view.is_interrupted = True
    text = drawn(view)
    assert "left" not in text
    assert ", stopped" in text


def test_the_live_view_shows_everything():
    text = drawn(VIEW, color_system=None)
    for told in (
        *("50%", "1:40, 1:40 left", "500 of 1,000 games", "1,234 games/s", "playing 50%"),
        *("random 8", "optimum 4", "◀ 4.5", "after 500 games: turns 4.5", "the best after 300"),
    ):
        assert told in text


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_is_too_long_and_no_figure_is_lost(width):
    text = drawn(VIEW, width, color_system=None)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for figure in ("50%", "1:40", "4.5", "8", "1,234"):
        assert figure in text


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}])
def test_other_terminals_get_plain_lines(settings, tmp_path):
    terminal = FreshTerminal(tmp_path, "train", *WORDS, "games=200", "out=run", **settings)
    assert terminal.ended() == 0
    assert "training in run" in terminal.shown
    assert "━" not in terminal.shown
    assert "\x1b[?25l" not in terminal.shown


def test_color_is_not_needed():
    colors = r"\x1b\[[0-9;]*(?:[349][0-8])[0-9;]*m"
    assert re.search(colors, drawn(VIEW, color_system="standard"))
    assert not re.search(colors, drawn(VIEW, color_system="standard", no_color=True))
    assert drawn(Progress(10), color_system=None).strip().startswith("0%")


def test_the_last_frame_says_that_the_run_is_done_and_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Path("outputs/a\x1brun")
    run.mkdir(parents=True)
    (run / "metrics.jsonl").touch()
    viewer = Progress(20)
    viewer.on_run_start(0, run)
    viewer.on_metrics(20, {})
    viewer.on_phase("evaluating")
    assert "20 games, evaluating, in outputs/a\\x1brun" in drawn(viewer, color_system=None)
    viewer.on_run_end(run)
    text = drawn(viewer, color_system=None)
    assert "20 games, done, in outputs/a\\x1brun" in text
    assert "evaluating" not in text


def test_a_resumed_run_shows_the_curve_from_its_beginning(tmp_path):
    lines = ['{"games": 5, "eval/turns": 9.0}', '{"games": 10, "eval/turns": 8.0}']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    viewer = Progress(20)
    viewer.on_run_start(10, tmp_path)
    viewer.on_references("turns", None, None)
    assert viewer.curve == [(5, 9.0), (10, 8.0)]
    assert viewer.first == 10


def test_a_plain_line_tells_what_is_new(capsys):
    lines = PlainProgress(100)
    lines.on_metrics(10, {"train/turns": 9.0, "time/games_per_s": 500.0})
    lines.on_metrics(10, {"eval/turns": 8.0})
    lines.on_metrics(15, {"eval/turns": 7.5})
    lines.on_metrics(20, {"eval/turns": 7.0})
    lines.on_run_start(0, Path("outputs/run"))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "        10 of 100 games, 0:00: 500 games/s, turns 9.00, greedy turns 8.000"
    assert second == "        20 of 100 games, 0:00: greedy turns 7.000"
    assert third == "training in outputs/run"


class Told(Callback):
    """Remembers what each hook was called with."""

    def __init__(self):
        self.calls = collections.defaultdict(list)

    def __getattribute__(self, name):
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda *args, **options: self.calls[name].append((*args, *options.values()))


def test_a_callback_is_informed(tmp_path):
    told = Told()
    cfg = load_config(TrainConfig, [*WORDS, "games=200", f"out={tmp_path}/run"])
    known = train(cfg, told).references
    assert told.calls["on_references"] == [("turns", known.random, known.optimal)]
    for name in ("on_update", "on_metrics"):
        games = [count for count, *_ in told.calls[name]]
        assert games == sorted(games)
    assert {count for count, *_ in told.calls["on_update"]} == {*range(20, 201, 20)}
    assert {(100, True), (200, False)} <= {*told.calls["on_checkpoint"]}
    phases = {phase for (phase,) in told.calls["on_phase"]}
    assert {"playing", "learning", "evaluating", "saving", "solving"} <= phases
    assert told.calls["on_run_end"] == [(tmp_path / "run",)]

    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    spent = ("time/playing", "time/learning", "time/evaluating", "time/saving")
    for line in lines:
        if "time/playing" in line:
            assert 0 < sum(line.get(name, 0.0) for name in spent) <= 1
    assert all(any(name in line for line in lines) for name in spent)


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    terminal.send(signal.SIGWINCH)


@pytest.mark.slow
def test_a_resize_breaks_nothing_and_control_c_leaves_a_clean_terminal(tmp_path):
    terminal = Terminal(tmp_path, "train", *WORDS, "games=1000000", "out=run", COLUMNS="")
    terminal.wait_for("evaluated after")
    resize(terminal, 30, 20)
    begin = len(terminal.raw)
    while not re.search(r"of 1,000,000 *\r\n", terminal.raw[begin:]):
        assert terminal.read(60)
    terminal.send(signal.SIGINT)
    assert terminal.ended() == 130
    assert "rlgames: interrupted" in terminal.shown
    assert "Traceback" not in terminal.shown
    text = terminal.raw[begin:]
    assert text.rindex("\x1b[?25h") > text.rfind("\x1b[?25l")  # the cursor is seen again


def test_a_large_run_says_how_much_memory_it_takes(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("rlgames.terminal.progress.peak_memory", lambda: 1_640_000_000)
    lines = PlainProgress(1000, clock=lambda: 1.0)
    lines.on_run_start(0, tmp_path)
    for games in (200, 400):
        lines.on_metrics(games, {"eval/turns": 7.0})
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("       200 of 1,000 games, 0:00, 1.6 GB of memory: ")
    assert second.startswith("       400 of 1,000 games, 0:0")
    assert "memory" not in second
    assert peak_memory() > 50_000_000


def test_an_update_prints_a_line_if_no_evaluation_has_for_seconds(capsys, tmp_path):
    seconds = 5.0
    lines = PlainProgress(1000, clock=lambda: seconds)
    lines.on_run_start(20, tmp_path)
    lines.on_update(120, {"loss": 0.5})
    seconds += 10
    metrics = {"loss": 0.25, "value_loss": 1.5, "entropy": 12.0, "lr": 0.002}
    lines.on_update(220, metrics)
    lines.on_update(320, metrics)
    _, line = capsys.readouterr().out.splitlines()
    start = "       220 of 1,000 games, 0:10, about 1:18 left: "
    assert line == start + "loss 0.25, value_loss 1.5, entropy 12"


def test_the_time_left_is_told_as_soon_as_it_means_something(capsys, tmp_path):
    now = [0.0]
    lines = PlainProgress(1000, clock=lambda: now[0])
    lines.on_run_start(0, tmp_path)
    for second in (8, 10, 13, 18, 23):  # the first update compiles
        now[0] = second
        lines.on_update(10 * second, {"loss": 0.5})
    _, late, estimate = capsys.readouterr().out.splitlines()
    assert late == "        80 of 1,000 games, 0:08: loss 0.5"
    assert estimate == "       130 of 1,000 games, 0:13, about 1:27 left: loss 0.5"
