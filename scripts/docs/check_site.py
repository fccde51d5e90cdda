"""Open pages of the built site in Chromium without a window, and fail on what a reader would see.

Fails on raw LaTeX, on anything wider than the page, on commands that are cut off, on pictures that
do not load, on errors in the console, and if the search does not know the words that readers look
for. Usage, after `make site`:

    python scripts/docs/check_site.py [build/site]
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import sys
import threading
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chromium import browser

PAGES = [
    *("", "concepts/", "recipes/", "train/", "learners/ppo/", "learners/alphazero/", "results/"),
    *("reproductions/", "teaching/", "reliability/", "agents/", "reference/games/"),
]
WORDS = {
    **{"schedule": "recipes/", "SLURM": "sweep/", "width": "configs/", "JSON": "json/"},
    **{"TensorBoard": "trackers/", "out of memory": "recipes/", "submitit_slurm": "sweep/"},
    **{"lr_end": "recipes/", "exploiter": "recipes/", "n_jobs": "sweep/", "gui": "play/"},
    **{"hardware": "faq/", "visualize": "recipes/", "pretrained": "agents/"},
}
"""What readers look for, and a page that the search must find."""

SEARCH_MS = 15_000
"""The longest wait for a result of the search, in milliseconds."""

SIZES = {"desktop": (1440, 1000), "phone": (390, 800)}

FAULTS = r"""(() => {
  const text = node => node.textContent.trim().slice(0, 60);
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) found.push("the page scrolls sideways");
  const article = document.querySelector("article");
  if (!article) return ["no text"];
  const words = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const isCode = words.currentNode.parentElement.closest("pre, annotation");
    if (/\\(frac|hat|left|text|sum|gamma|log|mathrm)\b/.test(words.currentNode.data) && !isCode)
      found.push("raw LaTeX: " + text(words.currentNode));
  }
  for (const pre of article.querySelectorAll(".language-math, pre.math"))
    found.push("a formula as code: " + text(pre));
  for (const code of article.querySelectorAll(".language-sh pre > code"))
    if (code.scrollWidth > code.clientWidth + 1) found.push("a command is cut off: " + text(code));
  for (const image of article.querySelectorAll("img"))
    if (!image.naturalWidth) found.push("no picture: " + image.src);
  return found;
})()"""
"""What is wrong with a page, as a list of texts."""


def faults_of(site: Path) -> dict[str, list[str]]:
    """What is wrong, by page and size."""
    faults: dict[str, list[str]] = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with browser() as chromium:
        faults["search"] = [
            f"the search for {word} does not find {page}"
            for word, page in WORDS.items()
            if not _is_found(chromium, f"{address}/?q={quote(word)}", page)
        ]
        for path, (size, (width, height)) in product(PAGES, SIZES.items()):
            page = chromium.new_page(
                viewport={"width": width, "height": height}, is_mobile=width < 500
            )
            errors = faults[f"/{path} ({size})"] = []
            for event in ("pageerror", "console"):
                page.on(event, partial(_note_error, errors))
            page.goto(f"{address}/{path}")
            errors[:0] = page.evaluate(FAULTS)
            page.close()
    server.shutdown()
    return faults


def _is_found(chromium: Any, query: str, expected: str) -> bool:
    """Whether the results of a search, which an address asks for, have a link to a page."""
    from playwright.sync_api import TimeoutError

    page = chromium.new_page()
    page.goto(query)
    link = page.locator(f'.md-search-result__item a[href*="/{expected}"]')
    with contextlib.suppress(TimeoutError):
        link.first.wait_for(state="attached", timeout=SEARCH_MS)
    is_found = link.count() > 0
    page.close()
    return is_found


def _note_error(errors: list[str], event: Any) -> None:
    """Note an error that nothing caught, or a line of the console if it is an error."""
    if getattr(event, "type", "error") == "error":
        errors.append(f"error: {getattr(event, 'text', f'Uncaught {event}')}")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path, nargs="?", default=Path("build/site"))
    faults = faults_of(parser.parse_args().site)
    for page, found in faults.items():
        print(page, "; ".join(found) or "ok")
    sys.exit(any(faults.values()))


if __name__ == "__main__":
    main()
