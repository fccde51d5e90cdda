"""One ply of a pool of games that go on, new ones begun where others end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial

from bench_tools import PEERS, Worker, in_turn, ratio, rows

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.players.player import Agent, ObservingRandom, Player
from rlgames.policies.mlp import Mlp
from rlgames.rng import Rng
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.sampling import Stochastic

SECONDS = 1.0
"""About how long one measurement takes."""

PLY_BATCHES = (64, 512, 4096)
NEXT_TO_PGX = {
    "tictactoe": ["game=tictactoe"],
    "connect4": ["game=connect4"],
    "othello 8×8": ["game=othello", "board=8"],
    "2048": ["game=2048"],
}


class Pool:
    """Games that go on, new ones begun where others end, in moves a second by a clock.

    with_network: two layers of 128 choose, and the log-probabilities and values are recorded;
    otherwise play is random, and observations are computed.
    """

    def __init__(
        self,
        words: list[str],
        batch: int,
        with_network: bool,
        clock: Callable[[], float],
    ) -> None:
        self.clock = clock
        game, init = make("game", load_config(TrainConfig, words).game), Rng(0).generator()
        player: Player = ObservingRandom(game)
        if with_network:
            policy = Mlp(game, [128, 128], "relu", "orthogonal", True, True, init, False)
            player = Agent(game, policy, Stochastic(1.0), records_log_prob=True)
        self.pool = GamePool(game, [player], UNLIMITED_GAMES, Rng(1), batch=batch)
        self.plies = max(16, 2**16 // batch)
        self()  # compiles, and ends the openings

    def __call__(self) -> float:
        moves, start = 0, self.clock()
        while self.clock() - start < SECONDS / 2:
            moves += self.pool.run(self.plies).num_moves
        return moves / (self.clock() - start)


def beside_pgx(rounds: int) -> str:
    """Ours by one thread. One core of pgx: both in CPU time. All cores: both by the clock."""
    body = []
    with (
        Worker("bench_peer_pgx.py", PEERS) as one_core,
        Worker("bench_peer_pgx.py", PEERS, threads=2) as all_cores,
    ):
        for (name, words), net, batch in itertools.product(
            NEXT_TO_PGX.items(), (True, False), PLY_BATCHES
        ):
            theirs = {"game": name.partition(" ")[0], "batch": batch, "network": net}
            theirs["moves"] = _moves(name, batch)
            sides: dict[str, Callable[[], float]] = {}
            for cores, pgx in ((1, one_core), (2, all_cores)):
                pgx.speed(**theirs)  # compiles
                clock = time.thread_time if cores == 1 else time.perf_counter
                sides[f"rlgames {cores}"] = Pool(words, batch, net, clock)
                sides[f"pgx {cores}"] = partial(pgx.speed, **theirs)
            ours, one, by_clock, both = in_turn(sides, rounds).values()
            how = f"{batch}, {'with a network' if net else 'at random'}"
            body.append([name, how, ours.text(), one.text(), ratio(ours, one)])
            body[-1] += [both.text(), ratio(by_clock, both)]
    peers = ("pgx on one core", "ratio", "pgx on all cores", "ratio")
    return rows(["game", "games at once", "rlgames (one thread)", *peers], body)


def beside_envpool(rounds: int) -> str:
    """Random moves, both in CPU time of one thread."""
    body = []
    with Worker("bench_peer_envpool.py", PEERS) as envpool:
        for (name, words), batch in itertools.product(NEXT_TO_PGX.items(), PLY_BATCHES):
            theirs = {"game": name.partition(" ")[0], "batch": batch, "seconds": SECONDS / 2}
            ours = Pool(words, batch, False, time.thread_time)
            sides: dict[str, Callable[[], float]] = {"rlgames": ours}
            sides["EnvPool"] = partial(envpool.speed, **theirs)
            own, other = in_turn(sides, rounds).values()
            body.append([name, str(batch), own.text(), other.text(), ratio(own, other)])
    return rows(["game", "games at once", "rlgames", "EnvPool", "ratio"], body)


def _moves(name: str, batch: int) -> int:
    """About as many as pgx makes in SECONDS."""
    speed = {"tictactoe": 4e6, "connect4": 2e6, "2048": 1e6, "othello 8×8": 4e5}[name]
    return int(speed * SECONDS * min(1, batch / 1024))
