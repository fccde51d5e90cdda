"""What is printed: narrow, plain, piped, as JSON, in one line; and evaluations of few games."""

import json
import math
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from helpers import SMALL_TRAINING, read_result
from markers import one_in
from processes import Process, Terminal

import rlgames as package
from rlgames.commands import app, arena
from rlgames.config.commands import ArenaConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.evaluation.elo import Arena
from rlgames.evaluation.estimates import Estimate

EVAL = ["eval", "player=random", "game=2048", "board=2", "games=20"]


def started(folder, *words, **settings):
    environment = {"LANG": "C.UTF-8"} | settings.pop("env", {})
    return subprocess.run(
        [sys.executable, "-m", "rlgames", *words],
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        timeout=120,
        **settings,
    )


def at_a_terminal(folder, *words, **environment):
    """What a pseudo-terminal is shown, without lines that are erased."""
    terminal = Terminal(folder, *words, **environment)
    assert terminal.ended() == 0
    return re.sub(r"\r\x1b\[Krlgames: [^\r\n]*(?=\r\x1b\[K)", "", terminal.shown).replace(
        "\r\x1b[K", ""
    )


def test_twenty_columns_lose_no_value(typed, tmp_path):
    shown = at_a_terminal(tmp_path, *EVAL, COLUMNS="20")
    title, *table = shown.rpartition("\x1b[2K")[2].splitlines()[:-1]  # after a bar, if it was slow
    wide = typed(*EVAL).stdout.splitlines()
    assert title == wide[0]
    assert max(map(len, table)) <= 20
    words = " ".join(table).split()
    assert all(word in words for line in wide[1:-1] for word in line.split() if "─" not in word)


def test_a_dumb_terminal_and_a_pipe_are_sent_no_control_codes(typed, tmp_path):
    words = ["train", *SMALL_TRAINING, "solve_seconds=0"]
    assert "\x1b" not in at_a_terminal(tmp_path, *words, TERM="dumb")
    done = typed(*words)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


