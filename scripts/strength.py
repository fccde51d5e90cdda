"""Trains the strongest presets of every game and writes their part of docs/results.md.

Steps as in reproduce.py: done once, as many side by side as there are cores. About two and a half
hours on two cores if bitbully is installed (AGPL-3; see connect4_exact.py), otherwise much longer.
Usage:

    python scripts/strength.py [--out outputs/strength] [--only 2048 ramesh ...] [--table]
"""

from __future__ import annotations

import sys
from functools import partial

from reproduce import solve_cases
from results_strength import (
    BEGUN,
    COUNTING_PLAYERS,
    DUEL_OPPONENTS,
    EXACT_PLIES,
    FLEETS,
    LOOKAHEAD,
    NAMES_2048,
    RANDOM_2048,
    SALVO,
    SMALL_2048,
    TICTACTOE,
    section,
)
from results_targets import VALUE_LOSSES
from steps import ONE, SEEDS, Step, main, measure, train

FIVE = range(5)
WEIGHTS = {"ramesh_case5_rollout": 140.0, "ramesh_case2_finetuned": 60.0}
FLEET = ("game=salvo", "board=10", "ships=[5,4,3,3,2]", "solve_seconds=0", "seed=1", "format=json")
NTUPLE_CONNECT4 = ("experiment=connect4_ntuple", "games=2000000")
ALPHAZERO_CONNECT4 = (
    *("experiment=connect4_alphazero", "games=200000", "learner.optimizer=fused_adam"),
)
SEARCH = ("search.simulations=400", "search.leaf=value")
SHORT_2048 = ("experiment=2048_ntuple", "games=80000", "eval_every=10000")
LONG_2048 = ("experiment=2048_ntuple", "games=400000")
OF_4X3 = ("experiment=2048_4x3_ntuple", "games=100000")
EVERY_3X3 = "policy.table_size=32000000"  # room for every board


def final_networks(run: str, suffix: str = "") -> list[str]:
    """Those of all seeds, as a script's players."""
    return [f"{{{run}/{seed}}}/checkpoints/latest.safetensors{suffix}" for seed in SEEDS]


def begun(name: str, *settings: str, weight: float, seeds: range) -> list[Step]:
    """Trainings, each from the weights of the one of its seed that BEGUN names, if any."""
    start = [f"init_from={{{BEGUN[name]}/SEED}}"] if name in BEGUN else []
    return train(name, f"experiment={name}", *start, *settings, weight=weight, seeds=seeds)


def tiles() -> list[Step]:
    """2048 on 4×4 and on smaller boards."""
    steps = [
        *train("2048", "game=2048", weight=90, seeds=ONE),
        *train("2048_ntuple", *SHORT_2048, weight=200, threads=2),
        *train("2048_long", *LONG_2048, weight=1500, seeds=ONE, threads=2),
        *train("2048_3x3_ntuple", "experiment=2048_3x3_ntuple", EVERY_3X3, weight=60, seeds=ONE),
        *begun("2048_3x3_finetuned", "games=240000", EVERY_3X3, weight=800, seeds=ONE),
        *train("2048_4x3_ntuple", *OF_4X3, weight=40, seeds=ONE, threads=2),
        Step(RANDOM_2048, ("eval", "game=2048", "player=random", "games=1000", "format=json")),
    ]
    for name in NAMES_2048:
        seeds = SEEDS if name == "2048_ntuple" else ONE
        steps += measure("played", name, "games=1000", "solve_seconds=0", weight=20, seeds=seeds)
    small, searched = ("games=10000", "solve_seconds=0"), ("search=expectimax", "search.plies=3")
    for name in SMALL_2048:
        steps += measure("played", name, *small, weight=20, seeds=ONE)
        plies = (*searched, "games=1000", "solve_seconds=0")
        steps += measure("three_plies", name, *plies, weight=60, seeds=ONE)
    plies = (*searched, "games=60", "solve_seconds=0")
    return steps + measure("three_plies", "2048_long", *plies, weight=170, seeds=ONE)


