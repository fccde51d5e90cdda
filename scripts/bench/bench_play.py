"""Random legal play of whole games, new ones begun where others end, with observations computed.

Our side is `rlgames eval player=random player.observe=true`; its time includes the openings, and
the end, when no new games are begun and fewer and fewer are left.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from bench_tools import PEERS, Rounds, Worker, in_turn, progress, ratio, rows

import rlgames
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.evaluation.shards import BATCHES_PER_SHARD
from rlgames.players.player import Agent, Player, Random
from rlgames.policies.mlp import Mlp
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.sampling import Stochastic

SECONDS = 1.0
"""About how long one measurement takes, longer where two shares of games do."""

BATCHES = (64, 1024, 4096, 16384)
SETTINGS: tuple[list[str], ...] = (["threads=1"], ["threads=2"])
"""What is tried on our side; the fastest is measured."""

PLY_BATCHES = (64, 512, 4096)
BOARD_GAMES = ("tictactoe", "connect4", "gomoku", "othello", "breakthrough", "hex", "2048")

KERNEL_GAMES = {"tictactoe": 40_000, "connect4": 40_000, "2048": 4_000}
"""From this number of games on, random play is compiled."""

FLEET = ["board=10", "ships=[5,4,3,3,2]", "shots=1"]
GAMES = {
    "tictactoe": ["game=tictactoe"],
    "connect4": ["game=connect4"],
    "2048": ["game=2048"],
    "othello": ["game=othello"],
    "hex": ["game=hex"],
    "salvo 10×10": ["game=salvo", *FLEET],
}
PGX = ("tictactoe", "connect4", "2048", "othello", "hex")
"""The games that pgx has, too."""

PLIES_NEXT_TO_PGX = {
    "tictactoe": ["game=tictactoe"],
    "connect4": ["game=connect4"],
    "othello 8×8": ["game=othello", "board=8"],
    "2048": ["game=2048"],
}

Words = dict[str, str | int | float]

EXAMPLES: Words = {"numbers": "threefry2x32", "nth": False}
VARIANTS: tuple[Words, ...] = (
    EXAMPLES,
    {"numbers": "threefry2x32", "nth": True},
    {"numbers": "unsafe_rbg", "nth": True},
)
"""Ways to play at random in pgx; of which the fastest is measured, and the first one once."""

OPENSPIEL = {
    "tictactoe": "tictactoe",
    "connect4": "connect4",
    "2048": "2048",
    "battleship": "salvo 10×10",
    "battleship, shots repeated": "salvo 10×10",
}
"""Our game for each of OpenSpiel's."""


@dataclass(frozen=True)
class Ours:
    """Random play of one of our games with settings of `eval`, in moves a second."""

    name: str
    batch: int
    words: tuple[str, ...]
    games: int

    def __call__(self) -> float:
        results = rlgames.evaluate(None, [*_words(self.name, self.batch, self.games), *self.words])
        return float(results["moves_per_s"])


def _words(name: str, batch: int, games: int) -> list[str]:
    play = ["player=random", "player.observe=true", "solve_seconds=0", f"batch={batch}"]
    return [*play, *GAMES[name], f"games={games}"]


def at_best(name: str, batch: int) -> Ours:
    """With the fastest of SETTINGS, and as many games as take about SECONDS."""
    games = KERNEL_GAMES.get(name, batch)
    for _ in range(3):  # the first time compiles
        results = rlgames.evaluate(None, _words(name, batch, games))
        games = max(2 * batch, int(SECONDS * results["moves_per_s"] / results["moves"]["mean"]))
        games = _whole_shares(games, batch)
    ways = [Ours(name, batch, tuple(words), games) for words in SETTINGS]
    return max(ways, key=lambda way: way())


