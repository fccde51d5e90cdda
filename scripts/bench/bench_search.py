"""How fast tree search around a network is, alone and next to mctx."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from bench_tools import PEERS, Worker, in_turn, progress, ratio, rows, short

import rlgames
from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.games.game import Game, State
from rlgames.players.player import Decision
from rlgames.search import mcts
from rlgames.search.self_play import SearchSelfPlay
from rlgames.training.components import build_components

SIMULATIONS = 32
SECONDS = 1.0
"""About how long a measurement next to mctx takes, in processor time."""
MAX_RANDOM_PLIES = 40
"""Searched positions are reached by up to so many random moves."""
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
OF_2048 = ["game=2048", "learner=alphazero", "search=mcts", "search.leaf=value", *MLP]
MCTX_CASES = {
    "connect4": ["experiment=connect4_alphazero", *MLP],
    "othello": ["experiment=othello_alphazero", "game.board=8", *MLP],
    "hex": ["experiment=hex_alphazero", "game.board=11", *MLP],
    "2048": [*OF_2048, "search.c_puct=1", "search.dirichlet_fraction=0.25"],
}
"""The games that pgx also has, on its boards."""
LABELS = {"connect4": "Connect 4", "othello": "Othello 8×8", "hex": "Hex 11×11", "2048": "2048"}


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
    general = patch.object(mcts, "find_compiled_rules", lambda _: None)
    with (
        tempfile.TemporaryDirectory() as folder,
        nullcontext() if compiled else general,
        timed_searches() as total,
    ):
        rlgames.train([*case, f"out={folder}/r", *little, *count, *where])
    seconds, grown = total
    return SIMULATIONS * grown / seconds


def varied_positions(game: Game[Any], count: int, rng: torch.Generator) -> State:
    """Positions after 0, 1, 2, ... random plies; some may be over."""
    state: State = game.initial(count, rng)
    for ply in range(MAX_RANDOM_PLIES):
        moves = (torch.arange(count) % MAX_RANDOM_PLIES > ply) & ~state.done
        live = moves.nonzero()[:, 0]
        action = game.sample_legal_action(state[live], torch.rand(len(live), generator=rng))
        after = game.step(state[live], action, rng)
        row = torch.arange(count)
        row[live] = count + torch.arange(len(live))
        state = type(state).cat([state, after])[row]
    return state


def self_play(case: list[str], trees: int) -> dict[str, float]:
    """Simulations per second, as `speed`, and `per_cpu_second`, of searches side by side in games
    that began with random moves; new ones begin where games end."""
    where = [f"search.simulations={SIMULATIONS}", "threads=1", "device=cpu", "solve_seconds=0"]
    components = build_components(load_config(TrainConfig, [*case, *where, f"batch={trees}"]))
    game, player, rng = components.game, components.players[0], torch.Generator().manual_seed(1)
    state, count, wall, cpu = varied_positions(game, trees, rng), 0, 0.0, 0.0
    player.act(state, rng)  # compiles
    while cpu < SECONDS:
        if state.done.any():
            fresh = varied_positions(game, trees, rng)
            state = type(state).cat([state, fresh])[torch.arange(trees) + trees * state.done]
        begun, begun_cpu = time.perf_counter(), time.process_time()
        decision = player.act(state, rng)
        wall, cpu = wall + time.perf_counter() - begun, cpu + time.process_time() - begun_cpu
        count += int((~state.done).sum())
        state = game.step(state, decision.action, rng)
    work = SIMULATIONS * count
    return {"speed": work / wall, "per_cpu_second": work / cpu}


def beside_mctx(rounds: int) -> str:
    """By processor time, with mctx on one core; on an idle machine also by the clock, with mctx on
    all cores. rlgames has one thread."""
    cores, body = os.cpu_count() or 1, []
    is_idle = os.getloadavg()[0] < 1
    with (
        Worker("bench_peer_mctx.py", PEERS) as on_one,
        Worker("bench_peer_mctx.py", PEERS, threads=cores) as on_all,
    ):
        for game, label in LABELS.items():
            for trees in TREES["cpu"]:
                cells = next_to_mctx(on_one, "per_cpu_second", game, trees, rounds)
                if is_idle:
                    cells += next_to_mctx(on_all, "speed", game, trees, rounds)
                body.append([label, f"{trees:,}", *cells])
                progress(" ".join(body[-1]))
    columns = ["per processor second: rlgames", "mctx on one core", "ratio"]
    if is_idle:
        columns += ["by the clock: rlgames", f"mctx on {cores} cores", "ratio"]
    return rows(["game", "trees", *columns], body)


def next_to_mctx(mctx: Worker, speed: str, game: str, trees: int, rounds: int) -> list[str]:
    """The medians of both, in turn, and their ratio with the range over the rounds."""
    words = {"game": game, "trees": trees, "simulations": SIMULATIONS, "seconds": SECONDS}
    sides = {
        "rlgames": lambda: self_play(MCTX_CASES[game], trees)[speed],
        "mctx": lambda: float(mctx.ask(**words, policy="muzero_policy")[speed]),
    }
    ours, theirs = in_turn(sides, rounds).values()
    return [short(ours.median), short(theirs.median), ratio(ours, theirs)]


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
