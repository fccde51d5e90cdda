"""The loop that the documents write by hand: a game at a time, a cell at a time, a step a game.

Policy gradient as they describe it: the reward of a shot is its hit less what a random shot would
hit, discounted by 0.5; plain SGD with a step of 0.06; two layers of tanh units, masked moves.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from bench_case import CASES, Array, greedy_turns, layouts
from bench_tools import serve
from torch import nn

LOOK_EVERY = 250
"""Games between two looks at how well it plays; their time does not count."""


def answer(case: int, seconds: float, until: float, units: int, seed: int) -> dict[str, Any]:
    """Learn for `seconds`, or until all layouts take at most `until` turns on average."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    fleets = layouts(*CASES[case])
    cells = fleets.shape[1]
    net = nn.Sequential(
        *(nn.Linear(cells, units), nn.Tanh(), nn.Linear(units, units), nn.Tanh()),
        nn.Linear(units, cells),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.06)

    def scores(boards: Array) -> Array:
        with torch.no_grad():
            results: Array = net(torch.from_numpy(boards)).numpy()
        return results

    spent, moves, turns = 0.0, 0, math.inf
    while spent < seconds and turns > until:
        start = time.perf_counter()
        for _ in range(LOOK_EVERY):
            moves += one_game(net, optimizer, fleets[rng.integers(len(fleets))], rng)
        spent += time.perf_counter() - start
        turns = greedy_turns(fleets, scores) if until else math.inf
    return {"speed": moves / spent, "seconds": spent, "turns": turns, "reached": turns <= until}


def one_game(
    net: nn.Module, optimizer: torch.optim.Optimizer, fleet: Array, rng: np.random.Generator
) -> int:
    """Play and learn; the number of moves."""
    cells, ships = len(fleet), int(fleet.sum())
    board = np.full(cells, -1, np.float32)
    boards: list[Array] = []
    actions: list[int] = []
    hits: list[int] = []
    while sum(hits) < ships:
        with torch.no_grad():
            scores = net(torch.from_numpy(board)).double()
            scores[actions] = -torch.inf
            p = scores.softmax(0).numpy()
        cell = int(rng.choice(cells, p=p))
        boards.append(board.copy())
        actions.append(cell)
        hits.append(int(fleet[cell]))
        board[cell] = hits[-1]
    above = [hit - (ships - sum(hits[:t])) / (cells - t) for t, hit in enumerate(hits)]
    returns = [
        sum(value * 0.5 ** (t - now) for t, value in enumerate(above) if t >= now)
        for now in range(len(above))
    ]
    log_p = net(torch.from_numpy(np.stack(boards))).log_softmax(1)
    taken = log_p[torch.arange(len(actions)), torch.tensor(actions)]
    optimizer.zero_grad()
    (-(torch.tensor(returns) * taken).sum()).backward()
    optimizer.step()
    return len(actions)


if __name__ == "__main__":
    serve(answer)
