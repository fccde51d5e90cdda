"""The page in Chromium: games by clicks and keys, and what axe-core says about them.

`make test-browser` installs what it needs.
"""

import os
import re
import shutil
import threading
from contextlib import contextmanager

import pytest

from rlgames.commands.serve import offered_tables
from rlgames.config.commands import ServeConfig
from rlgames.config.compose import load_config
from rlgames.web.app import Page, make_app

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
ARGUMENTS = [
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MAX_MOVES = 60


@pytest.fixture(scope="module")
def address():
    """The address of a page with all games, served by this process."""
    import uvicorn

    config = uvicorn.Config(
        make_app(Page(offered_tables(load_config(ServeConfig, [])), seed=2)),
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


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "no chromium on the path: apt-get install chromium, or set CHROMIUM"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def open_page(address, browser):
    """Open the page at a query; no error may appear in its console, and no request may leave it."""
    with _pages(address, browser) as opened:
        yield opened


@contextmanager
def _pages(address, browser):
    contexts, errors, leaves = [], [], []

    def opened(query, width=1280, scheme="light", settles=True):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: leaves.append(request.url))
        page.goto(f"{address}/?{query}")
        if settles:
            settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors
    assert all(url.startswith((address, "data:")) for url in leaves)


def settle(page):
    """Wait until it is the person's turn, or the game is over."""
    page.wait_for_selector("body[data-turn]:not(.is-waiting):not([data-asks])")


def status(page):
    return page.inner_text("#status")


def click(page, name):
    page.click(f".cell.open[data-name='{name}']")
    settle(page)


def moves(page):
    return page.locator("#log li").count()


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
    page.evaluate("() => { window.real = fetch; fetch = () => Promise.reject(Error('away')); }")
    page.select_option("#game", "tictactoe")
    page.wait_for_selector("text=No game: choose another one")
    page.click("#undo", force=True)
    page.evaluate("() => { fetch = window.real; }")
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
