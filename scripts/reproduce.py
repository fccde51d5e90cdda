"""Runs the presets of the five documents and writes their part of docs/results.md.

Each step is one command of rlgames in a process of its own; as many run side by side as there are
cores, and a step that is done is not done again. Usage:

    python scripts/reproduce.py [--out outputs/reproduce] [--only landy hickman ...] [--table]
"""

from __future__ import annotations

import sys

import results
from steps import ONE, TWO, Step, main, measure, train

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


def battleship() -> list[Step]:
    """Landy's and Ramesh's documents."""
    steps: list[Step] = []
    for name in ("landy", "landy_tuned"):
        steps += train(name, f"experiment={name}", weight=40)
        steps += measure("greedy", name, "games=all")
    for case in range(1, 6):
        for name in (f"ramesh_case{case}", f"ramesh_case{case}_tuned"):
            steps += train(name, f"experiment={name}", "solve_seconds=0", weight=80)
            steps += measure("sampled", name, "sampling=stochastic", "games=500", "solve_seconds=0")
            steps += measure("greedy", name, "games=all", "solve_seconds=0")
    steps += solve_cases()
    held_out = ("experiment=ramesh_case2_tuned", "holdout=0.2", "solve_seconds=0")
    steps += train("ramesh_case2_holdout", *held_out, weight=100, seeds=ONE)
    steps += measure("greedy", "ramesh_case2_holdout", "solve_seconds=0", seeds=ONE)
    return steps


def solve_cases() -> list[Step]:
    """The optimum of each of Ramesh's cases."""
    return [
        Step(
            f"solve_case{case}",
            ("solve", "game=salvo", *rules, "format=json"),
            300.0 if case == 2 else 5.0,
        )
        for case, rules in enumerate(CASES, 1)
    ]


def lines() -> list[Step]:
    """Hickman's document and Connect-Zero."""
    steps = train("hickman", "experiment=hickman", "eval_every=50000", weight=15)
    still_learning = ("sampling=argmax", "batch=1", "log_every=500", "eval_every=2500")
    start = ("experiment=hickman", "init_from={hickman/SEED}", "games=2500")
    steps += train("hickman_greedy", *start, *still_learning)
    steps += train("hickman_tuned", "experiment=hickman_tuned", weight=40)
    for name in ("hickman", "hickman_tuned"):
        steps += measure("frozen", name, "games=2000")
    for name in ("random", "exact"):
        words = ("eval", f"player={name}", "game=tictactoe", "games=2000", "format=json")
        steps.append(Step(f"tictactoe_{name}", words))
    for name in ("connect_zero", "connect_zero_tuned"):
        steps += train(name, f"experiment={name}", weight=90)
        for whom in ("random", "win_or_block"):
            steps += measure(whom, name, f"opponent={whom}", "games=2000")
    return steps


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
        "warm_start": (ONE, 150, [paper("stochastic"), *faster, corner, "demos_per_batch=5"]),
        "adp": (TWO, 80, [paper("adp")]),
        "adp_tuned": (ONE, 100, [paper("adp_tuned")]),
        "adp_cloning": (
            ONE,
            60,
            [paper("adp_cloning"), "teacher={dedieu_amar_adp/0}", "games=1000"],
        ),
        "stochastic_tuned": (TWO, 500, [paper("stochastic_tuned")]),
        "staged": (ONE, 250, [paper("staged"), "games=8000"]),
        "dqn": (ONE, 150, [paper("dqn")]),
    }
    steps = [
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
        steps += train(run, *words, weight=weight, seeds=seeds, after=after)
        steps += measure("played", run, "games=1000", "solve_seconds=0", weight=10, seeds=seeds)
    search = ["search=mcts", "search.simulations=100", "search.leaf=value", "games=20"]
    # A trained policy is so sure of itself that a search would only follow it.
    search += ["search.temperature=4", "search.num_parallel=10"]
    steps += measure(
        "search", "dedieu_amar_stochastic_tuned", *search, "solve_seconds=0", weight=200, seeds=ONE
    )
    return steps


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__.splitlines()[0],
            "reproduce",
            [*battleship(), *lines(), *tiles()],
            results.table,
            "documents",
        )
    )
