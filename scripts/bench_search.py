"""Tree search around a network, many games side by side: how fast, and how much is the network."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from bench_tools import progress, rows, short
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

import rlgames

SIMULATIONS = 32
MIN_GAMES = 60
TREES = {"cpu": ((1, 1), (256, 1), (256, 2)), "cuda": ((1, 1), (256, 1), (4096, 1))}
"""How many trees side by side, and how many threads, by device."""
NETWORKS = {
    "conv, 3 layers of 32 channels": ["policy=conv", "policy.channels=[32,32,32]"],
    "mlp, 512 and 256 units": ["policy=mlp", "policy.layers=[512,256]"],
}


@contextmanager
def timed_networks() -> Iterator[list[float]]:
    """The seconds spent inside modules, the outermost ones only, as the one number of a list."""
    spent, depth, begun = [0.0], 0, 0.0

    def enter(*_: Any) -> None:
        nonlocal depth, begun
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if depth == 0:
            begun = time.perf_counter()
        depth += 1

    def leave(*_: Any) -> None:
        nonlocal depth
        depth -= 1
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if depth == 0:
            spent[0] += time.perf_counter() - begun

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
    try:
        yield spent
    finally:
        for hook in hooks:
            hook.remove()


def search(
    network: list[str], trees: int, threads: int, device: str = "cpu"
) -> tuple[float, float]:
    """Simulations a second, and the share of the time inside the network.

    Both seats search, each in half of twice as many games, so that as many trees grow side by side.
    A single tree plays MIN_GAMES one after the other: two are over before all is loaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        few = ["games=64", "batch=64", "eval_games=2", "eval_every=64", "solve_seconds=0"]
        run = rlgames.train(
            [
                "game=connect4",
                "experiment=null",
                "reward=outcome",
                *network,
                *few,
                f"out={folder}/r",
            ]
        )
        words = ["search=mcts", "opponent_search=mcts", f"opponent={run}", "search.leaf=value"]
        words += ["opponent_search.leaf=value", f"search.simulations={SIMULATIONS}"]
        words += [f"opponent_search.simulations={SIMULATIONS}", f"threads={threads}"]
        count = max(2 * trees, MIN_GAMES)
        games = [f"games={count}", f"batch={2 * trees}", f"device={device}", "solve_seconds=0"]
        with timed_networks() as inside:
            results = rlgames.evaluate(run, [*words, *games])
    return SIMULATIONS * results["moves_per_s"], inside[0] / results["seconds"]


def searching(rounds: int, device: str = "cpu") -> str:
    body = []
    search(next(iter(NETWORKS.values())), 1, 1, device)  # compiles
    for name, network in NETWORKS.items():
        for trees, threads in TREES[device]:
            results = [search(network, trees, threads, device) for _ in range(rounds)]
            speed, share = (statistics.median(column) for column in zip(*results, strict=True))
            body.append([name, str(trees), str(threads), short(speed), f"{share:.0%}"])
            progress(" ".join(body[-1]))
    head = ["network", "trees", "threads", "simulations per second", "inside the network"]
    return rows(head, body)
