"""Makes the pictures of the README from one real run: docs/pictures/terminal.png, tensorboard.png.

It needs Chromium (Debian: apt-get install chromium), which it starts without a window. The run is
trained once, into --out, in less than a minute. Usage:

    python scripts/docs/screenshots.py [--out outputs/screenshots] [--only tensorboard ...]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from rich.console import Console
from tensorboard import program

from rlgames.cli.live_view import RenderedView
from rlgames.cli.progress import Progress
from rlgames.runs.files import read_metrics
from rlgames.runs.run_info import read_info

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
RUN = ["game=salvo", "board=4", "shots=2"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PAGE = "images&tagFilter=position_"
"""Of TensorBoard."""

PATIENCE = 120.0
"""Seconds in which TensorBoard has read the runs."""

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
    _wait_for(f"{url}data/runs", 1)
    photographed(f"{url}#{PAGE}", path, 1400, 1200)


def terminal(out: Path, path: Path) -> None:
    """The live view of the training, three quarters through."""
    run, page = trained(out), out / "terminal.svg"
    lines, results = read_metrics(run / "metrics.jsonl"), read_info(run).results
    progress = Progress(int(lines[-1]["games"]), begun=0.0, phase="", metric="turns")
    progress.random, progress.optimal = results["random"], results["optimal"]
    for line in lines[: len(lines) * 3 // 4]:
        progress.on_metrics(int(line["games"]), line)
    seconds = progress.latest["time/seconds"]
    console = Console(record=True, width=80, height=24, force_terminal=True, file=io.StringIO())
    console.print(RenderedView(progress, lambda: seconds))
    page.write_text(console.export_svg(title="rlgames train"), encoding="utf-8")
    photographed(page.resolve().as_uri(), path, 994, 330)


DRAWN: dict[str, Callable[[Path, Path], None]] = {"terminal": terminal, "tensorboard": tensorboard}
"""Every picture by its name, and what makes it: called with --out and the path."""


def _wait_for(url: str, count: int) -> None:
    """Wait until the list at url has `count` items. Raises TimeoutError."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with urllib.request.urlopen(url) as answer:
            if len(json.load(answer)) >= count:
                return
        time.sleep(1)
    raise TimeoutError(f"TensorBoard has not read {count} runs in {PATIENCE:g} s")


def photographed(url: str, path: Path, width: int, height: int) -> None:
    """Save a page as it looks when it has loaded."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        sys.exit("screenshots.py needs Chromium; as in: apt-get install chromium")
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "page.png"
        subprocess.run(
            [
                browser,
                *OPTIONS,
                *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root has none
                f"--user-data-dir={folder}/profile",
                f"--window-size={width},{height}",
                "--virtual-time-budget=30000",
                f"--screenshot={drawn}",
                url,
            ],
            check=True,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
        with Image.open(drawn) as page:
            page.convert("RGB").quantize(COLORS).save(path, optimize=True)
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
