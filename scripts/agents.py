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
from rlgames.runs.shipped import FOLDER

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
    "breakthrough": [
        *("experiment=null", "game=breakthrough", "rows=6", "columns=6", "reward=outcome"),
        *("games=20000", "batch=512", "policy.layers=[32,32]", "learner.entropy_coef_end=0.01"),
        *("eval_every=4000", "solve_seconds=0"),
    ],
    "connect4": [
        *("experiment=connect4_alphazero", "games=8000", "batch=256", "policy.layers=[128,128]"),
        *("learner.updates_per_batch=50", "eval_every=1000", "eval_games=200", "solve_seconds=0"),
    ],
    "gomoku": [
        *("experiment=null", "game=gomoku", "board=9", "reward=outcome", "games=20000"),
        *("batch=512", "policy.layers=[64,64]", "learner.entropy_coef_end=0.01"),
        *("eval_every=4000", "solve_seconds=0"),
    ],
    "hex": [
        *("experiment=null", "game=hex", "board=7", "reward=outcome", "games=20000"),
        *("batch=512", "policy.layers=[64,64]", "learner.entropy_coef_end=0.01"),
        *("eval_every=4000", "solve_seconds=0"),
    ],
    "othello": [
        *("experiment=null", "game=othello", "board=6", "reward=outcome", "games=20000"),
        *("batch=512", "policy.layers=[64,64]", "learner.entropy_coef_end=0.01"),
        *("eval_every=4000", "solve_seconds=0"),
    ],
    "salvo": [
        *("game=salvo", "games=100000", "lr=0.002", "policy.layers=[128]"),
        *("log_every=10000", "eval_every=20000"),
    ],
    "salvo_duel": [
        *("game=salvo_duel", "games=5000", "policy.channels=[16,16]", "log_every=1000"),
        *("eval_every=2500", "eval_games=100", "solve_seconds=0"),
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
