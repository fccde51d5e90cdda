"""How fast tree search around a network is, alone and next to mctx."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from bench_tools import PEERS, Worker, in_turn, ratio, rows, short, table

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.players.player import Random
from rlgames.rollouts.conformance import random_positions
from rlgames.search.mcts import make_mcts
from rlgames.training.parts import build_training

SIMULATIONS = 32
SECONDS = 1.0
"""About how long a measurement takes, in processor time."""
TREES = {"cpu": (1, 64, 1024), "cuda": (1, 256, 4096)}
"""How many trees side by side, by device."""
ALPHAZERO = "experiment=null learner=alphazero search=mcts search.leaf=value search.c_puct=1 "
ALPHAZERO += "search.dirichlet_fraction=0.25 sampling=stochastic"
MLP = f"{ALPHAZERO} policy=mlp policy.layers=[512,256]"
CASES = {
    "Connect 4, conv, 3 layers of 32 channels": f"{ALPHAZERO} game=connect4 policy=conv "
    "policy.channels=[32,32,32]",
    "Connect 4, embedding of lines of four, 64 units": f"{ALPHAZERO} game=connect4 "
    "policy=embedding policy.line_length=4 policy.open_cells=true policy.units=64 "
    "policy.layers=[64]",
    "Connect 4, mlp, 512 and 256 units": f"{MLP} game=connect4",
    "Othello 6×6, the same mlp": f"{MLP} game=othello board=6",
    "Hex 7×7, the same mlp": f"{MLP} game=hex board=7",
    "Breakthrough 6×6, the same mlp": f"{MLP} game=breakthrough",
    "Gomoku 9×9, the same mlp": f"{MLP} game=gomoku board=9",
}
MCTX_CASES = {
    "connect4": ("Connect 4", f"{MLP} game=connect4"),
    "othello": ("Othello 8×8", f"{MLP} game=othello board=8"),
    "hex": ("Hex 11×11", f"{MLP} game=hex board=11"),
    "2048": ("2048", f"{MLP} game=2048"),
}
"""The games that pgx also has, on its boards."""


def self_play(case: str, trees: int, device: str = "cpu") -> float:
    """Simulations per second of processor time, on a GPU by the clock, of searches side by side in
    games that began with random moves; new ones begin where games end."""
    words = [*case.split(), f"search.simulations={SIMULATIONS}", f"batch={trees}", "threads=1"]
    words += ["solve_seconds=0", f"device={device}"]
    training = build_training(load_config(TrainConfig, words))
    game, player = training.game, training.source.games.players[0]
    rng = torch.Generator(device).manual_seed(1)
    state, count, wall, cpu = random_positions(game, trees), 0, 0.0, 0.0
    player.act(state, rng)  # compiles
    while cpu < SECONDS:
        if state.done.any():
            fresh = random_positions(game, trees, seed=count)
            row = torch.arange(trees) + trees * state.done
            state = type(state).cat([state, fresh])[row]
        begun, begun_cpu = time.perf_counter(), time.process_time()
        decision = player.act(state, rng)
        wall, cpu = wall + time.perf_counter() - begun, cpu + time.process_time() - begun_cpu
        count += int((~state.done).sum())
        state = game.step(state, decision.action, rng)
    return SIMULATIONS * count / (cpu if device == "cpu" else wall)


def beside_mctx(rounds: int) -> str:
    """By processor time, with mctx on one core; rlgames has one thread."""
    body = []
    with Worker("bench_peer_pgx.py", PEERS) as mctx:
        for game, (label, case) in MCTX_CASES.items():
            for trees in TREES["cpu"]:
                words = {"trees": trees, "simulations": SIMULATIONS, "seconds": SECONDS}
                sides: dict[str, Callable[[], float]] = {
                    "rlgames": partial(self_play, case, trees),
                    "mctx": partial(mctx.speed, game=game, **words),
                }
                ours, theirs = in_turn(sides, rounds).values()
                medians = [short(ours.median), short(theirs.median)]
                body.append([label, f"{trees:,}", *medians, ratio(ours, theirs)])
    return rows(
        ["game", "trees", "simulations per processor second: rlgames", "mctx", "ratio"], body
    )


PLAYOUT_CASES = {
    "tictactoe": ("Tic-tac-toe", "game=tictactoe"),
    "connect4": ("Connect 4", "game=connect4"),
    "othello": ("Othello 8×8", "game=othello board=8"),
    "hex": ("Hex 11×11", "game=hex board=11 swap=false"),
    "breakthrough": ("Breakthrough 6×6", "game=breakthrough rows=6 columns=6"),
}


def playouts(case: str, num_parallel: int) -> float:
    """Simulations per second of processor time: 1,000 from the start, valued by random play."""
    game = make("game", load_config(TrainConfig, case.split()).game)
    search = make_mcts(game, Random(game), simulations=1000, num_parallel=num_parallel)
    rng = torch.Generator().manual_seed(1)
    search.search(game.initial(1, rng), rng)  # compiles
    start, searches = time.process_time(), 0
    while time.process_time() - start < SECONDS:
        search.search(game.initial(1, rng), rng)
        searches += 1
    return 1000 * searches / (time.process_time() - start)


def beside_openspiel(rounds: int) -> str:
    """Tree search with random playouts, by processor time."""
    body = []
    with Worker("bench_peer_openspiel.py", PEERS) as openspiel:
        for game, (label, case) in PLAYOUT_CASES.items():
            sides: dict[str, Callable[[], float]] = {
                "1": partial(playouts, case, 1),
                "20": partial(playouts, case, 20),
                "OpenSpiel": partial(openspiel.speed, game=game, seconds=SECONDS),
            }
            one, many, theirs = in_turn(sides, rounds).values()
            speeds = [one.text(), many.text(), theirs.text()]
            body.append([label, *speeds, ratio(one, theirs), ratio(many, theirs)])
    head = ["simulations per second", "rlgames, one at a time", "20 side by side", "OpenSpiel"]
    return rows([*head, "ratio", "20 side by side: ratio"], body)


def searching(rounds: int, device: str = "cpu") -> str:
    """By processor time on a CPU, and by the clock on a GPU."""
    sides = {
        f"{name}; trees: {trees:,}": partial(self_play, case, trees, device)
        for name, case in CASES.items()
        for trees in TREES[device]
    }
    return table(["game and network", "simulations per second"], in_turn(sides, rounds))
