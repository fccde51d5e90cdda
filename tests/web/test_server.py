"""`rlgames serve` as a command."""

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


@pytest.mark.parametrize(
    ("words", "hint"),
    [
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


def test_without_the_extra_a_line_says_what_to_install(typed, monkeypatch):
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    check_refused(typed("serve"), "needs starlette and uvicorn", "pip install 'rlgames-lab[web]'")
