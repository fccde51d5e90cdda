"""Makes the screenshots of the README and of docs/play.md in docs/pictures.

It needs Chromium (Debian: apt-get install chromium) and the extra browser. The run of the terminal
and of TensorBoard is trained once, into --out, in less than a minute. Usage:

    python scripts/docs/screenshots.py [--out outputs/screenshots] [--only tensorboard ...]
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from chromium import browser
from PIL import Image
from rich.console import Console
from tensorboard import program

from rlgames.runs.files import read_info, read_metrics
from rlgames.terminal.progress import Progress

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
RUN = ["game=salvo", "board=4", "shots=2"]
Scheme = Literal["light", "dark"]

PAGE = "images&tagFilter=position_"
"""Of TensorBoard."""

COLORS = 128
"""Fewer than there are, so that the pictures stay small."""


def trained(out: Path) -> Path:
    """The run that the pictures show, trained or resumed if it is not done."""
    run = out / "run"
    words = ["resume", str(run)] if run.exists() else ["train", *RUN, f"out={run}"]
    subprocess.run([sys.executable, "-m", "rlgames", *words], check=True)
    return run


def tensorboard(out: Path, path: Path) -> None:
    """Positions of a game with the policy's move probabilities."""
    server = program.TensorBoard()
    server.configure(argv=["tensorboard", "--logdir", str(trained(out)), "--port", "0"])
    url = server.launch()
    while not json.load(urllib.request.urlopen(f"{url}data/runs")):  # it has not read the run
        time.sleep(1)
    photographed(f"{url}#{PAGE}", path, 1400, 1200)


def terminal(out: Path, path: Path) -> None:
    """The live view of the training, three quarters through."""
    run, page = trained(out), out / "terminal.svg"
    lines, results = read_metrics(run / "metrics.jsonl"), read_info(run).results
    progress = Progress(
        int(lines[-1]["games"]),
        clock=lambda: progress.latest["time/seconds"],
        begun=0.0,
        phase="",
        metric="turns",
    )
    progress.random, progress.optimal = results["random"], results["optimal"]
    for line in lines[: len(lines) * 3 // 4]:
        progress.on_metrics(int(line["games"]), line)
    console = Console(record=True, width=80, height=24, force_terminal=True, file=io.StringIO())
    console.print(progress)
    page.write_text(console.export_svg(title="rlgames train"), encoding="utf-8")
    photographed(page.resolve().as_uri(), path, 994, 330)


def web(out: Path, path: Path) -> None:
    """A game of Connect 4 against the agent that comes with rlgames, with hints."""
    keys = ["4", "4", "3", "5", "6", "3"]
    _played("game=connect4&search=alphabeta", keys, "policy", path, (1280, 830), "light")


def web_narrow(out: Path, path: Path) -> None:
    """A duel on a narrow screen in the dark, with where the fleet may be."""
    cells = ["C3", "B2", "D4", "C2", "E3", "B4", "A3"]
    query = "game=salvo_duel&fleet=A2-A4 C1-D1 E4-E5"
    _played(query, cells, "ships", path, (400, 860), "dark")


def _played(
    query: str, moves: list[str], hints: str, path: Path, size: tuple[int, int], scheme: Scheme
) -> None:
    """Save the page after these moves: single keys, or cells to click."""
    words = ["serve", "open=false", "seed=4"]
    command = [sys.executable, "-u", "-m", "rlgames", *words]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        browser() as chromium,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().split()[1]
        viewport = dict(zip(("width", "height"), size, strict=True))
        page = chromium.new_page(viewport=viewport, color_scheme=scheme)
        page.goto(f"{address}?{query}")
        for move in moves:
            page.wait_for_selector("body[data-turn=you]:not([data-asks])")
            if len(move) == 1:
                page.keyboard.press(move)
            else:
                page.click(f".cell.open[data-name={move}]")
        page.wait_for_selector("body[data-turn=you]:not([data-asks])")
        page.check(f"input[value={hints}]", force=True)
        page.wait_for_selector("#advice li")
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        _save(page, path)
        server.send_signal(signal.SIGINT)


DRAWN: dict[str, Callable[[Path, Path], None]] = {
    "terminal": terminal,
    "tensorboard": tensorboard,
    "web": web,
    "web_narrow": web_narrow,
}
"""Every picture by its name, and what makes it: called with --out and the path."""


def photographed(url: str, path: Path, width: int, height: int) -> None:
    """Save a page as it looks when it has loaded."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.goto(url, wait_until="networkidle", timeout=120_000)
        page.wait_for_timeout(5000)  # TensorBoard draws pictures as they come into sight
        _save(page, path)


def _save(page: Any, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with Image.open(io.BytesIO(page.screenshot())) as drawn:
        drawn.convert("RGB").quantize(COLORS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/screenshots"))
    parser.add_argument("--only", nargs="+", choices=DRAWN, default=list(DRAWN))
    words = parser.parse_args()
    for name in words.only:
        DRAWN[name](words.out, PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
