"""Pages in Chromium: what their tests open, read and click."""

from contextlib import contextmanager

import chromium
import pytest


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as started:
        yield started


@contextmanager
def opened_pages(browser):
    """A function that opens a page. In the end no error may have appeared in a console, except that
    a game went on elsewhere, and pages may have asked for nothing but addresses that begin with
    `own`. script: to run before the page."""
    contexts, errors, leaves = [], [], []

    def opened(address, own, width=1200, settles=True, script="", **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(8_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if is_error(line) else None)
        page.on("request", lambda each: leaves.extend([each.url][each.url.startswith(own) :]))
        page.goto(address)
        if settles:
            settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors
    assert not leaves


def is_error(line):
    return line.type == "error" and "409 (Conflict)" not in line.text


def settle(page):
    """Wait until it is the person's turn, or the game is over."""
    page.wait_for_selector("body[data-turn]:not(.is-waiting):not([data-asks])")


def status(page):
    return page.inner_text("#status")
