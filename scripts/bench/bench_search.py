"""How fast tree search is: around a network next to mctx, with random play next to OpenSpiel."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from bench_tools import PEERS, Worker, in_turn, ratio, rows, short

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.config.typed import make_option
from rlgames.players.player import Random
from rlgames.rng import Rng
from rlgames.rollouts.conformance import random_positions
from rlgames.search.mcts import Mcts
from rlgames.training.parts import build_training

SIMULATIONS = 32
SECONDS = 1.0
"""About how long a measurement takes, in processor time."""
TREES = (1, 64, 1024)
"""How many trees side by side."""
MLP = "experiment=null learner=alphazero search=mcts search.leaf=value search.c_puct=1 "
MLP += "search.dirichlet_fraction=0.25 sampling=stochastic policy=mlp policy.layers=[512,256]"
MCTX_CASES = {
    "connect4": ("Connect 4", f"{MLP} game=connect4"),
    "othello": ("Othello 8×8", f"{MLP} game=othello board=8"),
    "hex": ("Hex 11×11", f"{MLP} game=hex board=11"),
    "2048": ("2048", f"{MLP} game=2048"),
}
"""The games that pgx also has, on its boards."""


def self_play(case: str, trees: int) -> float:
    """Simulations per second of processor time, of searches side by side in games that began with
    random moves; new ones begin where games end."""
    words = [*case.split(), f"search.simulations={SIMULATIONS}", f"batch={trees}", "threads=1"]
    training = build_training(load_config(TrainConfig, [*words, "solve_seconds=0"]))
    game, player = training.game, training.source.games.players[0]
    rng = Rng(1)
    state, count, spent = random_positions(game, trees), 0, 0.0
    player.act(state, rng)  # compiles
    while spent < SECONDS:
        if state.done.any():
            fresh = random_positions(game, trees, seed=count)
            row = torch.arange(trees) + trees * state.done
            state = type(state).cat([state, fresh])[row]
        begun = time.process_time()
        decision = player.act(state, rng)
        spent += time.process_time() - begun
        count += int((~state.done).sum())
        state = game.step(state, decision.action, rng)
    return SIMULATIONS * count / spent


def beside_mctx(rounds: int) -> str:
    """By processor time, with mctx on one core; rlgames has one thread."""
    body = []
    with Worker("bench_peer_pgx.py", PEERS) as mctx:
        for game, (label, case) in MCTX_CASES.items():
            for trees in TREES:
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
    keys = make_option("search", "mcts", simulations=1000, num_parallel=num_parallel)
    search = Mcts(game, Random(game), keys)
    rng = Rng(1)
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
