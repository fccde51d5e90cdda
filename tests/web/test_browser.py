"""The page in Chromium: games by clicks and keys, and what axe-core says about them.

`make test-browser` installs what it needs.
"""

import json
import re
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from browsing import browser, opened_pages, settle, status

from rlgames.commands.serve import offered_tables
from rlgames.config.commands import ServeConfig
from rlgames.config.compose import load_config
from rlgames.web.app import Page, make_app

pytestmark = pytest.mark.browser

__all__ = ["browser"]

GAME_2048 = "game=2048&position=. . . . / . . . . / . . . 4 / . . . 2"

MAX_MOVES = 60
BEHIND_PROXY = "/user/ann/proxy/9401"


@pytest.fixture(scope="module")
def address():
    """The address of a page with all games, served by this process, also below BEHIND_PROXY."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = make_app(Page(offered_tables(load_config(ServeConfig, [])), seed=2))
    config = uvicorn.Config(
        Starlette(routes=[Mount(BEHIND_PROXY, app), Mount("/", app)]),
        port=0,
        log_level="critical",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def open_page(address, browser):
    """Open the page at a query, see opened_pages; below: where its requests have to stay."""
    with opened_pages(browser) as opened:

        def at_query(query, width=1280, scheme="light", below="", **options):
            own = (f"{address}{below}/", "data:")
            return opened(f"{own[0]}?{query}", own, width, color_scheme=scheme, **options)

        yield at_query


def click(page, name):
    page.click(f".cell.open[data-name='{name}']")
    settle(page)


def moves(page):
    return page.locator("#log li").count()


@contextmanager
def without_server(page):
    page.evaluate("() => { window.real = fetch; fetch = () => Promise.reject(Error('away')); }")
    yield
    page.evaluate("() => { fetch = window.real; }")


def test_connect4_is_won_by_clicks(open_page):
    """Against random play: a column three high is completed, the others wait."""
    page = open_page("game=connect4&seat=you&seat=random")
    for turn in range(MAX_MOVES):
        if "win" in status(page) or "lose" in status(page):
            break
        page.locator(f".cell.open[data-cell='{35 + (3 if turn < 4 else turn % 7)}']").click(
            force=True
        )
        settle(page)
    assert re.fullmatch(r"You win after \d+ turns", status(page))
    assert page.locator("button.primary").inner_text() == "New game"
    page.click("#new")
    settle(page)
    assert moves(page) == 0


FALLS = """window.falls = [];
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, timing) {
    falls.push([this.parentNode.dataset.cell, frames.transform[0], timing.duration]);
    return animate.call(this, frames, timing);
};"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_stone_falls_to_its_cell_once_unless_motion_is_reduced(motion, open_page):
    page = open_page("game=connect4&seat=you&seat=you", script=FALLS, reduced_motion=motion)
    for cell in (38, 31):
        page.click(f".cell.open[data-cell='{cell}']")
        settle(page)
    page.click("#back")
    settle(page)
    page.click("#new")
    settle(page)
    falls = page.evaluate("falls")  # of a stone and its letter
    assert [cell for cell, *_ in falls] == ([] if motion == "reduce" else ["38"] * 2 + ["31"] * 2)
    if falls:
        (_, far, long), _, _, (_, near, short) = falls
        assert float(far[11:-3]) < float(near[11:-3]) < 0 < short < long < 1000


def test_2048_is_played_by_arrow_keys(open_page):
    page = open_page("game=2048")
    for number in range(12):
        page.keyboard.press(["ArrowDown", "ArrowLeft", "ArrowDown", "ArrowRight"][number % 4])
        settle(page)
    assert moves(page) >= 6
    score = int(re.search(r"score (\d+)", status(page))[1])
    assert score > 0
    page.click("#undo")
    settle(page)
    assert int(re.search(r"score (\d+)", status(page))[1]) <= score


def test_a_duel_with_a_placed_fleet(open_page):
    page = open_page("game=salvo_duel&seat=you&seat=random")
    assert "Place your ship of 3" in status(page)
    for first, last in (("A1", "A3"), ("C1", "D1"), ("E4", "E5")):
        click(page, first)
        assert page.locator(".cell.target").count() >= 1
        click(page, last)
    assert status(page).startswith("Your turn")
    own = page.locator(".board").nth(1)
    ships = {cell.get_attribute("data-name") for cell in own.locator(".cell.ship").all()}
    assert ships == {"A1", "A2", "A3", "C1", "D1", "E4", "E5"}
    while "win" not in status(page) and "lose" not in status(page):
        page.locator(".cell.open").first.click()
        settle(page)
    assert "after" in status(page)
    assert page.is_disabled("#undo")


