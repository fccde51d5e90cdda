"""How fast tree search around a network is, alone and next to mctx."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from unittest.mock import patch

import torch
from bench_tools import PEERS, Worker, in_turn, ratio, rows, short

from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.rollouts.conformance import random_positions
from rlgames.search import mcts
from rlgames.training.components import build_components

SIMULATIONS = 32
SECONDS = 1.0
"""About how long a measurement takes, in processor time."""
TREES = {"cpu": (1, 64, 1024), "cuda": (1, 256, 4096)}
"""How many trees side by side, by device."""
MLP = ["policy=mlp", "policy.layers=[512,256]"]
CASES = {
    "Connect 4, conv, 3 layers of 32 channels": [
        *("experiment=connect4_alphazero", "policy=conv", "policy.channels=[32,32,32]"),
    ],
    "Connect 4, embedding of lines of four, 64 units": [
        *("experiment=connect4_alphazero", "policy=embedding", "policy.line_length=4"),
        *("policy.open_cells=true", "policy.units=64", "policy.layers=[64]"),
    ],
    "Connect 4, mlp, 512 and 256 units": ["experiment=connect4_alphazero", *MLP],
    "Othello 6×6, the same mlp": ["experiment=othello_alphazero", *MLP],
    "Hex 7×7, the same mlp": ["experiment=hex_alphazero", *MLP],
    "Breakthrough 6×6, the same mlp": ["experiment=breakthrough_alphazero", *MLP],
    "Gomoku 9×9, the same mlp": ["experiment=gomoku_alphazero", *MLP],
}
OF_2048 = ["game=2048", "learner=alphazero", "search=mcts", "search.leaf=value", *MLP]
MCTX_CASES = {
    "connect4": ["experiment=connect4_alphazero", *MLP],
    "othello": ["experiment=othello_alphazero", "game.board=8", *MLP],
    "hex": ["experiment=hex_alphazero", "game.board=11", *MLP],
    "2048": [*OF_2048, "search.c_puct=1", "search.dirichlet_fraction=0.25"],
}
"""The games that pgx also has, on its boards."""


def self_play(case: list[str], trees: int, device: str = "cpu", compiled: bool = True) -> float:
    """Simulations per second (on a CPU, of processor time) of searches side by side in games that
    began with random moves; new ones begin where games end.

    compiled: by compiled rules; otherwise as in a game without them.
    """
    where = [f"search.simulations={SIMULATIONS}", "threads=1", f"device={device}"]
    words = [*case, *where, "solve_seconds=0", f"batch={trees}"]
    clock = time.process_time if device == "cpu" else time.perf_counter
    general = patch.object(mcts, "find_compiled_rules", lambda _: None)
    with nullcontext() if compiled else general:
        components = build_components(load_config(TrainConfig, words))
        game, player = components.game, components.players[0]
        rng = torch.Generator(device).manual_seed(1)
        state, count, spent = random_positions(game, trees).to(device), 0, 0.0
        player.act(state, rng)  # compiles
        while spent < SECONDS:
            if state.done.any():
                fresh = random_positions(game, trees, seed=count).to(device)
                row = torch.arange(trees, device=device) + trees * state.done
                state = type(state).cat([state, fresh])[row]
            begun = clock()
            decision = player.act(state, rng)
            spent += clock() - begun
            count += int((~state.done).sum())
            state = game.step(state, decision.action, rng)
    return SIMULATIONS * count / spent


def beside_mctx(rounds: int) -> str:
    """Both by processor time."""
    body = []
    with Worker("bench_peer_mctx.py", PEERS) as mctx:
        for game, case in MCTX_CASES.items():
            for trees in TREES["cpu"]:
                words = {"game": game, "trees": trees, "simulations": SIMULATIONS}
                sides: dict[str, Callable[[], float]] = {
                    "rlgames": partial(self_play, case, trees),
                    "mctx": partial(mctx.speed, **words, policy="muzero_policy"),
                }
                ours, other = in_turn(sides, rounds).values()
                body.append([game, str(trees), ours.text(), other.text(), ratio(ours, other)])
    return rows(["game", "trees", "rlgames", "mctx", "ratio"], body)


def searching(rounds: int, device: str = "cpu") -> str:
    ways = {"general": False, "compiled rules": True} if device == "cpu" else {"general": False}
    body = []
    for name, case in CASES.items():
        for trees in TREES[device]:
            sides = {
                way: partial(self_play, case, trees, device, compiled)
                for way, compiled in ways.items()
            }
            results = in_turn(sides, rounds)
            medians = [short(each.median) for each in results.values()]
            ratios = [ratio(*reversed(results.values()))] if len(ways) > 1 else []
            body.append([name, str(trees), *medians, *ratios])
    return rows(["game and network", "trees", *ways, "ratio"][: len(body[0])], body)