def test_no_color_is_heeded(tmp_path):
    words = ["train", *SMALL_TRAINING, "solve_seconds=0"]
    shown = at_a_terminal(tmp_path, *words, TERM="xterm", NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?(?:3[0-9]|4[0-9]|9[0-7])[0-9;]*m", shown)


@pytest.mark.slow
def test_an_ascii_locale(tmp_path):
    setting = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = started(tmp_path, *EVAL, "games=2000", env=setting, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b" +- " in done.stdout
    assert done.stdout.isascii()
    assert done.stderr == b""


def into_nothing(folder, *words):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return started(folder, *words, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)


def close_output():
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115


def test_a_closed_pipe_ends_quietly_and_training_continues(tmp_path):
    words = ["train", *SMALL_TRAINING, "solve_seconds=0", "out=run"]
    process = Process(tmp_path, *words, prepare=close_output)
    assert process.wait() == (0, "")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "done"


def fill_output():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115


def test_training_continues_where_standard_output_is_full(tmp_path):
    words = ["train", *SMALL_TRAINING, "solve_seconds=0", "out=run"]
    code, said = Process(tmp_path, *words, prepare=fill_output).wait()
    assert (code, said.strip()) == (
        0,
        "rlgames: standard output: No space left on device; the work continues",
    )
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("words", ["--help", "eval nothing format=json"])
def test_a_closed_pipe_ends_other_commands_quietly(words, tmp_path):
    assert into_nothing(tmp_path, *words.split()).stderr == b""


def test_standard_output_that_is_full_or_closed(tmp_path):
    with open("/dev/full", "w") as full:
        done = started(tmp_path, "--help", stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1
    line = f"{sys.executable} -m rlgames train --help >&-"
    assert subprocess.run(line, shell=True, cwd=tmp_path, timeout=60).returncode == 0


@pytest.mark.parametrize("command", ["eval", "analyze", "arena", "solve", "slove"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("wrong", "mend"), 2),
        (OSError(5, "Input/output error"), 3),
        (FileNotFoundError(2, "No such file", "x"), 3),
        (KeyboardInterrupt(), 130),
        (EOFError("the input ended"), 2),
        (RuntimeError("two\nlines"), 3),
        (MemoryError(), 3),
        (ZeroDivisionError("division by zero"), 3),
    ],
)
def test_json_parses_when_a_command_fails(command, error, code, typed, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(app, "load_command", lambda _: SimpleNamespace(run=fail))
    done = typed(command, "format=json")
    assert done.returncode == (code if command != "slove" else 2)
    assert set(json.loads(done.stdout)) == {"error", "hint"}
    assert done.stderr == ""


def test_what_fails_because_of_an_interrupt_is_one(typed, monkeypatch):
    def torn(*_):
        try:
            raise KeyboardInterrupt
        finally:
            raise AttributeError("torn")

    monkeypatch.setattr(app, "load_command", lambda _: SimpleNamespace(run=torn))
    done = typed("eval", "player=random")
    assert (done.returncode, done.stderr) == (130, "rlgames: interrupted\n")


WRONG_WORDS = [
    *("eval player=randm game=tictactoe", "eval player=random game=tictactoe games=0"),
    *("eval player=human game=tictactoe games=2", "arena random human game=tictactoe"),
    *("eval nowhere", "arena random", "solve gam=2048", "solve game=salvo board=0"),
    *("train lr=0", "play game=tictactoe"),
]


@pytest.mark.parametrize("words", one_in(3, WRONG_WORDS))
@pytest.mark.parametrize("wish", ["format=json", "format='json'"])
def test_json_parses_when_the_words_are_wrong(words, wish, typed):
    done = typed(*words.split(), wish)
    assert done.returncode == 2
    assert set(json.loads(done.stdout)) == {"error", "hint"}
    assert done.stderr == ""


def test_the_last_format_counts(typed):
    assert json.loads(typed(*EVAL, "format=table", "format=json").stdout)
    assert "random play  " in typed(*EVAL, "format=json", "format=table").stdout


@pytest.mark.parametrize("games", [2, 3])
def test_an_evaluation_of_two_games_or_three_has_finite_intervals_or_none(games, typed):
    words = ["eval", "game=tictactoe", f"games={games}"]
    for player in ("random", "exact"):
        report = json.loads(typed(*words, f"player={player}", "format=json").stdout)
        for part in (report["win"], report["draw"], report["loss"], *report["seats"][0].values()):
            low, high = part["ci95"]
            assert 0 <= low <= part["rate"] <= high <= 1
        assert report["moves"]["ci95"] is None
    assert "± –" in typed(*words, "player=random").stdout


def test_everything_won_is_no_certainty(typed):
    words = ["eval", "player=exact", "game=connect4", "rows=4", "columns=4", "line=2", "games=20"]
    report = json.loads(typed(*words, "format=json").stdout)
    assert report["seats"][0]["win"]["rate"] == 1
    low, high = report["seats"][0]["win"]["ci95"]
    assert 0 < low < 1 == high
    report = json.loads(typed("arena", "exact", "random", *words[2:], "format=json").stdout)
    for player in report["players"]:
        assert all(map(math.isfinite, (player["elo"], *player["ci95"])))


def test_runs_that_lack_files_are_compared_or_named(typed, tmp_path):
    package.train([*SMALL_TRAINING, f"out={tmp_path}/whole"])
    package.train([*SMALL_TRAINING, "seed=1", f"out={tmp_path}/bare"])
    for name in ("metrics.jsonl", "config.yaml", "run.json", "train.log"):
        (tmp_path / "bare" / name).unlink()
    done = typed("arena", "whole", "bare", "random", "games=4", "format=json")
    assert [player["name"] for player in json.loads(done.stdout)["players"]][1] == "bare"
    best = tmp_path / "bare" / "checkpoints" / "best.safetensors"
    best.write_bytes(best.read_bytes()[:100])
    for broken in ("bare", "whole/pictures", "nowhere"):
        done = typed("arena", "whole", broken, "games=4", "format=json")
        assert done.returncode == 2
        assert broken in json.loads(done.stdout)["error"]


def test_nobody_meets_themselves_in_an_arena(typed, tmp_path):
    (tmp_path / "run").mkdir()
    for who in (["random", "random"], ["run", "random", "run/"], ["./run", "run"]):
        done = typed("arena", *who, "game=tictactoe")
        assert done.returncode == 2
        assert "named twice" in done.stderr


def test_a_report_replaces_only_one_that_answers_the_same_question(typed, tmp_path):
    run = package.train([*SMALL_TRAINING, f"out={tmp_path}/run"])
    kept = run / "reports/eval_random.json"
    for words in (["games=2"], [], ["games=3"], ["opponent=win_or_block"], ["name=mine"]):
        assert typed("eval", "run", *words).returncode == 0
    of_run = {"train_best", "train_final", "mine"}
    names = {"eval_random", "eval_random_games-2", "eval_random_games-3", "eval_win_or_block"}
    assert {path.stem for path in kept.parent.iterdir()} == names | of_run
    assert read_result(run, "eval_random")["games"] == 2000
    assert read_result(run, "mine") | {"seconds": 0, "moves_per_s": 0} == (
        read_result(run, "eval_random") | {"seconds": 0, "moves_per_s": 0}
    )
    # A name that two questions share gets a number.
    other = json.loads(kept.read_text())
    kept.write_text(json.dumps(other | {"config": other["config"] | {"seed": 7}}))
    assert typed("eval", "run").returncode == 0
    assert read_result(run, "eval_random_2")["seed"] == 0
    assert typed("eval", "run", "name=train_best").returncode == 2
    assert "is the report of a training" in typed("eval", "run", "name=train_best").stderr
    assert "is not a name" in typed("eval", "run", "name=../mine").stderr
    kept = run / "reports/mine.json"
    kept.unlink()
    kept.mkdir()
    done = typed("eval", "run", "name=mine", "format=json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["games"] == 2000
    assert "was not written" in done.stderr


def test_a_seat_means_nothing_where_one_plays_alone(typed):
    done = typed("play", "game=2048", "seat=2")
    assert done.returncode == 2
    assert "one-player game" in done.stderr


EVIL = "\x1b[31mred\x07[bold]x\u202e:smile:\n2"


def test_what_is_printed_controls_no_terminal(typed, tmp_path, capfd):
    (tmp_path / EVIL).mkdir()
    (tmp_path / EVIL / "checkpoints").mkdir()
    (tmp_path / EVIL / "checkpoints" / "best.safetensors").write_text("nothing")
    for words in (["eval", EVIL], ["arena", EVIL, "random"], ["solve", f"game={EVIL}"], [EVIL]):
        done = typed(*words)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert not set("\x1b\x07\u202e") & set(done.stdout + done.stderr)
    run = package.train([*SMALL_TRAINING, f"out={tmp_path}/run"])
    run.rename(tmp_path / "x[bold]:smile:\x1b[31m")
    done = typed("eval", "x[bold]:smile:\x1b[31m", "games=4")
    assert r"x[bold]:smile:\x1b[31m against random" in done.stdout
    assert "\x1b" not in done.stdout
    arena.show(tournament(["[red]a\x1b[0m", "b"]))
    assert r"[red]a\x1b[0m" in capfd.readouterr().out


def test_printable():
    assert printable("a é 漢 🎲 [x]") == "a é 漢 🎲 [x]"
    assert printable("\x1b\n\u202e\udcff\x9b") == r"\x1b\n\u202e\udcff\x9b"


def tournament(names):
    """A result in which every game is drawn, and the players that come later have more Elo."""
    points = [[None if row == column else 0.5 for column in names] for row in names]
    elo = [
        Estimate(10.0 * number, (10.0 * number - 5, 10.0 * number + 5), 4)
        for number in range(len(names))
    ]
    cfg = load_config(ArenaConfig, ["game=tictactoe", "games=4"])
    return arena.Result(cfg, names, [{} for _ in names], Arena({}, points, elo))


def test_an_arena_of_many_shows_the_ranking_whole_and_the_pairs_where_they_fit(monkeypatch, capsys):
    result = tournament([f"player {number}" for number in range(20)])
    arena.show(result)
    whole = capsys.readouterr().out
    assert whole.count("50.0%") == 20 + 20 * 19
    monkeypatch.setattr("rlgames.terminal.tables.terminal_width", lambda: 80)
    arena.show(result)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[2] for line in lines[4:24]] == [str(n) for n in range(19, -1, -1)]
    assert lines[-1].startswith("the points of each pair need a wider terminal")
