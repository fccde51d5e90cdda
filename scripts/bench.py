"""Learning case 1 (4×4, one ship of 4, one shot) beside the loop that the documents write by hand.

Both use two layers of 16 units; the two are run in turn, and the medians are compared. rlgames is
timed as training runs it, playing and learning together, at settings that reach the optimum, 6.0.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import rlgames
from rlgames.run_files import read_metrics

ROUNDS = 3
SETTINGS = [
    "game=salvo",
    "reward.scored=gain",
    "reward.discount=0.9",
    "ships=[4]",
    "shots=1",
    "encoding=signed",
    "policy.layers=[16,16]",
    "policy.activation=tanh",
    "learner=reinforce",
    "learner.lr_end=0",
    "learner.entropy=0.02",
    "lr=0.02",
    "batch=1024",
    "games=150000",
    "log_every=15000",
    "solve_seconds=0",
]


def by_hand(games: int, seed: int) -> float:
    """Moves a second of a plain loop: one game at a time, one cell at a time, one step a game."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    layers = [nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)]
    net = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.06)
    start, moves = time.perf_counter(), 0
    for _ in range(games):
        line = int(rng.integers(4))
        down = bool(rng.integers(2))
        ship = {4 * i + line if down else 4 * line + i for i in range(4)}
        board = np.full(16, -1.0, np.float32)
        boards: list[np.ndarray] = []
        actions: list[int] = []
        hits: list[int] = []
        while sum(hits) < 4:
            with torch.no_grad():
                p = net(torch.from_numpy(board)).softmax(0).numpy().astype(np.float64)
            p[actions] = 0
            cell = int(rng.choice(16, p=p / p.sum()))
            boards.append(board.copy())
            actions.append(cell)
            hits.append(int(cell in ship))
            board[cell] = hits[-1]
        above = [hit - (4 - sum(hits[:t])) / (16 - t) for t, hit in enumerate(hits)]
        returns = [
            sum(value * 0.5 ** (t - now) for t, value in enumerate(above) if t >= now)
            for now in range(len(above))
        ]
        log_p = net(torch.from_numpy(np.stack(boards))).log_softmax(1)
        taken = log_p[torch.arange(len(actions)), torch.tensor(actions)]
        optimizer.zero_grad()
        (-(torch.tensor(returns) * taken).sum()).backward()
        optimizer.step()
        moves += len(actions)
    return moves / (time.perf_counter() - start)


def by_rlgames(seed: int) -> tuple[float, float, float]:
    """Moves a second (median over the run), greedy turns, seconds until the optimum was met."""
    with tempfile.TemporaryDirectory() as folder:
        run = rlgames.train([*SETTINGS, f"seed={seed}", f"out={folder}/run"])
        lines = read_metrics(Path(run) / "metrics.jsonl")
        turns = rlgames.evaluate(run, ["solve_seconds=0"])["moves"]["mean"]
    speeds = [line["time/moves_per_s"] for line in lines if "time/moves_per_s" in line]
    met = [line["time/seconds"] for line in lines if line.get("eval/turns", 99) <= 6.0]
    return statistics.median(speeds), turns, met[0] if met else float("nan")


def main() -> None:
    torch.set_num_threads(1)
    ours, theirs = [], []
    for seed in range(ROUNDS):
        speed, turns, met = by_rlgames(seed)
        ours.append(speed)
        theirs.append(by_hand(500, seed))
        print(
            f"seed {seed}: rlgames {speed:,.0f} moves/s, greedy {turns:.4f} turns "
            f"(6.0 met after {met:.1f} s); by hand {theirs[-1]:,.0f} moves/s"
        )
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(
        f"median: rlgames {statistics.median(ours):,.0f}, by hand {statistics.median(theirs):,.0f} "
        f"moves learnt from a second; {ratio:.0f} times"
    )


if __name__ == "__main__":
    main()
