"""Makes the figures of docs/sweep.md in docs/pictures/ by running the commands of its section, the
picture of each game by its page's `rlgames show`, causes.png of docs/does-not-learn.md, which shows
each cause next to a run that learns, and values.gif of the README, a game of the bundled Connect 4
agent.

Everything is trained once, into --out, in some minutes. Usage:

    python scripts/docs/figures.py [--out outputs/figures]
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import rlgames
from rlgames.drawing.figures import WIDTHS, Line, Panel, draw_panels, save_figure
from rlgames.drawing.images import draw_scene, encode_gif
from rlgames.drawing.pictures import ActionOverlay, position_scene
from rlgames.games.game import State
from rlgames.players.scripted import WinOrBlock
from rlgames.rng import Rng
from rlgames.rollouts.play import collect_games
from rlgames.runs.files import read_metrics
from rlgames.training.pictures import action_overlays

DOCS = Path(__file__).resolve().parents[2] / "docs"

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
    "all moves return the same": "battleship reward.discount=0 train/return_std",
    "the learning rate is used up": "battleship learner.lr_end=0 schedule_games=300 train/lr",
    "no update changes the policy": "battleship lr=1e-7 train/approx_kl",
    "the first steps were too large": "battleship lr=0.3 train/grad_norm",
    "rewards are too large": "battleship reward.scale=1000 train/grad_norm",
    "it stopped exploring": "battleship learner=reinforce learner.baseline=none batch=16 lr=0.02 "
    "learner.entropy_coef=0 train/entropy",
    "the entropy bonus wins": "battleship learner.entropy_coef=5 learner.entropy_coef_end=5 "
    "train/entropy",
    "draws pay as much as wins": "tictactoe reward.draws=[1.0,1.0] eval/points",
    "it learns to lose": "tictactoe reward.win=-1 reward.loss=1 eval/points",
    "values cannot fit": "ntuple policy.tuples=[[0,1]] train/td_error",
    "Q values explode": "dqn lr=0.3 learner.polyak_tau=1 learner.max_grad_norm=null train/q_max",
    "the search is too small": "alphazero search.simulations=2 eval/points",
}
"""By cause: the run that learns, what is changed in it, and the metric that shows it."""

COLUMNS = 3

WIDTH, MAX_BYTES = 400, 2_000_000
"""Of values.gif: pixels of the board, and bytes of the file."""


def commands(page: Path, section: str = "") -> list[list[str]]:
    """The words of each command on a page, or in one of its sections."""
    text = page.read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/figures"))
    out = parser.parse_args().out
    (out / "games").mkdir(parents=True, exist_ok=True)
    for words in commands(DOCS / "sweep.md", "Figures"):
        if words[1] == "train" and (out / "study").exists():
            words = ["rlgames", "resume", "study"]
        run(words[: words.index(">")] if ">" in words else words, out)
    for page in sorted((DOCS / "games").glob("*.md")):
        for words in commands(page):
            if words[1] == "show":
                run(words, out / "games")
    draw_causes(out / "causes.png")
    draw_values(out / "values.gif")
    for picture in sorted((DOCS / "pictures").rglob("*.*")):
        made = out / picture.relative_to(DOCS / "pictures")
        if made.exists():
            shutil.copy(made, picture)
            print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


def run(words: list[str], folder: Path) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=folder, check=True)


def draw_values(picture: Path) -> None:
    """A game of the bundled Connect 4 agent against win_or_block, with the values of its moves."""
    agent, rng = rlgames.load("connect4"), Rng(0, "values", "cpu")
    game = agent.game
    moves, final = collect_games(game, [agent, WinOrBlock(game)], 1, rng)
    frames: list[tuple[State, int, str, ActionOverlay | None, int | None]] = []
    for ply, overlay in enumerate(action_overlays(game, agent.policy, moves.state)):
        is_agent, column = int(moves.player[ply]) == 0, int(moves.action[ply])
        who = f"The agent: {overlay.labels[column]}" if is_agent else "Its opponent"
        shown = overlay if is_agent else None
        frames.append((moves.state, ply, f"{who}, column {column + 1}", shown, column))
    won = {1.0: "The agent wins", 0.0: "A draw", -1.0: "The agent loses"}[float(final.score[0, 0])]
    frames.append((final.state, 0, won, None, None))
    scenes = [position_scene(game, *frame, width=WIDTH) for frame in frames]
    picture.write_bytes(encode_gif([*map(draw_scene, scenes)], MAX_BYTES))


def draw_causes(picture: Path) -> None:
    """Train the runs of each cause, and draw the metric that shows it."""
    panels = []
    for cause, text in CAUSES.items():
        twin, *change, metric = text.split()
        words, own = HEALTHY[twin].split(), picture.parent / "causes"
        learns = curve("a run that learns", own / twin, words, metric)
        label, run = "the run with this cause", own / cause.replace(" ", "_")
        lines = [learns, curve(label, run, words + change, metric)]
        panels.append(Panel(cause, "fraction of the games", metric, lines))
    rows = [panels[first : first + COLUMNS] for first in range(0, len(panels), COLUMNS)]
    save_figure(draw_panels(rows, WIDTHS["page"]), picture)


def curve(label: str, run: Path, words: list[str], metric: str) -> Line:
    """The curve of a run, which is trained unless it is there."""
    if not run.exists():
        rlgames.train([*words, "solve_seconds=0", "logger=null", f"out={run}"])
    lines = [line for line in read_metrics(run / "metrics.jsonl") if metric in line]
    games = np.array([line["games"] for line in lines])
    return Line(label, games / games[-1], np.array([line[metric] for line in lines]))


if __name__ == "__main__":
    main()
