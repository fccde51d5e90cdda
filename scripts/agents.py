"""Trains the small agents that come with rlgames, rlgames/agents/*.safetensors.

Each takes up to three minutes on one thread. Usage:

    python scripts/agents.py [--only connect4 ...] [--out outputs/agents]
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import rlgames
from rlgames.core.untrusted import sanitized
from rlgames.runs.names import AGENTS as FOLDER

CONNECT4_CORNERS = {
    (0, 1, 2, 3, 7, 8, 9, 10): [row + column for row in (0, 7, 14, 21, 28) for column in (0, 1)],
    (0, 1, 7, 8, 14, 15, 21, 22): [row + column for row in (0, 7, 14) for column in (0, 1, 2)],
    (0, 1, 7, 8, 15, 16, 23, 24): [row + column for row in (0, 7, 14) for column in (0, 1, 2, 3)],
}
"""Blocks of 2x4 and 4x2 cells and two diagonals side by side, and the cells where they begin. Each
also stands for its mirror image."""

CONNECT4_TUPLES = str(
    [
        [corner + cell for cell in cells]
        for cells, corners in CONNECT4_CORNERS.items()
        for corner in corners
    ]
).replace(" ", "")

SMALL = ("policy.layers=[128,64]", "eval_every=4000")
"""Of the networks of AlphaZero."""

AGENTS = {
    "2048": [
        "game=2048",
        "policy.tuples=[[0,1,2,3],[4,5,6,7],[0,1,4,5],[1,2,5,6],[5,6,9,10]]",
        "policy.num_cell_values=12",
    ],
    "battleship": [
        *("game=battleship", "games=20000", "lr=0.003", "policy.layers=[64]"),
        *("log_every=2000", "eval_every=4000"),
    ],
    "breakthrough": ["experiment=breakthrough_alphazero", "games=12000", *SMALL],
    "connect4": [
        *("game=connect4", f"policy.tuples={CONNECT4_TUPLES}", "policy.num_cell_values=3"),
        *("games=2000000", "eval_every=2000000"),
    ],
    "gomoku": ["experiment=gomoku_alphazero", "games=8000", *SMALL],
    "hex": [
        *("experiment=null", "game=hex", "board=7", "reward=outcome", "games=20000"),
        *("batch=512", "policy.layers=[64,64]", "learner.entropy_coef_end=0.01"),
        *("eval_every=4000", "solve_seconds=0"),
    ],
    "othello": ["experiment=othello_alphazero", "games=8000", *SMALL],
    "salvo": [
        *("game=salvo", "games=100000", "lr=0.002", "policy.layers=[128]"),
        *("log_every=10000", "eval_every=20000"),
    ],
    "salvo_duel": [
        *("experiment=salvo_duel_occupancy", "games=20000", "eval_every=20000"),
        "solve_seconds=0",
    ],
    "tictactoe": ["experiment=hickman_tuned", "learner.backend=torch"],
}
"""The overrides of `rlgames train` that make each agent, by its game."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("outputs/agents"))
    parser.add_argument("--only", nargs="*", choices=[*AGENTS], default=[*AGENTS])
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name in arguments.only:
        run = arguments.out / name
        if not (run / "checkpoints" / "best.safetensors").exists():
            rlgames.train([*AGENTS[name], f"out={run}"])
        path = FOLDER / f"{name}.safetensors"
        shutil.copyfile(run / "checkpoints" / "best.safetensors", path)
        print(f"{sanitized(path)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
