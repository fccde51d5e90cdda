"""The page's interface: every game, what it refuses, and how quickly it answers."""

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers import SMALL_RULES, make_small_game, rng
from markers import quick
from starlette.testclient import TestClient

import rlgames
from rlgames.commands.serve import offered_tables
from rlgames.config.commands import ServeConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.registry import REGISTRY
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import cells_to_choose, legal_names
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.web import app

GAMES = option_names("game")
SECONDS_PER_CLICK = 0.1


PROXIES = ["demo-9205.app.github.dev", "*.hf.space", "mybox.local", "2001:db8::1"]


def page(tables, hosts=()):
    served = app.make_app(app.Page(tables, seed=1), hosts)
    return TestClient(served, base_url="http://127.0.0.1:8765")


@pytest.fixture(scope="module")
def client():
    return page(offered_tables(load_config(ServeConfig, [])))


class Game:
    """A game on a page, as its script plays it."""

    def __init__(self, client, **parts):
        self.client = client
        self.view = self.post("/api/sessions", fleet="random", **parts)
        self.about, self.key = self.view["about"], self.view["id"]

    def post(self, path, **body):
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def act(self, do, **body):
        answer = self.post(f"/api/sessions/{self.key}", do=do, **body)
        if do != "hint":
            self.view = answer
        return answer

    def answered(self):
        """Wait for the other players."""
        while self.view["turn"] == "player":
            self.act("reply")
        return self.view

    def play(self, move=None):
        self.act("move", move=self.view["moves"][0]["move"] if move is None else move)
        return self.answered()


VALUING = ("2048", "breakthrough", "connect4", "gomoku", "othello", "tictactoe")
"""The games whose agents value the moves."""


@pytest.mark.parametrize("name", GAMES)
def test_every_game_is_played_taken_back_linked_and_explained(name, client):
    game = Game(client, game=name)
    start = game.answered()
    assert start["turn"] == "you"
    cells = [cell for move in start["moves"] for cell in move["cells"]]
    assert all(0 <= cell < len(start["boards"][0]["marks"]) for cell in cells)
    later = game.play()
    assert later["plies"] == len(later["log"]) >= 1
    assert later["position"] != start["position"]
    linked = Game(client, game=name, seats=later["seats"], position=later["position"])
    assert linked.view["position"] == later["position"]
    assert linked.view["moves"] == later["moves"]
    hint = game.act("hint", kind="policy")
    shares = [move["share"] for move in hint["moves"]]
    assert shares == sorted(shares, reverse=True)
    if name in VALUING:
        assert (shares[0], shares[-1] >= 0) == (1, True)
    else:
        assert 0 < sum(shares) < 1.001
    if name not in ("battleship", "salvo", "salvo_duel"):
        game.act("undo")
        assert game.view["position"] == start["position"]
        assert game.view["moves"] == start["moves"]
        assert game.view["log"] == start["log"]


@pytest.mark.parametrize("name", quick(GAMES, "tictactoe", "hex", "salvo_duel"))
def test_a_game_reaches_its_end_and_can_be_stepped_through(name):
    tables = offered_tables(load_config(ServeConfig, [f"game={name}", *SMALL_RULES.get(name, [])]))
    game = Game(page(tables), seats=["you", "random"][: make_small_game(name).spec.seats])
    game.answered()
    while game.view["turn"] == "you":
        game.play()
    assert game.view["turn"] == "over"
    assert not game.view["moves"]
    end = game.view
    assert game.act("view", ply=0)["plies"] == end["plies"]
    assert game.view["turn"] == "player"
    assert game.act("view")["boards"] == end["boards"]


def test_nothing_of_a_new_game_is_ignored(client):
    for part, value in {"fleet": "zzz", "search": "mct"}.items():
        body = {"game": "tictactoe", "seats": ["you", "you"], part: value}
        answer = client.post("/api/sessions", json=body)
        assert answer.status_code == 400
        assert part in answer.json()["error"]
    Game(client, game="tictactoe").post("/api/sessions", game="tictactoe", fleet="hand")


def test_players_take_all_seats_and_change_during_a_game(client):
    game = Game(client, game="tictactoe", seats=["random", "tictactoe"])
    game.act("reply")
    game.act("sit", seats=["random", "you"], search=None)
    assert game.view["turn"] == "you"
    assert len(game.play()["moves"]) == 6
    game.act("sit", seats=["you", "you"], search="mcts")
    assert game.view["hints"].keys() == {"policy", "search", "exact"}
    hint = game.act("hint", kind="search")
    assert sum(move["share"] for move in hint["moves"]) == pytest.approx(1, abs=0.01)


