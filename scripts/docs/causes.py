"""Makes docs/pictures/causes.png: what shows each cause of docs/does-not-learn.md, next to a run
that learns. The runs take some minutes; those that are in --out already are not trained again.

    python scripts/docs/causes.py [--out outputs/causes]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import rlgames
from rlgames.drawing.figures import WIDTHS, Line, Panel, draw_panels, save_figure
from rlgames.runs.files import read_metrics

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "causes.png"

SHORT = ["solve_seconds=0", "logger=null"]

HEALTHY = {
    "battleship": "experiment=battleship games=6000 eval_every=600",
    "tictactoe": "experiment=tictactoe_mlp games=20480 batch=512 log_every=1024 eval_every=4096",
    "ntuple": "experiment=tictactoe_ntuple games=10000 log_every=1000 eval_every=1000",
    "dqn": "experiment=battleship learner=dqn games=4096 batch=128 log_every=256 eval_every=512 "
    "lr=0.001 learner.updates_per_batch=16",
    "alphazero": "experiment=tictactoe_alphazero games=3000 log_every=250 eval_every=500",
}
"""Runs that learn, by name."""

CAUSES = {
    "all moves return the same": ("battleship", "reward.discount=0", "train/return_std"),
    "the learning rate is used up": (
        *("battleship", "learner.lr_end=0 schedule_games=300", "train/lr"),
    ),
    "no update changes the policy": ("battleship", "lr=1e-7", "train/approx_kl"),
    "the first steps were too large": ("battleship", "lr=0.3", "train/grad_norm"),
    "rewards are too large": ("battleship", "reward.scale=1000", "train/grad_norm"),
    "it stopped exploring": (
        "battleship",
        "learner=reinforce learner.baseline=none batch=16 lr=0.02 learner.entropy_coef=0",
        "train/entropy",
    ),
    "the entropy bonus wins": (
        *("battleship", "learner.entropy_coef=5 learner.entropy_coef_end=5", "train/entropy"),
    ),
    "draws pay as much as wins": ("tictactoe", "reward.draws=[1.0,1.0]", "eval/points"),
    "it learns to lose": ("tictactoe", "reward.win=-1 reward.loss=1", "eval/points"),
    "values cannot fit": ("ntuple", "policy.tuples=[[0,1]]", "train/td_error"),
    "Q values explode": (
        *("dqn", "lr=0.3 learner.polyak_tau=1 learner.max_grad_norm=null", "train/q_max"),
    ),
    "the search is too small": ("alphazero", "search.simulations=2", "eval/points"),
}
"""By cause: the run that learns, what is changed in it, and the metric that shows it."""

COLUMNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/causes"))
    out = parser.parse_args().out
    panels = []
    for cause, (twin, change, metric) in CAUSES.items():
        words = HEALTHY[twin].split()
        runs = {
            "a run that learns": trained(out / twin, words),
            "the run with this cause": trained(
                out / cause.replace(" ", "_"), words + change.split()
            ),
        }
        lines = [curve(label, run, metric) for label, run in runs.items()]
        panels.append(Panel(cause, "fraction of the games", metric, lines))
    rows = [panels[first : first + COLUMNS] for first in range(0, len(panels), COLUMNS)]
    save_figure(draw_panels(rows, WIDTHS["page"]), PICTURE)


def trained(run: Path, words: list[str]) -> Path:
    """The directory of a run, which is trained unless it is there."""
    if not run.exists():
        rlgames.train([*words, *SHORT, f"out={run}"])
    return run


def curve(label: str, run: Path, metric: str) -> Line:
    lines = [line for line in read_metrics(run / "metrics.jsonl") if metric in line]
    games = np.array([line["games"] for line in lines])
    return Line(label, games / games[-1], np.array([line[metric] for line in lines]))


if __name__ == "__main__":
    main()