def test_hex_with_its_swap(open_page):
    page = open_page("game=hex&seat=you&seat=you")
    click(page, "B3")
    page.click("#moves button >> text=swap")
    settle(page)
    assert page.get_attribute(".cell.second", "data-name") == "C2"
    click(page, "D4")
    page.click("#undo")
    settle(page)
    assert page.locator(".cell.first").count() == 0
    page.select_option("#seats select >> nth=1", "random")
    settle(page)
    while "win" not in status(page) and "lose" not in status(page):
        page.locator(".cell.open").last.click()
        settle(page)
    assert "after" in status(page)


def test_a_shared_link_opens_the_same_position(open_page):
    page = open_page("game=connect4&hints=policy")
    for cell in (38, 31, 37):
        page.click(f".cell[data-cell='{cell}']", force=True)
        settle(page)
    page.wait_for_selector("#advice li")
    stones = [cell.get_attribute("data-mark") for cell in page.locator(".cell").all()]
    other = open_page(page.url.partition("?")[2], width=400)
    assert [cell.get_attribute("data-mark") for cell in other.locator(".cell").all()] == stones
    assert other.is_checked("input[value=policy]")
    other.wait_for_selector("#advice li")
    assert other.inner_text("#advice") == page.inner_text("#advice")
    page.click("#back")
    settle(page)
    assert status(page).startswith("Before turn")
    assert page.locator(".cell.open").count() == 0
    page.click("#last")
    settle(page)
    assert page.locator(".cell.open").count() > 0


def test_new_game_starts_the_chosen_game_if_it_could_not_be_opened_before(open_page):
    page = open_page("game=connect4")
    with without_server(page):
        page.select_option("#game", "tictactoe")
        page.wait_for_selector("text=No game: choose another one")
        page.click("#undo", force=True)
    page.click("#new")
    settle(page)
    assert page.locator(".cell").count() == 9


def test_hints_are_switched_on_and_off(open_page):
    page = open_page("game=tictactoe")
    assert page.locator("#advice li").count() == 0
    page.check("input[value=exact]", force=True)
    page.wait_for_selector("#advice li")
    assert "drawn" in page.inner_text("#advice")
    assert page.locator(".cell text").count() == 9
    page.check("input[name=hints][value='']", force=True)
    settle(page)
    assert page.locator(".cell text").count() == 0


def test_the_keyboard_plays_on_cells(open_page):
    page = open_page("game=tictactoe&seat=you&seat=you")
    page.keyboard.press("ArrowDown")  # to the board
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    assert page.get_attribute(".cell.first", "data-name") == "B2"
    connect4 = open_page("game=connect4&seat=you&seat=you")
    connect4.keyboard.press("4")
    settle(connect4)
    assert connect4.get_attribute(".cell.first", "data-cell") == "38"


@pytest.mark.parametrize(
    ("query", "key", "focus", "most"),
    [
        ("game=connect4&seat=you&seat=you", "4", "body", 1),
        ("game=gomoku&seat=you&seat=you", "Enter", ".cell[data-name='B2']", 1),
        ("game=hex&seat=you&seat=you&position=GIVEN", "Enter", "[data-move=swap]", 1),
        ("game=2048", "ArrowDown", "body", 5),
    ],
)
def test_a_key_that_is_held_plays_once_but_slides_on(query, key, focus, most, open_page):
    page = open_page(query.partition("&position")[0])
    if "GIVEN" in query:
        click(page, "B3")
        most += 1
    page.focus(focus)
    for _ in range(6):
        page.keyboard.down(key)  # after the first one, as a repeated key
        page.wait_for_timeout(60)
        settle(page)
    page.keyboard.up(key)
    settle(page)
    assert moves(page) > 1 if most == 5 else moves(page) == most, moves(page)


def test_a_click_in_a_stale_tab_shows_the_present_position(open_page):
    page = open_page("game=tictactoe&seat=you&seat=you")
    game = page.evaluate("sessionStorage.getItem('game')")
    script = f"sessionStorage.getItem('game') ?? sessionStorage.setItem('game', {json.dumps(game)})"
    other = open_page(page.url.partition("?")[2], script=script)
    click(page, "B2")
    assert status(other) == "Your turn as X, turn 1"
    click(other, "A1")
    assert "went on elsewhere" in other.inner_text("#error")
    assert (status(other), moves(other)) == ("Your turn as O, turn 2", 1)
    click(other, "A1")
    assert (other.inner_text("#error"), moves(other)) == ("", 2)
    page.click("#undo")
    settle(page)
    assert (moves(page), status(page)) == (2, "Your turn as X, turn 3")


