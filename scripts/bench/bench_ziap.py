"""n-tuple learning of 2048 next to ziap/2048-tdl, in C++, with the same tuples and step sizes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from bench_tools import FOUR_TUPLES, ROOT, in_turn, ratio, rows
from bench_train import trained

SOURCE = ROOT / ".venv-bench" / "2048-tdl"
"""A copy of its repository."""

FLAGS = ["-std=c++17", "-O3", "-march=native", "-mtune=native", "-pthread"]
"""As in its makefile, which also downloads what its window needs."""

DEFINES = ["-DSTRUCTURE=nw4x6", '-DFILE_NAME="/dev/null"', "-DGUI=false"]

HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Memory in huge pages, which numpy asks for by itself."""

LEARNERS = {
    "TD(0)": (["-a0.1", "-l0"], ["learner.step_size=constant", "learner.td_lambda=0", "lr=0.1"]),
    "temporal coherence, TD(0.5)": (["-c", "-a1", "-l0.5"], ["lr=1"]),
}
"""By name its words and ours."""

GAMES = 3000
"""Both learn so many whole games; the speed is that of the last thousand."""


def beside_ziap(rounds: int) -> str:
    """Moves learned per second."""
    body = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "2048"
        command = ["g++", *FLAGS, *DEFINES, "-o", str(program), str(SOURCE / "src" / "2048.cpp")]
        subprocess.run(command, check=True)
        for name, (its_words, words) in LEARNERS.items():
            for threads in (1, 2):
                learn = [str(program), "train", f"-e{GAMES // 1000}", f"-t{threads}", *its_words]
                sides = {
                    "rlgames": partial(_our_speed, [*words, f"learner.threads={threads}"]),
                    "C++": partial(_its_speed, learn, {}),
                    "C++, huge pages": partial(_its_speed, learn, HUGE_PAGES),
                }
                ours, peer, huge = in_turn(sides, rounds).values()
                speeds = [ours.text(), peer.text(), ratio(ours, peer)]
                body.append([name, str(threads), *speeds, huge.text(), ratio(ours, huge)])
    head = ["learner", "threads", "rlgames", "C++", "ratio", "C++, huge pages", "ratio"]
    return rows(head, body)


def _our_speed(words: list[str]) -> float:
    whole_games = [*FOUR_TUPLES, "window=null", "restart_fraction=0", "batch=500"]
    brief = [f"games={GAMES}", "log_every=1000", f"eval_every={GAMES}", "eval_games=1"]
    lines, _ = trained([*whole_games, *brief, *words], 0)
    return [line["time/moves_per_s"] for line in lines if "train/turns" in line][-1]


def _its_speed(command: list[str], environment: dict[str, str]) -> float:
    printed = subprocess.run(
        command, env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout
    return float(re.findall(r"m/s: +(\d+)", printed)[-1])
