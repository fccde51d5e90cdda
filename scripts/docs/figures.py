"""Makes the figures of docs/figures.md in docs/pictures/ by running the commands of that page, and
a picture of each game with what its bundled agent would do.

The study is trained once, into --out, in a few minutes. Usage:

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

DOCS = Path(__file__).resolve().parents[2] / "docs"

BOARDS = {
    "2048": "2 16 64 256 / . 8 32 128 / . . 4 16 / . . . 2",
    "battleship": ". . . . x . o . . .",
    "breakthrough": "",
    "connect4": "/".join(
        [". . . . . . ."] * 3 + [". . . O . . .", ". . . X . . .", ". . X O X . ."]
    ),
    "gomoku": "/".join([". . . . . . . . ."] * 3 + [". . . X . . . . .", ". . . . X O . . ."])
    + "/. . . O X . . . ."
    + "/. . . . . . . . ." * 3,
    "hex": "",
    "othello": "",
    "salvo": ". . . . / . o . . / . . x . / . . . .",
    "salvo_duel": "",
    "tictactoe": "X . O / . X . / . . O",
}
"""A position of each game for its page; without one, the first."""


def commands() -> list[list[str]]:
    """The words of each command on the page."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "figures.md").read_text(), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/figures"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for words in commands():
        if words[1] == "train" and (out / "study").exists():
            words = ["rlgames", "resume", "study"]
        command = words[: words.index(">")] if ">" in words else words
        subprocess.run([sys.executable, "-m", *command], cwd=out, check=True)
    (DOCS / "pictures" / "games").mkdir(exist_ok=True)
    for game, board in BOARDS.items():
        words = ["rlgames", "show", game, f"picture=games/{game}.svg", "solve_seconds=0"]
        words += [f"state={board}"] if board else []
        (out / "games").mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", *words], cwd=out, check=True)
    for picture in sorted((DOCS / "pictures").rglob("*.*")):
        made = out / picture.relative_to(DOCS / "pictures")
        if made.exists():
            shutil.copy(made, picture)
            print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