NO_STORAGE = """Object.defineProperty(window, "sessionStorage", {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
});
history.replaceState = () => { throw new DOMException("more than 100 times", "SecurityError"); };"""


def test_a_game_is_played_without_cookies_and_without_changes_of_the_address(open_page):
    page = open_page("game=tictactoe&seat=you&seat=you", script=NO_STORAGE)
    click(page, "B2")
    assert (moves(page), page.inner_text("#error")) == (1, "")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("Promise.resolve(new Response('<html>', {status: 403}))", "status 403"),
        ("Promise.resolve(new Response('Bad Gateway', {status: 502}))", "does not answer"),
        ("Promise.reject(Error('away'))", "does not answer"),
    ],
)
def test_a_page_that_cannot_start_says_so_and_tries_again(answer, line, open_page):
    script = f"window.real = fetch; fetch = () => {answer};"
    page = open_page("game=tictactoe", settles=False, script=script)
    page.wait_for_selector(f"#status >> text={line}")
    if line == "does not answer":
        page.evaluate("() => { fetch = window.real; }")
        settle(page)
        click(page, "B2")


def test_the_page_plays_below_a_path_of_a_proxy(open_page):
    page = open_page("game=tictactoe&seat=you&seat=you", below=BEHIND_PROXY)
    click(page, "B2")
    assert f"{BEHIND_PROXY}/?game=tictactoe" in page.url
    page.reload()
    settle(page)
    assert moves(page) == 1


def test_an_agent_is_watched(open_page):
    page = open_page("game=tictactoe&seat=tictactoe&seat=random", settles=False)
    page.click("#pause")
    paused = moves(page)
    page.wait_for_timeout(1500)
    assert moves(page) <= paused + 1
    page.click("#pause")
    page.wait_for_selector("text=/seat 1 wins|seat 2 wins|draw/i")


def test_the_list_of_players_says_how_strong_an_agent_is(open_page):
    page = open_page("game=tictactoe&seat=you&seat=random")
    listed = page.locator("#seats select >> nth=1").locator("option").all_inner_texts()
    assert "tictactoe: plays perfectly and never loses" in listed
    assert page.inner_text("#strength") == ""
    page.select_option("#seats select >> nth=1", "tictactoe")
    settle(page)
    assert page.inner_text("#strength") == "tictactoe plays perfectly and never loses."
    assert page.locator("#seats select >> nth=1").locator(":checked").inner_text() == "tictactoe"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize(
    "query", ["game=connect4&hints=policy", "game=2048&hints=policy", "game=salvo_duel", "game=hex"]
)
def test_axe_finds_no_serious_violation(query, width, scheme, open_page):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(query, width, scheme)
    page.locator(".cell.open, #moves button").first.click(force=True)
    settle(page)
    found = Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not serious, [(each["id"], each["nodes"][0]["html"]) for each in serious]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@contextmanager
def slow_player(page):
    """The first move of a player takes until the block ends."""
    waits: list[Any] = []

    def hold(route):
        if '"reply"' in (route.request.post_data or "") and not waits:
            waits.append(route)
        else:
            route.continue_()

    page.route("**/api/sessions/*", hold)
    yield waits
    waits[0].continue_()


WISHES: dict[str, Callable[[Any], Any]] = {
    "step": lambda page: (page.click("#back"), page.click("#last")),
    "entry": lambda page: (page.click("#log button >> nth=0"), page.click("#last")),
    "hints": lambda page: page.check("input[value=policy]", force=True),
    "seat": lambda page: page.select_option("#seats select >> nth=1", "you"),
    "search": lambda page: page.select_option("#search", "mcts"),
    "swap": lambda page: page.click("#swap"),
    "earlier position": lambda page: page.click("#back"),
    "earlier position, search": lambda page: (
        page.click("#back"), page.wait_for_timeout(200), page.select_option("#search", "mcts"),
    ),
    "earlier position, swap": lambda page: (page.click("#back"), page.click("#swap")),
    "search, earlier position": lambda page: (
        page.select_option("#search", "mcts"), page.click("#back"), page.wait_for_timeout(200),
    ),
    "swap, earlier position": lambda page: (page.click("#swap"), page.click("#back")),
    "seat, search": lambda page: (WISHES["seat"](page), page.select_option("#search", "mcts")),
}  # fmt: skip