def _whole_shares(games: int, batch: int) -> int:
    """At least as many games, in whole shares for each of two processes."""
    pair = 2 * BATCHES_PER_SHARD * batch
    return -(-games // pair) * pair


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


def plies_beside_pgx(rounds: int) -> str:
    """The same by the clock: one thread of ours, pgx on all cores with the fastest of VARIANTS."""
    body = []
    with Worker("bench_peer_pgx.py", PEERS, threads=2) as pgx:
        for name, words in PLIES_NEXT_TO_PGX.items():
            sides: dict[str, Callable[[], float]] = {}
            for net, batch in itertools.product((True, False), PLY_BATCHES):
                theirs: Words = {"game": name.partition(" ")[0], "batch": batch, "network": net}
                theirs["moves"] = _moves(str(theirs["game"]), batch)
                tried = {}
                for way in VARIANTS:
                    pgx.speed(**theirs, **way)  # compiles
                    tried[pgx.speed(**theirs, **way)] = way
                row = f"{batch}, {'with a network' if net else 'at random'}"
                sides[f"rlgames {row}"] = Pool(words, batch, net, time.perf_counter)
                sides[f"pgx {row}"] = partial(pgx.speed, **theirs, **tried[max(tried)])
            results = in_turn(sides, rounds)
            for row in (side.removeprefix("pgx ") for side in sides if side.startswith("pgx ")):
                body.append(_row(name, row, results[f"rlgames {row}"], results[f"pgx {row}"]))
                progress(f"{name}, {row}: {body[-1][-1]}")
    return rows(["game", "games at once", "rlgames", "pgx", "ratio"], body)


def beside_pgx(rounds: int) -> str:
    body = []
    with Worker("bench_peer_pgx.py", PEERS, threads=2) as pgx:
        for name in PGX:
            sides: dict[str, Callable[[], float]] = {}

            def played(batch: int, words: Words, name: str = name) -> Callable[[], float]:
                words = {"game": name, "batch": batch, "moves": _moves(name, batch), **words}
                return partial(pgx.speed, **words)

            tried = {max(played(4096, words)() for _ in range(3)): words for words in VARIANTS}
            fastest = tried[max(tried)]
            progress(f"pgx {name}: {fastest}")
            for batch in BATCHES:
                sides[f"rlgames {name}, {batch}"] = at_best(name, batch)
                sides[f"pgx {name}, {batch}"] = played(batch, fastest)
            sides[f"pgx {name}, as in its examples"] = played(4096, EXAMPLES)
            for side in sides.values():
                side()  # compiles
            results = in_turn(sides, rounds)
            ours = {batch: results[f"rlgames {name}, {batch}"] for batch in BATCHES}
            peer_results = {batch: results[f"pgx {name}, {batch}"] for batch in BATCHES}
            for batch in BATCHES:
                body.append(_row(name, str(batch), ours[batch], peer_results[batch]))
            usual = results[f"pgx {name}, as in its examples"]
            body.append(_row(name, "4096, pgx as in its examples", ours[4096], usual))
            theirs = best([*peer_results.values(), usual])
            body.append(_row(name, "**each at its best**", best(ours.values()), theirs))
            progress(body[-1][-1] + f" times pgx in {name}")
    return rows(["game", "batch", "rlgames", "pgx", "ratio"], body)


def beside_openspiel(rounds: int) -> str:
    """Each with one core, and with two: OpenSpiel plays in two processes then."""
    body = []
    script = "bench_peer_openspiel.py"
    with Worker(script, PEERS) as first, Worker(script, PEERS) as second:
        for theirs_name, name in OPENSPIEL.items():
            fastest = at_best(name, 4096)
            sides: dict[str, Callable[[], float]] = {"rlgames": fastest}
            for how in ("bots", "python"):
                words = {"game": theirs_name, "how": how, "seconds": SECONDS}
                sides[how] = partial(_both, first, second, **words)
            results = in_turn(sides, rounds)
            ours = results["rlgames"]
            each = [
                f"{results[how].text()}: {ratio(ours, results[how])}" for how in ("bots", "python")
            ]
            body.append([theirs_name, ours.text(), *each])
            progress(f"OpenSpiel, {theirs_name}: {each[0]}")
    head = ["game", "rlgames, batch 4096", "OpenSpiel's bots: ratio", "from Python: ratio"]
    return rows(head, body)


def best(results: Iterable[Rounds]) -> Rounds:
    return max(results, key=lambda rounds: rounds.median)


def _row(name: str, batch: str, ours: Rounds, peer_results: Rounds) -> list[str]:
    return [name, batch, ours.text(), peer_results.text(), ratio(ours, peer_results)]


def _moves(name: str, batch: int) -> int:
    """About as many as pgx makes in SECONDS."""
    speed = {"tictactoe": 4e6, "connect4": 2e6, "2048": 1e6, "othello": 4e5, "hex": 3e5}[name]
    return int(speed * SECONDS * min(1, batch / 1024))


def _both(*workers: Worker, **words: str | int | float) -> float:
    """All asked at once; their speeds together."""
    for worker in workers:
        worker.send(**words)
    return sum(float(worker.receive()["speed"]) for worker in workers)
