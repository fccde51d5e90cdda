"""`rlgames serve` and interface=web as commands."""

import http.client
import io
import json
import re
import socket
import time
import urllib.parse
import urllib.request

import pytest
import segno
from helpers import SMALL_TRAINING, check_refused
from processes import served

import rlgames as package
from rlgames.commands.serve import game_page
from rlgames.config.commands import PlayConfig, ShowConfig, WatchConfig
from rlgames.config.compose import load_config
from rlgames.config.overrides import quoted
from rlgames.terminal.qr_code import show_qr_code


def get(port, path, **body):
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "mine"
    return package.train([*SMALL_TRAINING, "solve_seconds=0", f"out={directory}"])


def test_runs_are_served_until_control_c(run, tmp_path):
    words = ["serve", str(run), "connect4", "search=mcts", "search.simulations=3"]
    with served(tmp_path, *words) as (port, process):
        assert process.output()[0] == (
            f"rlgames: http://127.0.0.1:{port}/?search=mcts (Ctrl-C ends it)\n"
        )
        assert [*get(port, "/api/games")["games"]] == ["tictactoe", "connect4"]
        game = get(port, "/api/sessions", game="tictactoe", search="mcts")
        assert game["about"]["players"][:3] == ["you", "mine", "tictactoe"]
        assert {*game["about"]["strengths"]} == {"tictactoe"}
        assert game["about"]["searches"][0] == "mcts"
        assert game["seats"] == ["you", "mine"]


def test_an_answer_does_not_wait_for_the_network(run, tmp_path):
    """Every answer on a connection would take 40 ms if its body waited for a confirmation."""
    with served(tmp_path, "serve", str(run)) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        seconds = []
        for _ in range(12):
            start = time.perf_counter()
            connection.request("GET", "/api/games")
            connection.getresponse().read()
            seconds.append(time.perf_counter() - start)
        assert sorted(seconds)[3] < 0.03


def test_a_command_opens_the_page_with_a_query(tmp_path):
    words = ["play", "game=tictactoe", "interface=web", "seat=2", "opponent=random", "hints=true"]
    with served(tmp_path, *words) as (port, process):
        query = "game=tictactoe&seat=random&seat=you&hints=policy"
        assert f"http://127.0.0.1:{port}/?{query} " in process.output()[0]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["host=0.0.0.0"], "192.0.2.5"),
        (["host=0.0.0.0", "hosts=[*.hf.space,MyBox.local]"], "mybox.local"),
        (["host=::"], "192.0.2.5"),
        (["host=127.0.0.1", "hosts=[demo.app.github.dev]"], "127.0.0.1"),
        (["host=localhost"], "localhost"),
    ],
)
def test_the_address_that_is_printed_leads_to_the_page(words, shown, tmp_path, monkeypatch):
    monkeypatch.setattr("rlgames.web.app._address_in_network", lambda: "192.0.2.5")
    with served(tmp_path, "serve", "game=tictactoe", *words) as (port, process):
        assert process.output()[0] == f"rlgames: http://{shown}:{port}/ (Ctrl-C ends it)\n"


@pytest.mark.parametrize(
    ("is_terminal", "encoding", "is_shown"),
    [(True, "utf-8", True), (False, "utf-8", False), (True, "ascii", False)],
)
def test_a_terminal_shows_an_address_of_the_network_as_a_qr_code(
    is_terminal, encoding, is_shown, monkeypatch
):
    shown = io.TextIOWrapper(io.BytesIO(), encoding)
    shown.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stdout", shown)
    monkeypatch.setenv("TERM", "xterm")
    address = "http://192.0.2.5:8765/"
    show_qr_code(address)
    shown.seek(0)
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in shown.read().splitlines()]
    halves = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
    rows = [
        [halves[mark][half] for mark in line] for line in filter(None, lines) for half in (0, 1)
    ]
    code = [[*row] for row in segno.make(address, micro=False).matrix_iter(border=2)]
    assert rows[: len(code)] == (code if is_shown else [])


