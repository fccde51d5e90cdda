"""Whether two versions of rlgames learn the same to the last digit, for every learner.

    same_results.py record RLGAMES OUT.json     trains and evaluates the presets below
    same_results.py compare ONE.json TWO.json   exits with 1 if a number differs

RLGAMES is the command of a version, as .venv/bin/rlgames of a checkout. Record both on one machine:
floating-point results differ between processors.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = {
    "salvo": ["experiment=salvo", "games=20000"],
    "connect4_mlp": ["experiment=connect4_mlp", "games=6000"],
    "2048_ppo": ["experiment=2048_ppo", "games=512", "eval_games=64"],
    "landy": ["experiment=landy", "games=2000"],
    "ramesh_case1": ["experiment=ramesh_case1", "games=20000"],
    "tictactoe_dqn": ["experiment=tictactoe_dqn", "games=4000"],
    "hickman": ["experiment=hickman", "games=20000"],
    "tictactoe": ["experiment=tictactoe", "games=5000"],
    "connect4_ntuple": ["experiment=connect4_ntuple", "games=20000", "eval_games=200"],
    "2048_ntuple": ["experiment=2048_ntuple", "games=2048", "eval_games=100"],
    "2048_td_lambda": ["experiment=2048_td_lambda", "games=512", "eval_games=64"],
    "adp": ["experiment=dedieu_amar_adp", "games=60", "eval_games=40"],
    "cloning": ["experiment=dedieu_amar_adp_cloning", "games=40", "eval_games=40", "teacher={adp}"],
    "occupancy": ["experiment=ramesh_case2_occupancy", "games=6000"],
    "fleet": ["experiment=fleet", "games=512", "eval_games=100"],
    "othello_alphazero": ["experiment=othello_alphazero", "games=512", "eval_games=50"],
    "breakthrough_alphazero": ["experiment=breakthrough_alphazero", "games=256", "eval_games=50"],
    "hex_alphazero": ["experiment=hex_alphazero", "games=256", "eval_games=50"],
    "salvo_duel": ["experiment=salvo_duel", "games=2048", "eval_games=200"],
}
"""Every learner, every game but Gomoku, and each kind of policy, in a few seconds each."""

CLOCK = ("seconds", "_per_s", "_seconds", "time/", "started", "ended", "path", "player")
"""Parts of the names of numbers that depend on the clock or on where the run lies."""


def record(command: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: str(Path(folder) / name) for name in CASES}
        results = {}
        for name, words in CASES.items():
            start = time.perf_counter()
            typed = [word.format_map(runs) for word in words]
            rlgames(command, "train", *typed, f"out={runs[name]}", "seed=0", "threads=1")
            evaluated = rlgames(command, "eval", runs[name], "games=200", "format=json", "seed=1")
            lines = (Path(runs[name]) / "metrics.jsonl").read_text().splitlines()
            results[name] = {"metrics": [*map(json.loads, lines)], "eval": json.loads(evaluated)}
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    out.write_text(json.dumps(without_clock(results), indent=1))


def rlgames(command: str, *words: str) -> str:
    done = subprocess.run([command, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"rlgames {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def without_clock(tree: Any) -> Any:
    if isinstance(tree, list):
        return [without_clock(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    is_kept = {name: not any(part in name for part in CLOCK) for name in tree}
    return {name: without_clock(value) for name, value in tree.items() if is_kept[name]}


def compare(one: dict[str, Any], two: dict[str, Any]) -> int:
    """The exit code; prints the first difference of each case."""
    different = 0
    for name in [*one, *(two.keys() - one.keys())]:
        left, right = (leaves(each.get(name, {})) for each in (one, two))
        unequal = [key for key in left | right if left.get(key) != right.get(key)]
        print(f"{name}: {'equal' if not unequal else f'{len(unequal)} of {len(left)} differ'}")
        for key in unequal[:1]:
            print(f"  {key}: {left.get(key)}, {right.get(key)}")
        different += bool(unequal)
    return min(different, 1)


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """The numbers and texts of a tree by path."""
    if isinstance(tree, dict | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        found: dict[str, Any] = {}
        for key, value in items:
            found |= leaves(value, f"{path}/{key}")
        return found
    return {path: tree}


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "record":
        record(sys.argv[2], Path(sys.argv[3]))
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(compare(*(json.loads(Path(path).read_text()) for path in sys.argv[2:])))
    else:
        sys.exit(__doc__)
