"""Runs the presets of the five documents and writes docs/results.md from what they reach.

Each step is one command of rlgames in a process of its own; as many run side by side as there are
cores, and a step that is done is not done again. Usage:

    python scripts/reproduce.py [--out outputs/reproduce] [--only landy hickman ...] [--table]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import results

from rlgames import cli, config
from rlgames.config import ConfigError

ROOT = Path(__file__).resolve().parent.parent
SEEDS, TWO, ONE = range(3), range(2), range(1)
EVAL_2048 = ("eval", "game=2048", "solve_seconds=0", "format=json")
RANDOM_2048 = (*EVAL_2048, "player=random", "games=1000")
CASES = [
    ("board=4", "ships=[4]", "shots=1"),
    ("board=5", "ships=[4,2]", "shots=1", "seconds=1200", "memory_gb=12"),
    ("board=4", "ships=[2]", "shots=2"),
    ("board=4", "ships=[4]", "shots=2"),
    ("board=4", "ships=[4,2]", "shots=2"),
]
"""Ramesh's rules."""


@dataclass(frozen=True)
class Step:
    """One command: a training whose directory is `name`, or anything else whose JSON is kept.

    words: the command; {NAME} in a word stands for the path of that step, which comes first, and
    OUT for the directory of all of them. after: other steps that come first. weight: about how
    many seconds it takes, so that long ones begin first.
    """

    name: str
    words: tuple[str, ...]
    weight: float = 30.0
    after: tuple[str, ...] = ()

    @property
    def needs(self) -> list[str]:
        named = [word.partition("{")[2].partition("}")[0] for word in self.words if "{" in word]
        return [*named, *self.after]

    def path(self, out: Path) -> Path:
        return out / (self.name if self.words[0] == "train" else self.name + ".json")

    def done(self, out: Path) -> bool:
        path = self.path(out)
        if self.words[0] != "train":
            return path.exists()
        try:
            found = json.loads((path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(found["status"] == "done")

    def command(self, out: Path) -> list[str]:
        words = [_filled(word, out) for word in self.words]
        return [*words, f"out={self.path(out)}"] if self.words[0] == "train" else words

    def run(self, out: Path) -> None:
        """In a process of its own: run the command and keep what it printed; exit with its code."""
        path, start = self.path(out), time.perf_counter()
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.words[0] == "train":
            shutil.rmtree(path, ignore_errors=True)  # what was broken off
        printed = path.with_name(path.name + ".log")
        with open(printed, "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            words = self.command(out)
            try:
                code = cli.run(words[0], words[1:])
            except ConfigError as error:
                code = config.stop(error, as_json=False)
            sys.stdout.flush()
        if code == 0 and self.words[0] != "train":
            # The JSON is the last line: nothing else is kept.
            found = json.loads(printed.read_text(encoding="utf-8").splitlines()[-1])
            found["wall_seconds"] = time.perf_counter() - start
            unfinished = path.with_suffix(".tmp")
            unfinished.write_text(json.dumps(found), encoding="utf-8")
            unfinished.replace(path)
        sys.exit(code)


def _filled(word: str, out: Path) -> str:
    word = word.replace("OUT", str(out))
    before, brace, rest = word.partition("{")
    name, _, after = rest.partition("}")
    return before + str(out / name) + after if brace else word


def train(
    name: str,
    *words: str,
    weight: float = 30.0,
    seeds: range = SEEDS,
    after: tuple[str, ...] = (),
) -> list[Step]:
    """One training for each seed, named <name>/<seed>; SEED in a word stands for it."""
    return [
        Step(
            f"{name}/{seed}",
            ("train", *(word.replace("SEED", str(seed)) for word in words), f"seed={seed}"),
            weight,
            after,
        )
        for seed in seeds
    ]


def measure(
    name: str, run: str, *words: str, weight: float = 5.0, seeds: range = SEEDS
) -> list[Step]:
    """`rlgames eval` of each seed of a training, named <run>/<seed>.<name>."""
    return [
        Step(
            f"{run}/{seed}.{name}",
            ("eval", f"{{{run}/{seed}}}", *words, "format=json"),
            weight,
        )
        for seed in seeds
    ]


def battleship() -> list[Step]:
    """Landy's and Ramesh's documents."""
    found: list[Step] = []
    for name in ("landy", "landy_tuned"):
        found += train(name, f"experiment={name}", weight=40)
        found += measure("greedy", name, "games=all")
    for case in range(1, 6):
        for name in (f"ramesh_case{case}", f"ramesh_case{case}_tuned"):
            found += train(name, f"experiment={name}", "solve_seconds=0", weight=80)
            found += measure("sampled", name, "sampling=stochastic", "games=500", "solve_seconds=0")
            found += measure("greedy", name, "games=all", "solve_seconds=0")
    for case, rules in enumerate(CASES, 1):
        weight = 300.0 if case == 2 else 5.0
        words = ("solve", "game=salvo", *rules, "format=json")
        found.append(Step(f"solve_case{case}", words, weight))
    held_out = ("experiment=ramesh_case2_tuned", "holdout=0.2", "solve_seconds=0")
    found += train("ramesh_case2_holdout", *held_out, weight=100, seeds=ONE)
    found += measure("greedy", "ramesh_case2_holdout", "solve_seconds=0", seeds=ONE)
    return found


def lines() -> list[Step]:
    """Hickman's document and Connect-Zero."""
    found = train("hickman", "experiment=hickman", "eval_every=50000", weight=15)
    still_learning = ("sampling=argmax", "batch=1", "log_every=500", "eval_every=2500")
    start = ("experiment=hickman", "start={hickman/SEED}", "games=2500")
    found += train("hickman_greedy", *start, *still_learning)
    found += train("hickman_tuned", "experiment=hickman_tuned", weight=40)
    for name in ("hickman", "hickman_tuned"):
        found += measure("frozen", name, "games=2000")
    for name in ("random", "exact"):
        words = ("eval", f"player={name}", "game=tictactoe", "games=2000", "format=json")
        found.append(Step(f"tictactoe_{name}", words))
    for name in ("connect_zero", "connect_zero_tuned"):
        found += train(name, f"experiment={name}", weight=90)
        for whom in ("random", "win_or_block"):
            found += measure(whom, name, f"opponent={whom}", "games=2000")
    return found


def tiles() -> list[Step]:
    """Dedieu and Amar's paper."""
    paper = "experiment=dedieu_amar_{}".format
    faster = ("lr=0.1", "learner.lr_end=0.01", "games=3000")
    corner = "demonstrations=OUT/corner_games.jsonl"
    runs = {
        "stochastic": (TWO, 100, [paper("stochastic")]),
        "stochastic_faster": (TWO, 150, [paper("stochastic"), *faster]),
        "epsilon_greedy": (ONE, 100, [paper("epsilon_greedy")]),
        "epsilon_greedy_faster": (ONE, 150, [paper("epsilon_greedy"), *faster]),
        "win": (ONE, 100, [paper("win"), *faster]),
        "warm_start": (ONE, 150, [paper("stochastic"), *faster, corner, "demonstrated=5"]),
        "adp": (TWO, 80, [paper("adp")]),
        "adp_tuned": (ONE, 100, [paper("adp_tuned")]),
        "adp_clone": (ONE, 60, [paper("adp_clone"), "teacher={dedieu_amar_adp/0}", "games=1000"]),
        "stochastic_tuned": (TWO, 500, [paper("stochastic_tuned")]),
        "staged": (ONE, 250, [paper("staged"), "games=8000"]),
        "q": (ONE, 150, [paper("q")]),
    }
    found = [
        Step("2048_random", (*RANDOM_2048, "fours=0.1")),
        Step("2048_random_twos", (*RANDOM_2048, "fours=0.0")),
        Step(
            "corner_games",
            (
                *EVAL_2048,
                "player=corner",
                "fours=0.0",
                "games=100",
                "record=OUT/corner_games.jsonl",
            ),
        ),
    ]
    for name, (seeds, weight, words) in runs.items():
        run = f"dedieu_amar_{name}"
        after = ("corner_games",) if name == "warm_start" else ()
        found += train(run, *words, weight=weight, seeds=seeds, after=after)
        found += measure("played", run, "games=1000", "solve_seconds=0", weight=10, seeds=seeds)
    search = ["search=mcts", "search.simulations=100", "search.leaf=value", "games=20"]
    # A trained policy is so sure of itself that a search would only follow it.
    search += ["search.temperature=4", "search.parallel=10"]
    found += measure(
        "search", "dedieu_amar_stochastic_tuned", *search, "solve_seconds=0", weight=200, seeds=ONE
    )
    return found


def steps() -> list[Step]:
    """Everything that the table is made of."""
    return [*battleship(), *lines(), *tiles()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path("outputs/reproduce"))
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the steps' names")
    parser.add_argument("--table", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    failed = False
    if not chosen.table:
        wanted = [
            step for step in steps() if not chosen.only or step.name.startswith(tuple(chosen.only))
        ]
        failed = not run_all(wanted, chosen.out)
    (ROOT / "docs" / "results.md").write_text(results.table(chosen.out), encoding="utf-8")
    return 3 if failed else 0


def run_all(wanted: list[Step], out: Path) -> bool:
    """Run what is not done, long ones first, each after what it needs; whether all succeeded.

    Steps are forked from this process, which has loaded everything and computes nothing itself.
    """
    for module in ("commands.evaluate", "commands.solve", "display", "training"):
        importlib.import_module(f"rlgames.{module}")
    waiting = sorted((step for step in wanted if not step.done(out)), key=lambda step: -step.weight)
    finished = {step.name for step in wanted if step.done(out)}
    print(f"{len(finished)} of {len(wanted)} steps are done", flush=True)
    start, failed = time.perf_counter(), 0
    running: dict[int, tuple[ForkProcess, Step, float]] = {}
    while True:
        ready = [step for step in waiting if set(step.needs) <= finished]
        for step in ready[: (os.cpu_count() or 1) - len(running)]:
            waiting.remove(step)
            process = get_context("fork").Process(target=step.run, args=(out,))
            process.start()
            running[process.sentinel] = process, step, time.perf_counter()
        if not running:
            break  # all is done, or what is left waits for something that failed
        for sentinel in wait(list(running)):
            assert isinstance(sentinel, int)
            process, step, began = running.pop(sentinel)
            process.join()
            now = time.perf_counter()
            how = "" if process.exitcode == 0 else f"FAILED ({process.exitcode}) "
            print(
                f"{(now - start) / 60:5.1f} min  {how}{step.name}, {now - began:.0f} s", flush=True
            )
            if process.exitcode == 0:
                finished.add(step.name)
            failed += process.exitcode != 0
    for step in waiting:
        print(f"left out: {step.name}", flush=True)
    return not failed and not waiting


if __name__ == "__main__":
    sys.exit(main())