@pytest.mark.parametrize("wish", WISHES)
def test_what_a_person_does_while_a_player_thinks_is_done(wish, open_page):
    page = open_page("game=connect4&seat=you&seat=connect4", settles=False)
    page.wait_for_selector(".cell.open")
    with slow_player(page) as waits:
        page.click(".cell[data-cell='38']", force=True)
        page.wait_for_selector("body.is-waiting")
        page.wait_for_timeout(400)
        assert len(waits) == 1
        WISHES[wish](page)
    settle(page)
    page.wait_for_selector("#log li >> nth=1")
    if "search" in wish:
        page.wait_for_url("**search=mcts*")
        assert page.input_value("#search") == "mcts"
    if "seat" in wish:
        assert "=you" in page.url.replace("seat=you&", "", 1)
    if "swap" in wish:
        assert page.url.index("seat=connect4") < page.url.index("seat=you")
        page.wait_for_selector("#log li >> nth=2")
    elif wish != "earlier position":
        assert page.locator(".cell.open").count() > 0
    assert page.inner_text("#error") == ""


def test_a_game_that_was_left_holds_up_no_other_one(address, open_page, monkeypatch):
    from rlgames.players.player import Random

    page, choose = open_page("game=tictactoe&seat=you&seat=random"), Random.choose
    begun, is_over = threading.Event(), threading.Event()

    def slow(self, state, rng):
        if not begun.is_set():
            begun.set()
            is_over.wait(60)
        return choose(self, state, rng)

    monkeypatch.setattr(Random, "choose", slow)
    try:
        page.click(".cell[data-cell='4']")
        assert begun.wait(8)
        page.click("#new")
        settle(page)
        click(page, "A1")
        assert moves(page) == 2
    finally:
        is_over.set()


@pytest.mark.parametrize(
    ("query", "key"), [("game=gomoku&seat=you&seat=random", "E5"), ("game=salvo&seat=you", "B2")]
)
def test_the_focus_stays_where_the_move_was_made(query, key, open_page):
    page = open_page(query)
    page.focus(f".cell[data-name='{key}']")
    page.keyboard.press("Enter")
    settle(page)
    if "salvo" in query:  # two shots a turn
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settle(page)
        key = "C2"
    assert moves(page) > 0
    assert page.evaluate("document.activeElement.dataset.name") == key


def test_the_focus_stays_on_buttons(open_page):
    page = open_page("game=2048")
    for move in ("left", "down", "left", "right"):
        page.focus(f"[data-move={move}]")
        page.keyboard.press("Enter")
        settle(page)
        assert page.evaluate("document.activeElement.dataset.move") == move
        assert page.locator("#moves button").count() == 4
    while page.locator("#undo[aria-disabled=false]").count():
        page.focus("#undo")
        page.keyboard.press("Enter")
        settle(page)
    assert page.evaluate("document.activeElement.id") == "undo"
    hexes = open_page("game=hex&seat=you&seat=you")
    click(hexes, "B3")
    hexes.focus("[data-move=swap]")
    hexes.keyboard.press("Enter")
    settle(hexes)
    assert hexes.evaluate("document.activeElement.classList.contains('cell')")


def test_a_reload_keeps_the_moves_after_an_earlier_position(open_page):
    page = open_page("game=connect4&seat=you&seat=random")
    for column in (38, 35):
        page.click(f".cell[data-cell='{column}']", force=True)
        settle(page)
    page.click("#first")
    settle(page)
    page.reload()
    settle(page)
    assert moves(page) == 4
    assert status(page).startswith("Your turn")
    page.click("#first")
    settle(page)
    page.evaluate(
        """() => { window.real = fetch; fetch = () => {
            fetch = window.real;
            return Promise.resolve(new Response('{"error": "gone"}', {status: 404}));
        }; }"""
    )
    page.click("#last")
    page.wait_for_selector("text=The server had forgotten this game")
    assert status(page) == "Your turn as X, turn 5"


