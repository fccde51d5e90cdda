"""Runs the presets of the five documents and writes their part of docs/results.md.

Each step is one command of rlgames in a process of its own; as many run side by side as there are
cores, and a step that is done is not done again unless its command has changed. Usage:

    python scripts/reproduce.py [--out outputs/reproduce] [--only landy hickman ...] [--table]
"""

from __future__ import annotations

import sys
from functools import partial

import dedieu_amar
import open_questions
import results_page
from steps import ONE, SEEDS, Step, main, measure, train

CASES = [
    ("board=4", "ships=[4]", "shots=1"),
    ("board=5", "ships=[4,2]", "shots=1", "seconds=1200", "memory_gb=12"),
    ("board=4", "ships=[2]", "shots=2"),
    ("board=4", "ships=[4]", "shots=2"),
    ("board=4", "ships=[4,2]", "shots=2"),
]
"""Ramesh's rules."""

LANDY = {"landy": 20, "landy_loop": 50, "landy_tuned": 3}
"""About how many seconds each of Landy's presets takes."""


def battleship() -> list[Step]:
    """Landy's and Ramesh's documents."""
    steps: list[Step] = []
    log_every = {"landy": 100, "landy_loop": 100, "landy_tuned": 256}
    for name, games in log_every.items():
        steps += train(name, f"experiment={name}", f"log_every={games}", weight=LANDY[name])
        steps += final_and_selected(name, "games=all")
    for case in range(1, 6):
        for name in (f"ramesh_case{case}", f"ramesh_case{case}_tuned"):
            steps += train(name, f"experiment={name}", "solve_seconds=0", weight=50)
            sampled = ("checkpoint=final", "sampling=stochastic", "games=500", "solve_seconds=0")
            steps += measure("final_sampled", name, *sampled)
            steps += final_and_selected(name, "games=all", "solve_seconds=0")
    steps += solve_cases()
    held_out = ("experiment=ramesh_case2_tuned", "holdout=0.2", "solve_seconds=0")
    steps += train("ramesh_case2_holdout", *held_out, weight=60, seeds=ONE)
    final = ("checkpoint=final", "games=all", "solve_seconds=0")
    steps += measure("final", "ramesh_case2_holdout", *final, seeds=ONE)
    return steps + open_questions.steps()


def final_and_selected(run: str, *words: str, seeds: range = SEEDS) -> list[Step]:
    """Evaluate the final network, as the documents do, and the selected checkpoint."""
    return [
        *measure("final", run, "checkpoint=final", *words, seeds=seeds),
        *measure("selected", run, "checkpoint=best", *words, seeds=seeds),
    ]


def solve_cases() -> list[Step]:
    """The optimum of each of Ramesh's cases."""
    return [
        Step(
            f"solve_case{case}",
            ("solve", "game=salvo", *rules, "format=json"),
            60.0 if case == 2 else 5.0,
        )
        for case, rules in enumerate(CASES, 1)
    ]


def lines() -> list[Step]:
    """Hickman's document and Connect-Zero."""
    trainings = {
        "hickman": (SEEDS, 15, ("experiment=hickman", "eval_every=50000")),
        "hickman_every_game": (ONE, 300, ("experiment=hickman", "batch=1", "eval_every=50000")),
        "hickman_tuned": (SEEDS, 25, ("experiment=hickman_tuned",)),
    }
    steps: list[Step] = []
    for name, (seeds, weight, words) in trainings.items():
        steps += train(name, *words, weight=weight, seeds=seeds)
        steps += final_and_selected(name, "games=2000", seeds=seeds)
        if name != "hickman_tuned":
            final = f"init_from={{{name}/SEED}}/checkpoints/latest.safetensors"
            start = ("experiment=hickman", final, "games=2500", "sampling=argmax")
            still_learning = ("sampling.ties=random", "batch=1", "log_every=500", "eval_every=2500")
            steps += train(f"{name}_greedy", *start, *still_learning, weight=15, seeds=seeds)
    for name in ("random", "exact"):
        words = ("eval", f"player={name}", "game=tictactoe", "games=2000", "format=json")
        steps.append(Step(f"tictactoe_{name}", words))
    for name in ("connect_zero", "connect_zero_tuned"):
        steps += train(name, f"experiment={name}", weight=90 if name.endswith("tuned") else 10)
        for opponent in ("random", "win_or_block"):
            words = (f"opponent={opponent}", "games=2000")
            steps += measure(f"{opponent}_final", name, "checkpoint=final", *words)
            steps += measure(f"{opponent}_selected", name, "checkpoint=best", *words)
    return steps


if __name__ == "__main__":
    every = [*battleship(), *lines(), *dedieu_amar.steps()]
    table = partial(results_page.table, steps=every)
    sys.exit(main(__doc__.splitlines()[0], "reproduce", every, table, "documents"))
