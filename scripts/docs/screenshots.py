"""Makes the screenshots of docs/train.md and docs/play.md in docs/pictures.

It needs Chromium (Debian: apt-get install chromium) and the extra browser. The run of the terminal
is trained once, into --out, in less than a minute. Usage:

    python scripts/docs/screenshots.py [--out outputs/screenshots]
"""

from __future__ import annotations

import argparse
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chromium import browser
from PIL import Image
from rich.console import Console

from rlgames.runs.files import read_info, read_metrics
from rlgames.terminal.progress import Progress

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
RUN = ["game=salvo", "board=4", "shots=2"]

EMPTY = ". . . . . . . / "
POSITION = 4 * EMPTY + ". . . O . . . / . . X X . . O"
"""Of the page: the second column makes three in a row with both ends open."""

COLORS = 128
"""Fewer than there are, so that the pictures stay small."""


def terminal(out: Path) -> None:
    """The live view of a training run, three quarters through."""
    run, drawn = out / "run", out / "terminal.svg"
    words = ["resume", str(run)] if run.exists() else ["train", *RUN, f"out={run}"]
    subprocess.run([sys.executable, "-m", "rlgames", *words], check=True)
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
    drawn.write_text(console.export_svg(title="rlgames train"), encoding="utf-8")
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 994, "height": 330})
        page.goto(drawn.resolve().as_uri(), wait_until="networkidle")
        save(page, PICTURES / "terminal.png", clip={"x": 0, "y": 28, "width": 994, "height": 274})


def web() -> None:
    """A position of Connect 4 where one move wins, with the values of the bundled agent."""
    command = [sys.executable, "-u", "-m", "rlgames", "serve", "open=false"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        browser() as chromium,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().split()[1]
        page = chromium.new_page(viewport={"width": 1280, "height": 710}, color_scheme="light")
        seats = "game=connect4&seat=you&seat=connect4&hints=policy"
        page.goto(f"{address}?{seats}&position={quote(POSITION)}")
        page.wait_for_selector("#advice li")
        save(page, PICTURES / "web.png")
        server.send_signal(signal.SIGINT)


def save(page: Any, path: Path, **options: Any) -> None:
    with Image.open(io.BytesIO(page.screenshot(**options))) as drawn:
        drawn.convert("RGB").quantize(COLORS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/screenshots"))
    terminal(parser.parse_args().out)
    web()


if __name__ == "__main__":
    main()
