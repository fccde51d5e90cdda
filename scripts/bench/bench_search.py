"""How fast tree search around a network is."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import torch
from bench_tools import progress, rows, short

import rlgames
from rlgames.games.game import State
from rlgames.players.player import Decision
from rlgames.search.mcts import Mcts
from rlgames.search.self_play import SearchSelfPlay

SIMULATIONS = 32
MIN_GAMES = 24
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


@contextmanager
def timed_searches() -> Iterator[list[float]]:
    """The seconds of all searches of self-play and how many trees they grew, as a list of two."""
    total, act = [0.0, 0.0], SearchSelfPlay.act

    def timed(player: SearchSelfPlay, state: State, rng: torch.Generator) -> Decision:
        begun = time.perf_counter()
        decision = act(player, state, rng)
        total[0] += time.perf_counter() - begun
        total[1] += int((~state.done).sum())
        return decision

    with patch.object(SearchSelfPlay, "act", timed):
        yield total


def search(case: list[str], trees: int, device: str, compiled: bool) -> float:
    """Simulations per second.

    The games are those of AlphaZero's self-play, all different, before it has learned anything;
    a single tree plays MIN_GAMES one after the other. What learning takes is not counted.
    compiled: by compiled rules; otherwise as in a game without them.
    """
    games = max(2 * trees, MIN_GAMES)
    little = ["learner.updates_per_batch=1", "learner.minibatch=16", f"batch={trees}"]
    count = [f"games={games}", f"eval_every={games}", "eval_games=2", "solve_seconds=0"]
    where = [f"search.simulations={SIMULATIONS}", "threads=1", f"device={device}"]
    general = patch.object(Mcts, "_compiled_search", lambda *_: None)
    with (
        tempfile.TemporaryDirectory() as folder,
        nullcontext() if compiled else general,
        timed_searches() as total,
    ):
        rlgames.train([*case, f"out={folder}/r", *little, *count, *where])
    seconds, grown = total
    return SIMULATIONS * grown / seconds


def searching(rounds: int, device: str = "cpu") -> str:
    body = []
    ways = (False, True) if device == "cpu" else (False,)
    for compiled in ways:
        for case in CASES.values():
            search(case, 1, device, compiled)  # compiles
    for name, case in CASES.items():
        for trees in TREES[device]:
            speeds: dict[bool, list[float]] = {compiled: [] for compiled in ways}
            for _ in range(rounds):
                for compiled in ways:
                    speeds[compiled].append(search(case, trees, device, compiled))
            medians = [statistics.median(speeds[compiled]) for compiled in ways]
            ratio = [f"{medians[1] / medians[0]:.1f}"] if compiled else []
            body.append([name, str(trees), *map(short, medians), *ratio])
            progress(" ".join(body[-1]))
    columns = ("general", "compiled rules", "ratio")[: len(body[0]) - 2]
    head = ["game and network", "trees", *columns]
    return rows(head, body)