def refused_as_stale(game, **body):
    """The present position, which the refusal of an action has."""
    answer = game.client.post(f"/api/sessions/{game.key}", json=body)
    assert answer.status_code == 409, answer.text
    assert len(answer.json()["error"].splitlines()) == 1
    return answer.json()


@pytest.mark.parametrize("seats", [["you", "you"], ["you", "random"]])
def test_an_action_meant_for_an_earlier_position_gets_the_present_one(seats, client):
    game = Game(client, game="tictactoe", seats=seats)
    start = game.view
    game.play("B2")
    for body in ({"do": "move", "move": "A1"}, {"do": "undo"}, {"do": "sit", "seats": seats}):
        view = refused_as_stale(game, **body, ply=start["plies"])
        assert {name: view[name] for name in game.view} == game.view
    old = {name: game.view[name] for name in ("present", "plies")}
    game.act("undo")
    game.play("A1" if "B3" in old["present"] else "C3")
    body = {"ply": old["plies"], "present": old["present"]}  # as many moves, but others
    assert refused_as_stale(game, do="undo", **body)["log"] == game.view["log"]
    game.act("undo", ply=game.view["plies"], present=game.view["present"])


def test_a_ship_placed_elsewhere_counts(client):
    game = Game(client, game="salvo_duel")
    game.view = game.post("/api/sessions", game="salvo_duel", fleet="hand")
    game.key = game.view["id"]
    game.act("move", move="A1-A3", ply=0)
    for body in ({"do": "move", "move": "random"}, {"do": "undo"}):
        assert refused_as_stale(game, **body, ply=0)["length"] == 2
    game.act("undo", ply=game.view["plies"])


def test_exact_values_are_those_of_the_game(client):
    game = Game(client, game="tictactoe", position="X . . / . O . / . . X")
    values = {move["move"]: move["text"] for move in game.act("hint", kind="exact")["moves"]}
    assert values["B1"] == "drawn"
    assert values["A3"] == values["C1"] == "lost"


def test_ships_are_where_they_may_be(client):
    game = Game(client, game="salvo")
    hint = game.act("hint", kind="ships")
    assert "perfect play needs 5.0500 turns" in hint["summary"]
    assert 5.9 < sum(move["share"] for move in hint["moves"]) < 6.1


def test_a_fleet_is_placed_ship_by_ship(client):
    game = Game(client, game="salvo_duel")
    game.view = game.post("/api/sessions", game="salvo_duel", fleet="hand")
    game.key = game.view["id"]
    leaving = {"do": "sit", "seats": ["random", "random"]}
    assert client.post(f"/api/sessions/{game.key}", json=leaving).status_code == 400
    assert game.view["turn"] == "place"
    ends = {move["move"]: move["cells"] for move in game.view["moves"]}
    assert ends["A1-A3"] == [0, 10]
    for move in ("A1-A3", "B1-B2"):
        game.act("move", move=move)
    game.act("undo")
    assert "B1-B2" in [move["move"] for move in game.view["moves"]]
    assert "A1-A2" not in [move["move"] for move in game.view["moves"]]
    for move in ("D1-E1", "D5-E5"):
        game.act("move", move=move)
    assert game.view["turn"] == "you"
    listed = Game(client, game="salvo_duel", seats=game.view["seats"])
    listed.view = listed.post("/api/sessions", game="salvo_duel", fleet="A1-A3 D1-E1 D5-E5")
    assert listed.view["boards"][1] == game.view["boards"][1]
    board = game.view["boards"][1]
    kinds = [board["looks"][mark][0] for mark in board["marks"]]
    assert [n for n, kind in enumerate(kinds) if kind == "ship"] == [0, 3, 4, 5, 10, 23, 24]


def test_every_move_of_a_game_is_chosen_by_its_own_cells():
    for name in GAMES:
        game = make_small_game(name)
        moves, _ = collect_games(game, [Random(game)] * game.spec.seats, 2, rng(3))
        for row in range(0, len(moves), 3):
            names = legal_names(game, moves.state, row)
            cells = cells_to_choose(game, moves.state, row)
            by_name = {names[action]: tuple(each) for action, each in cells.items() if each}
            chosen = [*by_name.values()]
            assert len({*chosen}) == len(chosen)
            assert not any(a != b and b[: len(a)] == a for a in chosen for b in chosen)


