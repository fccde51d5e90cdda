"""Measures rlgames, alone and beside others, and writes the tables of the benchmark pages.

    cd scripts/bench
    python bench.py                      # all that needs no other libraries: make bench
    python bench.py peers                # all that does: make bench-peers makes .venv-bench
    python bench.py mctx sb3 --rounds 1  # parts, by name
    python bench.py cpp                  # 2048 next to C++: two copies in .venv-bench/cpp
    python bench.py --device cuda        # on a GPU, what runs there

Every part prints a table and puts it into its section of docs/dev/benchmarks.md, or of
docs/dev/benchmarks_gpu.md for a GPU. docs/benchmarks.md summarizes them by hand.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bench_cpp
import bench_play
import bench_search
import bench_train
import torch
from bench_tools import PEERS, ROOT, progress

from rlgames.core.text import with_section
from rlgames.runs.log import processor

DOCS = ROOT / "docs"
PAGES = {"cpu": DOCS / "dev" / "benchmarks.md", "cuda": DOCS / "dev" / "benchmarks_gpu.md"}
"""By device."""


@dataclass(frozen=True)
class Part:
    """A section of the page. table: makes it, given rounds=, and device= where on_gpu. rounds: the
    default. needs: a path without which it cannot be measured."""

    table: Callable[..., str]
    rounds: int = 3
    needs: Path = ROOT
    on_gpu: bool = False


PARTS = {
    "plies_pgx": Part(bench_play.beside_pgx, rounds=5, needs=PEERS),
    "plies_envpool": Part(bench_play.beside_envpool, rounds=3, needs=PEERS),
    "learners": Part(bench_train.learners, rounds=2, on_gpu=True),
    "start": Part(bench_train.starting, rounds=3),
    "mctx": Part(bench_search.beside_mctx, needs=PEERS),
    "playouts": Part(bench_search.beside_openspiel, needs=PEERS),
    "sb3": Part(bench_train.beside_sb3, needs=PEERS),
    "cpp": Part(bench_cpp.beside_cpp, rounds=5, needs=bench_cpp.SOURCES),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join([*PARTS, "peers"]))
    parser.add_argument("--rounds", type=int, help="of every part, in place of its own")
    parser.add_argument("--device", choices=PAGES, default="cpu", help="which has its own pages")
    chosen = parser.parse_args()
    names = chosen.parts
    if names in ([], ["peers"]):
        needs = PEERS if names else ROOT
        names = [name for name, part in PARTS.items() if part.needs == needs]
    unknown = set(names) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    for path in {PARTS[name].needs for name in names}:
        if not path.exists():
            parser.error(f"{path} is missing; make bench-peers installs the peers")
    if chosen.device != "cpu":
        names = [name for name in names if PARTS[name].on_gpu]
    return max([run(name, chosen.rounds, chosen.device) for name in names], default=0)


def run(name: str, rounds: int | None, device: str) -> int:
    """Measure, print and write one part; 3 where that failed, which stands on the page, too."""
    part, code = PARTS[name], 0
    progress(f"{name}: begun")
    torch.set_num_threads(1)
    words = {"device": device} if part.on_gpu else {}
    try:
        table = part.table(rounds=rounds or part.rounds, **words)
    except Exception as error:  # reported on the page; the other parts are measured
        table, code = f"Not measured: {type(error).__name__}: {error}", 3
    print(f"\n{name}\n\n{table}\n", flush=True)
    text = f"{table}\n\n{how(name, rounds or part.rounds, device)}\n"
    page = PAGES[device]
    page.write_text(with_section(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
    return code


def how(name: str, rounds: int, device: str) -> str:
    """Where, when and how a table was measured."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    where = f"{processor()}, {datetime.date.today()}{load}"
    of = f"medians of {rounds} rounds and their range" if rounds > 1 else "one round"
    command = f".venv/bin/python scripts/bench/bench.py {name}"
    if device != "cpu":
        where, command = f"{torch.cuda.get_device_name()}, {where}", f"{command} --device {device}"
    return f"{where}; {of}. Regenerate: `{command}`."


if __name__ == "__main__":
    sys.exit(main())
