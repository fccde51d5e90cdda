"""Makes the figures of docs/sweep.md in docs/pictures/ by running the commands of its section, the
picture of each game by its page's `rlgames show`, and values.gif of the README, a game of the
bundled Connect 4 agent.

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

import rlgames
from rlgames.drawing.images import draw_scene, encode_gif
from rlgames.drawing.pictures import ActionOverlay, position_scene
from rlgames.games.game import State
from rlgames.players.scripted import WinOrBlock
from rlgames.rng import Rng
from rlgames.rollouts.play import collect_games
from rlgames.training.pictures import action_overlays

DOCS = Path(__file__).resolve().parents[2] / "docs"

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


if __name__ == "__main__":
    main()