@pytest.mark.parametrize("game", ["tictactoe", "connect4", "othello", "hex", "2048", "salvo"])
def test_every_cell_has_a_name_and_says_what_is_in_it(game, open_page):
    query = f"game={game}&seat=random" + "&seat=random" * (game not in ("2048", "salvo"))
    page = open_page(query, settles=False)
    page.select_option("#speed", "50")
    page.wait_for_selector("#log li >> nth=3")
    page.click("#back")  # which pauses
    page.wait_for_timeout(300)
    for place in ("#first", "#last"):
        page.click(place)
        page.wait_for_timeout(300)
        cells = page.locator(".board >> nth=0").locator(".cell").all()[:12]
        labels = [cell.get_attribute("aria-label") for cell in cells]
        names = [cell.get_attribute("data-name") for cell in cells]
        assert all(label.startswith(name + " ") for label, name in zip(labels, names, strict=True))
        assert all(label.split()[-1] for label in labels)
    assert re.fullmatch(r"random played .+", page.text_content("#spoken"))


def test_2048_is_played_by_swipes(open_page):
    page = open_page("game=2048", width=400)
    page.evaluate(
        """() => { for (const [x, y] of [[0, 90], [90, 0], [0, 90], [-90, 5]]) {
            const board = document.querySelector("#boards svg");
            const send = (name, clientX, clientY) => {
                const touch = new Touch({identifier: 1, target: board, clientX, clientY});
                board.dispatchEvent(new TouchEvent(name, {changedTouches: [touch], bubbles: true}));
            };
            send("touchstart", 150, 200);
            send("touchend", 150 + x, 200 + y);
        } }"""
    )
    settle(page)
    assert moves(page) >= 1


def fingers(page, *distances):
    """Drag fingers that begin 40 pixels apart on the board outwards, as a touch screen does."""
    touch, box = page.context.new_cdp_session(page), page.locator("#boards svg").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for step in range(10):
        points = [
            {"x": x + sign * (20 + step * distance / 9), "y": y, "id": number}
            for number, (sign, distance) in enumerate(zip((-1, 1), distances, strict=False))
        ]
        kind = "touchMove" if step else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(400)
    settle(page)


def test_two_fingers_zoom_and_one_plays(open_page):
    page = open_page("game=2048", width=400, has_touch=True, is_mobile=True)
    fingers(page, 90, 90)
    assert moves(page) == 0
    assert page.evaluate("visualViewport.scale") > 1.2
    page = open_page(GAME_2048, width=400, has_touch=True, is_mobile=True)
    fingers(page, 90)
    assert page.locator("#log li").all_inner_texts() == ["1. left"]
    assert page.evaluate("[visualViewport.scale, scrollY]") == [1, 0]


def test_on_a_phone_the_directions_of_2048_are_a_cross(open_page):
    page = open_page("game=2048", width=360)
    at = {
        name: page.locator(f"[data-move={name}]").bounding_box()
        for name in ("up", "left", "right", "down")
    }
    assert at["up"]["y"] < at["left"]["y"] == at["right"]["y"] < at["down"]["y"]
    assert at["left"]["x"] < at["up"]["x"] == at["down"]["x"] < at["right"]["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_link_to_a_2048_position_keeps_its_score(open_page):
    page = open_page(GAME_2048)
    for _ in range(3):
        for key in ("ArrowUp", "ArrowLeft"):
            page.keyboard.press(key)
            settle(page)
    shown = status(page)
    assert int(re.search(r"turn (\d+)", shown)[1]) > 3
    assert status(open_page(page.url.partition("?")[2])) == shown


def test_whoever_takes_over_2048_has_all_four_directions(open_page):
    page = open_page("game=2048&seat=random", settles=False)
    page.wait_for_selector("#log li >> nth=1")
    page.select_option("#seats select", "you")
    settle(page)
    assert page.locator("#moves button").count() == 4


def test_the_page_waits_for_a_server_that_is_gone(open_page):
    page = open_page("game=tictactoe&seat=you&seat=random")
    with without_server(page):
        page.click(".cell[data-cell='4']")
        page.wait_for_selector("text=The server does not answer")
    page.wait_for_selector("#error:empty", state="attached")
    page.click(".cell[data-cell='4']")
    settle(page)
    assert moves(page) == 2


def test_games_have_titles_and_the_run_comes_first(open_page):
    page = open_page("game=salvo_duel")
    assert page.title() == "Salvo duel – rlgames"
    names = page.locator("#game option").all_inner_texts()
    assert {"Connect 4", "Tic-tac-toe", "Salvo duel", "2048"} <= {*names}
    tables = [*offered_tables(load_config(ServeConfig, ["runs=[othello]", "game=tictactoe"]))]
    assert tables == ["othello", "tictactoe"]
