"""n-tuple learning of 2048 next to two programs in C++, with the same tuples and step sizes."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial

from bench_tools import ROOT, in_turn, ratio, rows
from bench_train import trained

SOURCES = ROOT / ".venv-bench" / "cpp"
"""Copies of two repositories: ziap/2048-tdl in ziap, moporgic/TDL2048 in moporgic."""

BUILDS = {
    "ziap": "-std=c++17 -O3 -march=native -mtune=native -pthread -DSTRUCTURE=nw4x6 "
    '-DFILE_NAME="/dev/null" -DGUI=false src/2048.cpp',
    "moporgic": "-std=c++20 -O3 -march=native -mtune=native -pthread -DCOMMIT_ID=0 2048.cpp",
}
"""Flags as in their makefiles."""

HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Memory in huge pages, which numpy asks for by itself."""

THOUSANDS = 12
"""All learn so many thousand whole games; the speed is the median over the later half of them."""

TUPLES = [[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9], [0, 1, 2, 4, 5, 6], [4, 5, 6, 8, 9, 10]]
FOUR_TUPLES = ["experiment=2048_ntuple", f"policy.tuples={TUPLES}"]

LEARNERS = {
    "TD(0)": ("learner.step_size=constant lr=0.1", "-a0.1 -l0", "-a 0.1"),
    "temporal coherence, TD(0)": ("lr=1", "-c -a1 -l0", "-a 1.0"),
}
"""By name our words, and those of ziap and of moporgic."""


def beside_cpp(rounds: int) -> str:
    """Moves learned per second by one thread."""
    body = []
    with tempfile.TemporaryDirectory() as folder:
        for peer, flags in BUILDS.items():
            command = ["g++", *flags.split(), "-o", f"{folder}/{peer}"]
            subprocess.run(command, cwd=SOURCES / peer, check=True)
        for name, (words, ziap, moporgic) in LEARNERS.items():
            ziap = f"{folder}/ziap train -e{THOUSANDS} -t1 {ziap}"
            moporgic = f"{folder}/moporgic -n 4x6patt -t {THOUSANDS} {moporgic}"
            sides = {
                "rlgames": partial(_our_speed, words.split()),
                "ziap": partial(_its_speed, ziap.split(), r"m/s: +(\d+)"),
                "moporgic": partial(_its_speed, moporgic.split(), r"([\d.]+)ops"),
            }
            ours, *peers = in_turn(sides, rounds).values()
            compared = [cell for peer in peers for cell in (peer.text(), ratio(ours, peer))]
            body.append([name, ours.text(), *compared])
    return rows(["learner", "rlgames", "2048-tdl", "ratio", "TDL2048+", "ratio"], body)


def _our_speed(words: list[str]) -> float:
    games = 1000 * THOUSANDS
    whole_games = ["window=null", "restart_fraction=0", "batch=500", f"games={games}"]
    brief = ["log_every=1000", f"eval_every={games}", "eval_games=1", "learner.threads=1"]
    words = [*FOUR_TUPLES, *whole_games, *brief, "learner.td_lambda=0", *words]
    lines, _ = trained(words, 0)
    return _of_later_half([line["time/moves_per_s"] for line in lines if "train/turns" in line])


def _its_speed(command: list[str], pattern: str) -> float:
    printed = subprocess.run(
        command, env=os.environ | HUGE_PAGES, check=True, capture_output=True, text=True
    ).stdout
    return _of_later_half([*map(float, re.findall(pattern, printed))])


def _of_later_half(speeds: Sequence[float]) -> float:
    return statistics.median(speeds[len(speeds) // 2 :])
