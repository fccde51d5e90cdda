"""Exported pages in Chromium, opened from files: games by clicks, keys and touches."""

import re

import pytest
from browsing import browser, opened_pages, settle, status
from test_export import exported
from test_machine import MCTS

from rlgames.commands.serve import offered_tables
from rlgames.config.commands import ServeConfig
from rlgames.config.compose import load_config
from rlgames.web.session import Session

pytestmark = pytest.mark.browser

__all__ = ["browser"]

PAGES = {
    "tictactoe": [],
    "connect4": ["search=alphabeta"],
    "othello": ["search=alphabeta", "search.plies=3"],
    "hex": [*MCTS],
    "gomoku": [*MCTS],
    "breakthrough": [],
    "battleship": [],
    "salvo": [],
    "2048": ["search=expectimax", "search.plies=1"],
}
"""By the names of the agents: what a person types."""

MAX_MOVES = 150


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """The path of an agent's page, which is made once."""
    made = {}

    def path(name, *words):
        if (name, words) not in made:
            exported(tmp_path_factory.mktemp(name), name, *(words or PAGES[name]))
            made[name, words] = tmp_path_factory.getbasetemp() / f"{name}0" / "page.html"
        return made[name, words]

    return path


@pytest.fixture
def open_page(browser):
    """Open a file with a query, see opened_pages; nothing but the file may be asked for."""
    with opened_pages(browser) as opened:

        def at_query(path, query="", **options):
            return opened(f"{path.as_uri()}?{query}", ("file:", "blob:", "data:"), **options)

        yield at_query


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1200, 390])
def test_a_whole_game_is_played(name, width, page_of, open_page):
    is_phone = width < 500
    page = open_page(page_of(name), width=width, has_touch=is_phone)
    for number in range(MAX_MOVES):
        if page.get_attribute("body", "data-turn") == "over":
            break
        cells = page.locator(".cell.target" if page.locator(".picked").count() else ".cell.open")
        if not cells.count():
            buttons = page.locator("#moves button:not([aria-disabled=true])")
            buttons.nth(number % buttons.count()).click()
        elif is_phone:
            cells.nth(5 * number % cells.count()).tap(force=True)
        else:
            cells.nth(5 * number % cells.count()).click(force=True)
        settle(page)
    assert name == "2048" or "after" in status(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    count = page.locator("#log li").count()
    page.click("#undo", force=True)
    settle(page)
    is_hidden = name in ("battleship", "salvo")  # what was seen cannot be unseen
    assert (page.locator("#log li").count() < count) != is_hidden
    page.click("#new")
    settle(page)
    assert page.get_attribute("body", "data-turn") == "you"


def test_hints_are_values_shares_and_a_bar(page_of, open_page):
    page = open_page(page_of("hex"))
    for kind in ("policy", "search"):
        page.check(f"input[value={kind}]", force=True)
        page.wait_for_selector("#advice li")
        settle(page)
        shares = [
            float(text.rstrip("%"))
            for text in page.locator("#advice li span:last-child").all_inner_texts()
        ]
        assert 95 < sum(shares) <= 101
        assert -1 <= page.evaluate("document.getElementById('value').value") <= 1
        assert f"hex{'+mcts' * (kind == 'search')} expects" in page.inner_text("#summary")


@pytest.mark.parametrize("name", ["tictactoe", "connect4", "hex", "2048"])
def test_hints_say_what_a_server_says(name, page_of, open_page):
    page = open_page(page_of(name), "hints=policy")
    page.wait_for_selector("#advice li")
    if name == "2048":  # the start is random
        assert re.fullmatch(r"2048 expects a return of \d\d,\d\d\d", page.inner_text("#summary"))
        return
    tables = offered_tables(load_config(ServeConfig, [name]))
    hint = Session(name, tables[name]).hint("policy")
    assert page.inner_text("#summary") == hint["summary"]
    moves = [(item["move"], item["text"]) for item in hint["moves"]]
    shown = [tuple(item.all_inner_texts()) for item in spans(page, "#advice li")]
    assert sorted(shown) == sorted(moves)


def spans(page, selector):
    return [item.locator("span") for item in page.locator(selector).all()]


def test_keys_play_as_on_a_page_with_a_server(page_of, open_page):
    page = open_page(page_of("connect4"))
    page.keyboard.press("4")
    settle(page)
    assert page.get_attribute(".cell.first", "data-cell") == "38"
    page = open_page(page_of("2048"))
    for key in ("ArrowDown", "ArrowLeft", "ArrowDown", "ArrowRight") * 3:
        page.keyboard.press(key)
        settle(page)
    assert page.locator("#log li").count() >= 6


def test_an_address_chooses_moves_seat_and_size(page_of, open_page):
    page = open_page(page_of("connect4"), "moves=4 4&seat=2&small")
    assert [*page.locator("#log b").all_text_contents()][:2] == ["4", "4"]
    assert page.locator("#log b").count() == 3
    assert "as O" in status(page)
    assert not page.locator("header").is_visible()
    assert not page.locator("aside").is_visible()
    again = open_page(page_of("connect4"), page.url.partition("?")[2])
    assert again.locator("#log b").all_text_contents() == page.locator("#log b").all_text_contents()
    assert not again.locator("aside").is_visible()


def test_wrong_words_in_an_address_are_said(page_of, open_page):
    for query, words in (("moves=9", "9 is not a legal move"), ("seat=bob&seat=you", "called bob")):
        page = open_page(page_of("connect4"), "moves=4")
        page.goto(f"{page_of('connect4').as_uri()}?{query}")
        page.wait_for_selector(f"#error >> text={words}")


def test_a_page_around_it_sends_moves_and_hears_of_others(page_of, open_page, tmp_path):
    """In a sandboxed frame, which has no address and no store."""
    text = page_of("connect4").read_text(encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<!doctype html><body data-turn='you'><iframe sandbox='allow-scripts' width=500 height=700>"
        "</iframe><script>heard = []; addEventListener('message', (event) => heard.push(event.data"
        ".rlgames));</script>"
    )
    page = open_page(frame)
    page.evaluate("text => { document.querySelector('iframe').srcdoc = text; }", text)
    page.wait_for_function("heard.length > 0")
    assert page.evaluate("heard[0]") == {
        "game": "connect4", "moves": [], "turn": "you", "seat": 1, "turns": 0, "scores": [0, 0],
    }  # fmt: skip
    message = {"rlgames": {"moves": "4 4 3", "seats": ["you", "you"]}}
    page.evaluate(
        "m => document.querySelector('iframe').contentWindow.postMessage(m, '*')", message
    )
    page.wait_for_function("heard.at(-1).turns === 3")
    assert page.evaluate("heard.at(-1).moves") == ["4", "4", "3"]
    assert page.evaluate("heard.at(-1).seat") == 2


def test_a_long_search_does_not_block_the_page(page_of, open_page):
    page = open_page(page_of("hex", *MCTS, "search.simulations=20000"))
    page.evaluate(
        "() => { longest = 0; last = performance.now(); setInterval(() => { const now ="
        " performance.now(); longest = Math.max(longest, now - last); last = now; }, 5); }"
    )
    page.locator(".cell.open").first.click(force=True)
    page.wait_for_selector("body.is-waiting")
    settle(page)
    assert page.locator("#log li").count() == 2
    assert page.evaluate("longest") < 400
