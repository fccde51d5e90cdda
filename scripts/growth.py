"""Measures what grows in a long run: memory, open files, threads, and the files that it writes.

    python scripts/growth.py [--seconds 3600] [--out outputs/growth] [--picture FILE.png]

It trains, measures 180 times, stops the training, and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel

WORDS = ("game=salvo", "board=4", "shots=2", "log_every=1000", "eval_every=10000")
WORDS += ("save_every=10000", "games=1000000000")
"""A training that does not end; it logs and evaluates more often than by default."""

NUM_SAMPLES, COLUMNS = 180, 3

TABLE_FRACTIONS = (0.02, 0.25, 0.5, 0.75, 1.0)
"""The columns of the table, as fractions of the time."""


def main() -> None:
    """Run, measure, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--out", type=Path, default=Path("outputs/growth"))
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    samples = measure(options.out / "run", options.seconds)
    (options.out / "samples.json").write_text(json.dumps(samples))
    picture = options.picture or options.out / "growth.png"
    draw(samples, picture)
    print_table(samples)


def measure(run: Path, seconds: float) -> dict[str, list[float]]:
    """Train for this long, and measure the process and its files at equal intervals."""
    samples: dict[str, list[float]] = {}
    words = ["train", *WORDS, f"out={run}"]
    process = subprocess.Popen([sys.executable, "-m", "rlgames", *words], stdout=subprocess.DEVNULL)
    start = time.monotonic()
    try:
        for number in range(1, NUM_SAMPLES + 1):
            time.sleep(max(0.0, start + number * seconds / NUM_SAMPLES - time.monotonic()))
            if process.poll() is not None:
                sys.exit(f"the training ended with exit code {process.returncode}")
            for name, value in measure_once(process.pid, run).items():
                samples.setdefault(name, []).append(value)
            samples.setdefault("minutes", []).append((time.monotonic() - start) / 60)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    return samples


def measure_once(pid: int, run: Path) -> dict[str, float]:
    """What a process and the files of its run use now."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    sizes = {path: path.stat().st_size for path in run.rglob("*") if path.is_file()}
    of_kind = {
        "metrics.jsonl, KiB": [run / "metrics.jsonl"],
        "event file, KiB": [path for path in sizes if "tfevents" in path.name],
        "checkpoints and pictures, KiB": [path for path in sizes if path.parent != run],
    }
    files = {name: sum(sizes.get(path, 0) for path in of_kind[name]) / 1024 for name in of_kind}
    return {
        "memory, MiB": int(status["VmRSS"].split()[0]) / 1024,
        "open files": float(len(os.listdir(f"/proc/{pid}/fd"))),
        "threads": float(status["Threads"]),
        **files,
    }


def draw(samples: Mapping[str, list[float]], path: Path) -> None:
    """Write a plot for each quantity, as a function of time."""
    minutes = np.array(samples["minutes"])
    panels = [
        Panel("", "minutes", name, [Line("", minutes, np.array(values))])
        for name, values in samples.items()
        if name != "minutes"
    ]
    rows = [panels[first : first + COLUMNS] for first in range(0, len(panels), COLUMNS)]
    figures.save_figure(figures.draw_panels(rows, figures.WIDTHS["page"]), path)


def print_table(samples: Mapping[str, list[float]]) -> None:
    """The quantities at a few times."""
    rows = [round(fraction * (NUM_SAMPLES - 1)) for fraction in TABLE_FRACTIONS]
    table = Table("", *(f"{samples['minutes'][row]:.0f} min" for row in rows))
    for name, values in samples.items():
        if name != "minutes":
            table.add_row(name, *(f"{values[row]:,.0f}" for row in rows))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