def test_the_moves_so_far_are_those_of_the_game(client):
    game = Game(client, game="tictactoe", seats=["you", "you"])
    game.act("move", move="A1")
    said = client.post(f"/api/sessions/{game.key}", json={"do": "undo", "ply": "x"})
    assert said.status_code == 400
    assert [line["move"] for line in game.act("view")["log"]] == ["A1"]
    game.act("undo")
    assert [line["move"] for line in game.act("move", move="B2")["log"]] == ["B2"]


@pytest.mark.parametrize(
    ("game", "moves", "won"),
    [
        ("tictactoe", "A1 B1 A2 B2 A3", [0, 3, 6]),
        ("tictactoe", "A1 C1 B1 B2 A2 A3", [2, 4, 6]),
        ("connect4", "1 2 2 3 3 4 3 4 4 6 4", [17, 23, 29, 35]),
        ("gomoku", "A1 A2 B1 B2 C1 C2 E1 E2 F1 F2 D1", [0, 1, 2, 3, 4, 5]),
        ("hex", "G1 D1 B1 D2 B2 D3 B3 D4 B4 D5 B5 D6 B6 D7 B7", [*range(1, 49, 7)]),
        ("hex", "A1 A3 B1 B3 C1 C3 D1 D3 E1 E3 F1 F5 G1 F3 B5 G3", [*range(14, 21)]),
    ],
)
def test_what_won_is_framed(game, moves, won, client):
    playing = Game(client, game=game, seats=["you", "you"])
    for move in moves.split():
        assert playing.view["turn"] == "you"
        playing.act("move", move=move)
    assert playing.view["boards"][0]["chosen"] == won
    playing.act("undo")
    assert len(playing.act("view")["boards"][0]["chosen"]) == 1


class Wordy(KInARow):
    """A game that draws nothing: all is in its caption."""

    def boards(self, state, row, reveal=False):
        return []

    def action_cells(self, state, row):
        return None

    def caption(self, state, row):
        return " ".join(super().boards(state, row)[0][0])


def test_a_game_without_a_board_has_a_list_of_moves():
    rlgames.register("game", "wordy", lambda: Wordy(1, 5, 2, False, "wordy"))
    try:
        game = Game(
            page(offered_tables(load_config(ServeConfig, ["game=wordy"]))), seats=["you", "random"]
        )
        assert game.view["text"] == ". . . . ."
        assert game.view["boards"] == []
        assert [move["cells"] for move in game.view["moves"]] == [[]] * 5
        assert game.play()["plies"] == 2
    finally:
        REGISTRY["game"].pop("wordy")


def test_a_click_is_answered_at_once(client):
    """The median of a few clicks in every game, with the answer of an agent without search, in
    processor time, because other tests run at the same time."""
    for name in GAMES:
        game = Game(client, game=name)
        game.answered()
        game.act("hint", kind="policy")  # whatever is built once
        seconds = []
        for _ in range(3):
            if game.view["turn"] != "you":
                break
            for action in ("move", "reply"):
                start = time.process_time()
                if action == "move":
                    game.act("move", move=game.view["moves"][0]["move"])
                elif game.view["turn"] == "player":
                    game.act("reply")
                seconds.append(time.process_time() - start)
            game.answered()
        assert statistics.median(seconds) < SECONDS_PER_CLICK, name


def test_ten_viewers_play_at_once(client):
    def watch(number):
        game = Game(client, game="connect4", seats=["you", "win_or_block"])
        while game.view["turn"] == "you":
            game.play(game.view["moves"][number % len(game.view["moves"])]["move"])
        return game.view["turn"]

    with ThreadPoolExecutor(10) as viewers:
        assert {*viewers.map(watch, range(10))} == {"over"}


REFUSED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 60_000,
    b'{"game": "chess"}',
    b'{"game": 3}',
    b'{"game": "tictactoe", "seats": "you"}',
    b'{"game": "tictactoe", "seats": ["you"]}',
    b'{"game": "tictactoe", "seats": ["you", "nobody"]}',
    b'{"game": "tictactoe", "seats": ["you", "/etc/passwd"]}',
    b'{"game": "tictactoe", "search": "deep"}',
    b'{"game": "tictactoe", "search": "expectimax"}',
    b'{"game": "tictactoe", "position": "@/etc/passwd"}',
    b'{"game": "tictactoe", "position": "X X X / O O O / X X X"}',
    b'{"game": "salvo_duel", "fleet": "A1-Z9"}',
    b'{"game": "salvo_duel", "fleet": "A1-A3 D1-E1 D5-E5 B2"}',
]


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body[:40].decode("latin-1"))
def test_a_malformed_start_is_refused(body, client):
    answer = client.post("/api/sessions", content=body)
    assert answer.status_code == 400, answer.text
    assert len(answer.json()["error"].splitlines()) == 1
    assert "root:" not in answer.text