def test_ipv6_is_served(tmp_path):
    with served(tmp_path, "serve", "game=tictactoe", "host=::1", at="::1") as (port, process):
        assert f"http://[::1]:{port}/ " in process.output()[0]


def opened(schema, run, *words):
    """The table that a command's page has, and the query that it is opened with."""
    run_words = [] if run is None else [f"run={quoted(str(run))}"]
    return game_page(load_config(schema, [*run_words, *words]))


def test_play_opens_a_game_against_a_run(run):
    _, query = opened(PlayConfig, run, "seat=2", "hints=true", "search=mcts")
    assert query == {
        "game": "tictactoe", "seat": ["mine", "you"], "search": "mcts", "hints": "search",
    }  # fmt: skip
    _, query = opened(PlayConfig, None, "game=tictactoe", "opponent=win_or_block")
    assert query["seat"] == ["you", "win_or_block"]
    _, query = opened(PlayConfig, None, "game=salvo_duel", "fleet=A1-A3 C1-C2 E1-E2")
    assert query["seat"] == ["you", "random"]
    assert query["fleet"] == "A1-A3 C1-C2 E1-E2"
    assert opened(PlayConfig, None, "game=2048")[1]["seat"] == ["you"]


def test_watch_opens_a_game_of_two_players(run):
    assert opened(WatchConfig, run, "opponent=random")[1]["seat"] == ["mine", "random"]
    assert opened(WatchConfig, run)[1]["seat"] == ["mine", "mine"]


def test_show_opens_a_position(run, tmp_path):
    (tmp_path / "board").write_text("X . .\n. O .\n. . .\n")
    for words in ("state=X . . / . O . / . . .", f"state=@{tmp_path}/board"):
        table, query = opened(ShowConfig, run, words)
        assert query["position"] == "X . . / . O . / . . ."
        assert query["seat"] == ["you", "you"]
    assert table.advisor(query["seat"]) == "mine"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["play", "game=tictactoe", "port=8000"], "add interface=web"),
        (["watch", "player=random", "game=hex", "open=false"], "add interface=web"),
        (["play", "game=2048", "interface=web", "seat=2"], "2048 is a one-player game"),
        (["play", "game=hex", "interface=web", "opponent=exact"], "exact"),
        (["play", "game=hex", "interface=web", "record=games"], "remove record="),
        (["watch", "connect4", "interface=web", "delay=2"], "remove delay="),
        (["show", "connect4", "interface=web", "solve_seconds=2"], "remove solve_seconds="),
        (["serve", "conect4"], "no agent of this name; did you mean connect4?"),
        (["serve", "nothere"], "nothere"),
        (["serve", "checkpoint=final"], "needs a run"),
        (["serve", "host=203.0.113.7", "open=false"], "cannot listen on 203.0.113.7"),
        (["serve", "port=0"], "port"),
        (["serve", "host=203.0.113.7"], "use host=127.0.0.1"),
        (["serve", "host=127.0.0.1:80"], "use host=127.0.0.1"),
        (["serve", "hosts=[other.local:9204]"], "use hosts=[other.local]"),
        (["serve", "hosts=['https://demo.app.github.dev/']"], "use hosts=[demo.app.github.dev]"),
    ],
)
def test_what_cannot_be_served_gives_one_line(words, hint, typed):
    check_refused(typed(*words), hint)


def test_a_port_that_is_taken_gives_one_line(typed):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check_refused(typed("serve", f"port={port}", "open=false"), f"127.0.0.1:{port}")


@pytest.mark.parametrize("words", [["serve"], ["play", "connect4", "interface=web"]])
def test_without_the_extra_a_line_says_what_to_install(words, typed, monkeypatch):
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    check_refused(typed(*words), "needs starlette and uvicorn", "pip install 'rlgames-lab[web]'")
