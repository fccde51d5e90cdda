"""One ply of a pool of games that go on, new ones begun where others end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial

import torch
from bench_tools import PEERS, Worker, in_turn, ratio, rows

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.mlp import Mlp
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.sampling import Stochastic

SECONDS = 1.0
"""About how long one measurement takes."""

PLY_BATCHES = (64, 512, 4096)
BOARD_GAMES = ("tictactoe", "connect4", "gomoku", "othello", "breakthrough", "hex", "2048")
NEXT_TO_PGX = {
    "tictactoe": ["game=tictactoe"],
    "connect4": ["game=connect4"],
    "othello 8×8": ["game=othello", "board=8"],
    "2048": ["game=2048"],
}


class Pool:
    """Games that go on, new ones begun where others end, in moves a second of one thread's time, or
    by the clock.

    with_network: two layers of 128 choose, and the log-probabilities and values are recorded;
    otherwise play is random, and observations are computed.
    """

    def __init__(
        self,
        words: list[str],
        batch: int,
        with_network: bool,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.clock = clock
        game, rng = make("game", load_config(TrainConfig, words).game), torch.Generator()
        player: Player = Random(game, observe=True)
        if with_network:
            policy = Mlp(game, [128, 128], "relu", "orthogonal", True, True, rng.manual_seed(0))
            player = Agent(game, policy, Stochastic(), records_log_prob=True)
        self.pool = GamePool(game, [player], UNLIMITED_GAMES, rng.manual_seed(1), batch=batch)
        self.plies = max(16, 2**16 // batch)
        self()  # compiles, and ends the openings

    def __call__(self) -> float:
        moves, start = 0, self.clock()
        while self.clock() - start < SECONDS / 2:
            moves += self.pool.run(self.plies).num_moves
        return moves / (self.clock() - start)


def plies(rounds: int) -> str:
    """What is done between two moves, in every board game, without a network and with one."""
    columns = [(batch, net) for net in (True, False) for batch in PLY_BATCHES]
    sides = {
        f"{name}, {batch}{', network' * net}": Pool([f"game={name}"], batch, net)
        for name in BOARD_GAMES
        for batch, net in columns
    }
    results = in_turn(sides, rounds)
    body = [
        [name, *(results[f"{name}, {batch}{', network' * net}"].text() for batch, net in columns)]
        for name in BOARD_GAMES
    ]
    head = [f"{batch}, {'with a network' if net else 'at random'}" for batch, net in columns]
    return rows(["moves per second, by batch", *head], body)


def beside_pgx(rounds: int) -> str:
    """By the clock: one thread of ours, pgx on all cores."""
    body = []
    with Worker("bench_peer_pgx.py", PEERS, threads=2) as pgx:
        for name, words in NEXT_TO_PGX.items():
            for net, batch in itertools.product((True, False), PLY_BATCHES):
                game = name.partition(" ")[0]
                theirs = {"game": game, "batch": batch, "network": net}
                theirs["moves"] = _moves(game, batch)
                pgx.speed(**theirs)  # compiles
                sides: dict[str, Callable[[], float]] = {
                    "rlgames": Pool(words, batch, net, time.perf_counter),
                    "pgx": partial(pgx.speed, **theirs),
                }
                ours, other = in_turn(sides, rounds).values()
                how = f"{batch}, {'with a network' if net else 'at random'}"
                body.append([name, how, ours.text(), other.text(), ratio(ours, other)])
    return rows(["game", "games at once", "rlgames", "pgx", "ratio"], body)


def _moves(name: str, batch: int) -> int:
    """About as many as pgx makes in SECONDS."""
    speed = {"tictactoe": 4e6, "connect4": 2e6, "2048": 1e6, "othello": 4e5}[name]
    return int(speed * SECONDS * min(1, batch / 1024))