def test_malformed_actions_are_refused_and_change_nothing(client):
    game = Game(client, game="tictactoe", seats=["you", "random"])
    before = game.view["position"]
    path = f"/api/sessions/{game.key}"
    bodies: list[dict[str, Any]] = [
        {"do": "move", "move": "Z9"},
        {"do": "move", "move": 3},
        {"do": "move"},
        {"do": "reply"},
        {"do": "fly"},
        {"do": []},
        {"do": "view", "ply": -1},
        {"do": "view", "ply": True},
        {"do": "view", "ply": 1e99},
        {"do": "sit", "seats": ["you", "you", "you"]},
        {"do": "sit"},
        {"do": "hint", "kind": "__class__"},
        {"do": "hint", "kind": "ships"},
    ]
    for body in bodies:
        answer = client.post(path, json=body)
        assert answer.status_code == 400, (body, answer.text)
    assert game.act("view")["position"] == before
    assert client.post("/api/sessions/nobodys", json={"do": "view"}).status_code == 404


def test_ten_megabytes_are_refused(client):
    body = json.dumps({"game": "x" * 10_000_000}).encode()
    assert client.post("/api/sessions", content=body).status_code == 413
    chunks = (body[start : start + 65536] for start in range(0, len(body), 65536))
    assert client.post("/api/sessions", content=chunks).status_code == 413  # without a length
    assert client.get("/api/games").status_code == 200


def test_other_pages_and_names_are_refused(client):
    for origin in (
        "http://evil.example",
        "null",
        "http://[",
        "https://127.0.0.1.evil.example",
        "http://192.168.0.1:8765",
    ):
        answer = client.post("/api/sessions", json={}, headers={"origin": origin})
        assert answer.status_code == 403, origin
        assert "hosts=[" in answer.json()["error"]
    own = {"origin": "http://127.0.0.1:8765"}
    assert client.post("/api/sessions", json={"game": "tictactoe"}, headers=own).status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example:8765", "192.168.0.1", "[::2]:80", ""):
        answer = client.get("/", headers={"host": host})
        assert answer.status_code == 400, host
        name = host.partition(":8")[0] or "NAME"
        assert f"rlgames with hosts=[{'::2' if '::2' in host else name}]" in answer.text


def test_the_page_plays_behind_proxies_that_change_host_or_origin():
    served = page(offered_tables(load_config(ServeConfig, ["game=tictactoe"])), PROXIES)
    for host, origin in (
        ("demo-9205.app.github.dev", "http://localhost:9205"),  # Codespaces
        ("localhost:9205", "https://demo-9205.app.github.dev"),  # nginx, by default
        ("demo-9205.app.github.dev", "https://demo-9205.app.github.dev:8443"),
        ("a.b.hf.space", "https://a.b.hf.space"),
        ("MyBox.local.:9205", "http://mybox.local"),
        ("[::1]:9205", "http://[::1]:9205"),
        ("[2001:DB8:0::1]:9205", "http://127.0.0.1"),
    ):
        headers = {"host": host, "origin": origin}
        answer = served.post("/api/sessions", json={}, headers=headers)
        assert answer.status_code == 200, (host, origin, answer.text)
    for host in ("hf.space", "evil.app.github.dev"):
        assert served.get("/", headers={"host": host}).status_code == 400, host


def test_the_page_answers_to_the_ip_address_at_which_it_is_reached():
    """A name could be made to lead here; an IP address that was reached cannot."""
    tables = offered_tables(load_config(ServeConfig, ["game=tictactoe"]))
    for address, status in (("http://192.168.0.7:8765", 200), ("http://box:8765", 400)):
        reached = TestClient(app.make_app(app.Page(tables)), base_url=address)
        assert reached.get("/").status_code == status


@pytest.mark.parametrize(
    "path", ["/page.py", "/static/page.js", "/../app.py", "/%2e%2e/app.py", "/api", "//etc/passwd"]
)
def test_nothing_but_the_page_is_there(path, client):
    assert client.get(path).status_code == 404
    assert client.post("/api/games", json={}).status_code == 405


def test_the_page_asks_for_nothing_elsewhere(client):
    for path in ("/", "/page.css", "/page.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_old_games_make_room(client, monkeypatch):
    monkeypatch.setattr(app, "MAX_SESSIONS", 2)
    games = [Game(client, game="tictactoe") for _ in range(3)]
    statuses = [
        client.post(f"/api/sessions/{game.key}", json={"do": "view"}).status_code for game in games
    ]
    assert statuses == [404, 200, 200]
