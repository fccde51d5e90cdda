"""Open pages of the built site in Chromium without a window, and fail on what a reader would see.

Fails on raw LaTeX, on anything wider than the page, on commands that are cut off, on pictures that
do not load, on errors in the console, and if the search does not know the words that readers look
for. Usage, after `make site`:

    python scripts/docs/check_site.py [build/site] [--pictures DIR]
"""

from __future__ import annotations

import argparse
import base64
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
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


class Browser:
    """Chromium, which is driven through two pipes by its DevTools protocol."""

    def __init__(self, profile: str) -> None:
        program = next(filter(None, map(shutil.which, CHROMIUM)), None)
        if program is None:
            sys.exit("check_site.py needs Chromium; as in: apt-get install chromium")
        into, self._to = os.pipe()
        self._from, out = os.pipe()

        def connect() -> None:
            # Chromium reads commands from descriptor 3 and writes answers to 4.
            high = [os.dup(each) for each in (into, out)]
            for number, each in zip((3, 4), high, strict=True):
                os.dup2(each, number)

        self._process = subprocess.Popen(
            [
                program,
                *("--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
                *("--disable-background-networking", "--remote-debugging-pipe"),
                *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root has none
                f"--user-data-dir={profile}",
            ],
            preexec_fn=connect,
            close_fds=False,
            stderr=subprocess.DEVNULL,
        )
        self._rest, self._count, self._session = b"", 0, ""
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **words: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": words}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str, width: int, height: int) -> list[str]:
        """Load a page. Returns what is wrong with it."""
        self.errors = []
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=url)
        while self._read().get("method") != "Page.loadEventFired":
            pass
        found = self.call("Runtime.evaluate", expression=FAULTS, returnByValue=True)["result"]
        return [*found["value"], *self.errors]

    def picture(self, path: Path) -> None:
        """Save what the page shows."""
        data = self.call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.call("Browser.close")
        self._process.wait(30)

    def _read(self) -> dict[str, Any]:
        """The next message; errors of the page are kept."""
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        about, words = message.get("method"), message.get("params", {})
        if about == "Runtime.exceptionThrown":
            self.errors.append(f"error: {words['exceptionDetails']['text']}")
        if about == "Log.entryAdded" and words["entry"]["level"] == "error":
            self.errors.append(f"error: {words['entry']['text']} {words['entry'].get('url', '')}")
        return message


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: Any) -> None:
        pass


def faults_of(site: Path, pictures: Path | None) -> dict[str, list[str]]:
    """What is wrong, by page and size."""
    faults = {"search": missing_words(site)}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        for page in PAGES:
            for size, (width, height) in SIZES.items():
                url = f"http://127.0.0.1:{server.server_port}/{page}"
                faults[f"/{page} ({size})"] = browser.open(url, width, height)
                if pictures:
                    name = page.strip("/").replace("/", "_") or "home"
                    browser.picture(pictures / f"{name}_{size}.png")
        browser.close()
    server.shutdown()
    return faults


def missing_words(site: Path) -> list[str]:
    """The words that the search does not know."""
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8").lower()
    return [f"the search does not find {word}" for word in WORDS if word.lower() not in index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path, nargs="?", default=Path("build/site"))
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the pages")
    words = parser.parse_args()
    if words.pictures:
        words.pictures.mkdir(parents=True, exist_ok=True)
    faults = faults_of(words.site, words.pictures)
    for page, found in faults.items():
        print(page, "; ".join(found) or "ok")
    sys.exit(any(faults.values()))


if __name__ == "__main__":
    main()