def lines() -> list[Step]:
    """Tic-tac-toe and Connect 4."""
    steps: list[Step] = []
    for name in TICTACTOE:
        steps += train(name, f"experiment={name}", weight=50)
        steps += measure("played", name, "games=2000")
    steps += train("connect4", "game=connect4", weight=80)
    steps += train("connect4_ntuple", *NTUPLE_CONNECT4, weight=400)
    steps += train("connect4_alphazero", *ALPHAZERO_CONNECT4, weight=1000)
    for name in ("connect4", "connect4_ntuple", "connect4_alphazero"):
        for opponent in ("random", "win_or_block"):
            against = (f"opponent={opponent}", "checkpoint=final", "games=10000")
            steps += measure(opponent, name, *against, weight=20)
    run = "connect4_alphazero"
    networks = ("random", "win_or_block", *final_networks(run), *final_networks(run, "+mcts"))
    run = "connect4_ntuple"
    n_tuples = (*final_networks(run), *final_networks(run, "+alphabeta"))
    return [
        *steps,
        Step(VALUE_LOSSES[0], ("value_losses", *networks, *SEARCH, "format=json"), 60),
        Step(VALUE_LOSSES[1], ("value_losses", *n_tuples, "search.plies=5", "format=json"), 20),
        *(exact_games(name, plies) for name, plies in EXACT_PLIES),
    ]


def exact_games(run: str, plies: int) -> Step:
    """The final networks against exact play, in the first seat."""
    players = final_networks(run, "" if plies == 1 else "+alphabeta")
    depth = () if plies == 1 else (f"search.plies={plies}",)
    words = ("connect4_exact", *players, "games=200", *depth, "format=json")
    return Step(f"{run}_exact_{plies}", words, 30)


def sea() -> list[Step]:
    """Battleship and Salvo."""
    steps = solve_cases()
    steps += train("salvo", "game=salvo", "board=4", "shots=2", "solve_seconds=0", weight=60)
    steps += measure("greedy", "salvo", "games=all", "solve_seconds=0")
    for name in SALVO.values():
        if first := BEGUN.get(name):
            steps += train(first, f"experiment={first}", "solve_seconds=0", seeds=FIVE)
        steps += begun(name, "solve_seconds=0", weight=WEIGHTS.get(name, 30), seeds=FIVE)
        steps += measure("greedy", name, "games=all", "solve_seconds=0", seeds=FIVE)
    return [*steps, *fleets(), *duel()]


def fleets() -> list[Step]:
    """The standard fleet on 10×10; the networks and counting players play the same boards."""
    steps: list[Step] = []
    for name, fleet in FLEETS.items():
        if fleet.trained:
            steps += train(name, f"experiment={name}", weight=400, seeds=fleet.seeds)
            final = ("checkpoint=final", *fleet.games, "seed=1", "solve_seconds=0")
            steps += measure("greedy", name, *final, weight=150, seeds=fleet.seeds)
        for player in fleet.players:
            games = fleet.games if player in COUNTING_PLAYERS else ("games=2000",)
            command = ("eval", *FLEET, *fleet.words, f"player={player}", *games)
            steps.append(Step(f"{name}_{player}", command, 100))
        if name in LOOKAHEAD:
            words = (*FLEET[1:], *fleet.words, "games=1000")
            steps.append(Step(f"{name}_lookahead", ("lookahead_gain", *words), 200))
    return steps


def duel() -> list[Step]:
    """Two-player Salvo, and a best response to the agent of the first seed."""
    name, agent = "salvo_duel_occupancy", "{salvo_duel_occupancy/0}"
    steps = train(name, f"experiment={name}", weight=200)
    for opponent in DUEL_OPPONENTS:
        words = (f"opponent={opponent}", "checkpoint=final", "games=2000", "solve_seconds=0")
        steps += measure(opponent, name, *words, weight=30)
    settings = ("experiment=salvo_duel", "policy=belief_propagation", "games=70000", "lr=0.0003")
    start = (f"opponent={agent}", f"init_from={agent}")
    steps += train("salvo_duel_response", *settings, *start, weight=250, seeds=ONE)
    words = (f"opponent={agent}", "checkpoint=final", "games=10000", "solve_seconds=0")
    return steps + measure("gain", "salvo_duel_response", *words, weight=60, seeds=ONE)


if __name__ == "__main__":
    every = [*tiles(), *lines(), *sea()]
    table = partial(section, steps=every)
    sys.exit(main(__doc__.splitlines()[0], "strength", every, table, "strength"))
