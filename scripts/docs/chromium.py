"""Chromium without a window, driven by Playwright, which the extra `browser` installs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The path of Chromium: CHROMIUM or, if that is not set, what the system has."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A block with a running browser, of Playwright."""
    from playwright.sync_api import sync_playwright

    path = program()
    if path is None:
        sys.exit("there is no Chromium; install it, as in: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()
