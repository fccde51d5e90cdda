"""Measures rlgames, alone and beside others, and writes docs/benchmarks.md or its GPU page.

    cd scripts/bench
    python bench.py                      # all that needs no other libraries: make bench
    python bench.py peers                # all that does: make bench-peers makes .venv-bench
    python bench.py play sb3 --rounds 1  # parts, by name
    python bench.py ziap --ziap FOLDER   # 2048 next to C++, given the source of ziap/2048-tdl
    python bench.py --device cuda        # on a GPU, what runs there: docs/benchmarks_gpu.md

Every part prints a table and puts it into its section of the page.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bench_kernels
import bench_play
import bench_search
import bench_start
import bench_train
import bench_ziap
import torch
from bench_tools import PEERS, ROOT, progress, write_section

PAGES = {"cpu": ROOT / "docs" / "benchmarks.md", "cuda": ROOT / "docs" / "benchmarks_gpu.md"}
"""By device."""


@dataclass(frozen=True)
class Part:
    """A section of the page. table: makes it, given rounds=, and device= where on_gpu. rounds: the
    default. peers: whether it needs the peers' environment."""

    table: Callable[..., str]
    rounds: int = 3
    peers: bool = False
    on_gpu: bool = False


PARTS = {
    "play": Part(bench_play.alone, on_gpu=True),
    "train": Part(bench_train.beside_hand),
    "td_compiled": Part(bench_kernels.td_compiled),
    "learners": Part(bench_train.learners, rounds=2, on_gpu=True),
    "search": Part(bench_search.searching, rounds=3, on_gpu=True),
    "connect4": Part(bench_kernels.connect4, rounds=1),
    "belief": Part(bench_kernels.belief, rounds=1),
    "start": Part(bench_start.starting, rounds=3),
    "memory": Part(bench_start.memory, rounds=1),
    "pgx": Part(bench_play.beside_pgx, peers=True),
    "mctx": Part(bench_search.beside_mctx, peers=True),
    "openspiel": Part(bench_play.beside_openspiel, peers=True),
    "sb3": Part(bench_train.beside_sb3, peers=True),
    "maskable_ppo": Part(bench_train.beside_maskable_ppo, peers=True),
    "ziap": Part(bench_ziap.beside_ziap, rounds=5),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join([*PARTS, "peers"]))
    parser.add_argument("--rounds", type=int, help="of every part, in place of its own")
    parser.add_argument("--device", choices=PAGES, default="cpu", help="which has its own page")
    parser.add_argument("--ziap", type=Path, help="the source of ziap/2048-tdl, for the part ziap")
    chosen = parser.parse_args()
    if chosen.ziap:
        PARTS["ziap"] = Part(partial(bench_ziap.beside_ziap, chosen.ziap), rounds=5)
    elif "ziap" in chosen.parts:
        parser.error("ziap needs --ziap FOLDER, the source of ziap/2048-tdl")
    names = [name for name, part in PARTS.items() if not part.peers]
    names = [name for name in names if name != "ziap" or chosen.ziap]
    if chosen.parts == ["peers"]:
        names = [name for name, part in PARTS.items() if part.peers]
    elif chosen.parts:
        names = chosen.parts
    unknown = set(names) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
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
        if part.peers and not PEERS.exists():
            raise RuntimeError("the peers are not there: make bench-peers installs them")
        table = part.table(rounds=rounds or part.rounds, **words)
    except Exception as error:  # reported on the page; the other parts are measured
        table, code = f"Not measured: {type(error).__name__}: {error}", 3
    print(f"\n{name}\n\n{table}\n", flush=True)
    write_section(PAGES[device], name, f"{table}\n\n{how(name, rounds or part.rounds, device)}\n")
    return code


def how(name: str, rounds: int, device: str) -> str:
    """Where, when and how a table was measured."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    where = f"{processor()}, {datetime.date.today()}{load}"
    of = f"medians of {rounds} rounds and their range" if rounds > 1 else "one round"
    command = f".venv/bin/python scripts/bench/bench.py {name}"
    command += " --ziap FOLDER" if name == "ziap" else ""
    if device != "cpu":
        where, command = f"{torch.cuda.get_device_name()}, {where}", f"{command} --device {device}"
    return f"{where}; {of}. Regenerate: `{command}`."


def processor() -> str:
    """What this is measured on, as the system names it."""
    names = set()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = {line.partition(":")[2].strip() for line in lines if "model name" in line}
    return f"{', '.join(sorted(names)) or 'unknown processor'}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
