"""Exports the bundled agents, measures them in Chromium, and writes the table and the pictures of
docs/export.md. It needs Chromium and the extra browser. Usage:

    python scripts/docs/exported_pages.py [--out outputs/pages] [--games 3]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numba
import torch
from chromium import browser
from screenshots import PICTURES, save

from rlgames.build.agents import open_run
from rlgames.build.players import with_search
from rlgames.config.commands import ExportConfig
from rlgames.config.compose import load_config
from rlgames.core.text import with_section
from rlgames.rng import Rng
from rlgames.runs.find import find_run
from rlgames.runs.log import processor

PAGE = PICTURES.parent / "export.md"

MCTS = ("search=mcts", "search.leaf=value")
AGENTS: dict[str, tuple[str, ...]] = {
    "tictactoe": (),
    "connect4": ("search=alphabeta",),
    "othello": ("search=alphabeta", "search.plies=3"),
    "hex": MCTS,
    "gomoku": ("search=alphabeta", "search.plies=4"),
    "breakthrough": ("search=alphabeta",),
    "2048": ("search=expectimax",),
    "battleship": (),
    "salvo": (),
}
ALONE = ("2048", "battleship", "salvo")
"""The games of one seat."""

MEASURE = """async ({ games, seats, search }) => {
  let moves = 0, milliseconds = 0;
  for (let game = 0; game < games; game += 1) {
    let view = await askWorker("api/sessions", { seats, search });
    while (view.turn !== "over" && view.plies < 200) {
      const start = performance.now();
      view = await askWorker("api/sessions/1", { do: "reply", ply: view.plies });
      milliseconds += performance.now() - start;
      moves += 1;
    }
  }
  return milliseconds / moves;
}"""
"""Milliseconds from asking the worker for a move to its answer, which has the board drawn."""


def exported(name: str, words: tuple[str, ...], out: Path) -> tuple[Path, dict[str, Any], float]:
    """The page of an agent, what the command says, and the seconds of processor time it takes."""
    path = out / f"{name}.html"
    command = [sys.executable, "-m", "rlgames", "export", name, *words, f"out={path}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([*command, "format=json"], check=True, capture_output=True, text=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return path, json.loads(done.stdout), seconds


def python_milliseconds(name: str, words: tuple[str, ...], games: int) -> float:
    """Milliseconds a move of the same player in Python, one position at a time."""
    cfg = load_config(ExportConfig, [name, *words])
    run, rng = open_run(find_run(name, is_player=False)), Rng(0)
    agent = run.agent(cfg.sampling, torch.device("cpu"))
    player, game = with_search(agent, agent.game, cfg.search, run.config.reward), agent.game
    seconds, moves = 0.0, 0
    for number in range(games + 1):
        played = rng.fold_in(number)
        state = game.initial(1, played)
        while not bool(state.done) and int(state.turn) < 200:
            begin, ply = time.perf_counter(), played.fold_in(1 + int(state.turn))
            action = player.choose(game.public(state), ply)
            if number:  # the first game compiles
                seconds, moves = seconds + time.perf_counter() - begin, moves + 1
            state = game.step(state, action, ply)
    return 1000 * seconds / moves


def measured(chromium: Any, name: str, words: tuple[str, ...], out: Path, games: int) -> str:
    """The row of an agent."""
    path, about, seconds = exported(name, words, out)
    page = chromium.new_page()
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("body[data-turn]:not([data-asks])")
    search = words[0].partition("=")[2] if words else None
    seats = [name] * (1 if name in ALONE else 2)
    given = {"games": games, "seats": seats, "search": search}
    page.evaluate(MEASURE, given | {"games": 1})
    in_browser = page.evaluate(MEASURE, given)
    in_python = python_milliseconds(name, words, games)
    size, code = (f"{about[key] / 1000:,.0f} kB" for key in ("size", "code"))
    row = (f"{name}{' with ' + search if search else ''}", size, code, f"{seconds:.0f} s")
    print(*row, in_browser, in_python, flush=True)
    return " | ".join([*row, f"{in_browser:.2g} ms", f"{in_python:.2g} ms"])


def pictures(chromium: Any, out: Path) -> None:
    """Pages after some moves, on a desktop and on a phone: of docs/export.md, and of all games."""
    for name in AGENTS:
        for kind, width, height in (("desktop", 1200, 800), ("phone", 390, 844)):
            page = chromium.new_page(
                viewport={"width": width, "height": height},
                color_scheme="light" if kind == "desktop" else "dark",
            )
            hints = "search" if "search=mcts" in AGENTS[name] else "policy"
            page.goto(f"{(out / f'{name}.html').resolve().as_uri()}?hints={hints}")
            page.wait_for_selector("#advice li")
            for number in range(4):
                if page.locator("body[data-turn=you] .cell.open").count():
                    cells = page.locator(".cell.target, .cell.open")
                    cells.nth(7 * number % cells.count()).click(force=True)
                else:
                    page.keyboard.press(("ArrowDown", "ArrowLeft")[number % 2])
                page.wait_for_selector("body[data-turn]:not(.is-waiting):not([data-asks])")
            save(page, out / f"{name}_{kind}.png")
    for name, kind in (("hex", "desktop"), ("othello", "phone")):
        (PICTURES / f"export_{kind}.png").write_bytes((out / f"{name}_{kind}.png").read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("outputs/pages"))
    parser.add_argument("--games", type=int, default=3)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    with browser() as chromium:
        rows = [
            measured(chromium, name, words, arguments.out, arguments.games)
            for name, words in AGENTS.items()
        ]
        pictures(chromium, arguments.out)
        version = chromium.version.partition(".")[0]
    head = "agent | file | code in it | CPU time to export | a move in Chromium | in Python"
    lines = [head, " | ".join(["---"] + ["---:"] * 5), *rows]
    note = (
        f"Measured on {processor()} with numba {numba.__version__} and Chromium {version}, "
        "`python scripts/docs/exported_pages.py`."
    )
    table = "\n".join(f"| {line} |" for line in lines)
    text = with_section(PAGE.read_text(encoding="utf-8"), "pages", f"{table}\n\n{note}\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
