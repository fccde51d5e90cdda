"""Makes the pictures of the README from real runs: docs/pictures/*.png.

Beside rlgames it needs Chromium (Debian: apt-get install chromium), which it starts without a
window. They are trained once, into --out, in some three minutes on two cores. Usage:

    python scripts/screenshots.py [--out outputs/screenshots] [--only tensorboard ...]
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
from rlgames.runs.files import read_metrics, read_run

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SWEEP = [
    "game=connect4",
    "games=20000",
    "eval_every=1000",
    "lr=0.0005,0.001,0.002",
    "learner.epochs=1,2",
]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PAGES = {
    "tensorboard": ("images&tagFilter=position_&regexInput=%5E5_", 1400, 1130),
    "scalars": ("custom_scalars", 1400, 480),
}
"""Of TensorBoard, by the name of the picture: its address, the width and the height in pixels."""

PATIENCE = 120.0
"""Seconds in which TensorBoard has read the runs."""

COLOURS = 128
"""Fewer than there are, so that the pictures stay small."""


RUN = ["game=salvo", "board=4", "shots=2"]
"""What the terminal shows, three quarters through."""


def trained(out: Path) -> Path:
    """The sweep that the pictures show, trained or gone on with where it is not done."""
    sweep = out / "sweep"
    begun = (sweep / "sweep.json").exists()
    words = ["resume", str(sweep)] if begun else ["train", "-m", *SWEEP, f"out={sweep}"]
    subprocess.run([sys.executable, "-m", "rlgames", *words], check=True)
    return sweep


def tensorboard(out: Path, name: str) -> None:
    """A page of TensorBoard, beside all jobs of the sweep."""
    sweep = trained(out)
    server = program.TensorBoard()
    server.configure(argv=["tensorboard", "--logdir", str(sweep), "--port", "0"])
    url = server.launch()
    _wait_for(f"{url}data/runs", len(json.loads((sweep / "sweep.json").read_text())["jobs"]))
    page, width, height = PAGES[name]
    photographed(f"{url}#{page}", PICTURES / f"{name}.png", width, height)


def terminal(out: Path, name: str) -> None:
    """The live view of a training."""
    run, page = out / "run", out / f"{name}.svg"
    if not run.exists():
        subprocess.run([sys.executable, "-m", "rlgames", "train", *RUN, f"out={run}"], check=True)
    lines, results = read_metrics(run / "metrics.jsonl"), read_run(run)["results"]
    progress = Progress(int(lines[-1]["games"]), begun=0.0, phase="", metric="turns")
    progress.random, progress.optimal = results["random"], results["optimal"]
    for line in lines[: len(lines) * 3 // 4]:
        progress.on_metrics(int(line["games"]), line)
    seconds = progress.latest["time/seconds"]
    console = Console(record=True, width=80, height=24, force_terminal=True, file=io.StringIO())
    console.print(RenderedView(progress, lambda: seconds))
    page.write_text(console.export_svg(title="rlgames train"), encoding="utf-8")
    photographed(page.resolve().as_uri(), PICTURES / f"{name}.png", 994, 330)


DRAWN: dict[str, Callable[[Path, str], None]] = {
    "terminal": terminal,
    **dict.fromkeys(PAGES, tensorboard),
}
"""Every picture by its name, and what makes it: called with --out and the name."""


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
            page.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/screenshots"))
    parser.add_argument("--only", nargs="+", choices=DRAWN, default=list(DRAWN))
    words = parser.parse_args()
    for name in words.only:
        DRAWN[name](words.out, name)


if __name__ == "__main__":
    main()
