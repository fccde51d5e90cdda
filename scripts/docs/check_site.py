"""Open pages of the built site in Chromium without a window, and fail on what a reader would see.

Fails on raw LaTeX, on anything wider than the page, on commands that are cut off, on pictures that
do not load, on errors in the console, and if the search does not know the words that readers look
for. Usage, after `make site`:

    python scripts/docs/check_site.py [build/site]
"""

from __future__ import annotations

import argparse
import http.server
import sys
import threading
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from chromium import browser

PAGES = [
    *("", "concepts/", "recipes/", "train/", "learners/ppo/", "learners/alphazero/", "results/"),
    *("reproductions/", "teaching/", "reliability/", "agents/", "reference/games/"),
]
WORDS = ["schedule", "SLURM", "width", "JSON", "TensorBoard", "out of memory"]
"""What the search has to know, in a title or a text."""

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
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8").lower()
    unknown = [word for word in WORDS if word.lower() not in index]
    faults = {"search": [f"the search does not find {word}" for word in unknown]}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with browser() as chromium:
        for path, (size, (width, height)) in product(PAGES, SIZES.items()):
            page = chromium.new_page(
                viewport={"width": width, "height": height}, is_mobile=width < 500
            )
            errors = faults[f"/{path} ({size})"] = []
            for event in ("pageerror", "console"):
                page.on(event, partial(_note_error, errors))
            page.goto(f"http://127.0.0.1:{server.server_port}/{path}")
            errors[:0] = page.evaluate(FAULTS)
            page.close()
    server.shutdown()
    return faults


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
