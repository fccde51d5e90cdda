"""Makes the figures of docs/sweep.md in docs/pictures/ by running the commands of its section, and
the picture of each game by its page's `rlgames show`.

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
    for picture in sorted((DOCS / "pictures").rglob("*.*")):
        made = out / picture.relative_to(DOCS / "pictures")
        if made.exists():
            shutil.copy(made, picture)
            print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


def run(words: list[str], folder: Path) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
