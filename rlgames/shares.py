"""Long evaluations: games in shares, played by as many processes as torch has threads."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Sequence
from functools import reduce
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.play import Moves, Results, Start, play
from rlgames.players.player import Player

SHARE = 8
"""A share has so many batches of games; the last of them, which thins out, takes little of it."""

T = TypeVar("T")

Openings = Callable[[torch.Generator], Start]
"""How games begin, by the generator that what is left to chance is drawn with."""


def drawn_by(game: Game[Any]) -> Openings:
    """The openings that the game itself draws."""
    return lambda rng: lambda _, count: game.initial(count, rng)


def play_in_shares(
    game: Game[Any],
    players: Sequence[Player],
    games: int,
    rng: torch.Generator,
    openings: Openings,
    *,
    batch: int,
    seating: Tensor | None = None,
    record: bool = True,
) -> tuple[Moves | None, Results]:
    """As play; more games than a share has are played in shares, each with a stream of chance of
    its own, by as many processes as torch has threads. How many that are changes nothing."""
    size = SHARE * batch
    if games <= size:
        start = openings(rng)
        return play(
            game, players, games, rng, batch=batch, start=start, seating=seating, record=record
        )
    firsts = range(0, games, size)
    seeds = torch.randint(2**62, (len(firsts),), generator=rng, device=rng.device).tolist()

    def share(first: int, seed: int) -> tuple[Moves | None, Results]:
        own = torch.Generator(rng.device).manual_seed(seed)
        opened = openings(own)

        def start(begun: int, count: int) -> State:
            return opened(first + begun, count)

        return play(
            game,
            players,
            min(size, games - first),
            own,
            batch=batch,
            start=start,
            seating=None if seating is None else seating[first : first + size],
            record=record,
        )

    threads = torch.get_num_threads()
    shares = list(zip(firsts, seeds, strict=True))
    if threads == 1 or rng.device.type != "cpu" or any(player.changes for player in players):
        found = [share(*each) for each in shares]
    else:
        found = _in_processes(lambda number: share(*shares[number]), len(shares), threads)
    moves = [each for each, _ in found if each is not None]
    ended = [each for _, each in found]
    final = type(ended[0].state).cat([each.state for each in ended])
    results = Results(final, sum(each.moves for each in ended))
    return (reduce(Moves.join, moves) if moves else None), results


def _in_processes(job: Callable[[int], T], count: int, processes: int) -> list[T]:
    """What job makes of 0 to count - 1, each in one of so many forks of this process.

    Threads would wait for each other at every operation, to hold the interpreter's lock.
    """
    context = multiprocessing.get_context("fork")
    begun = []
    try:
        for first in range(min(processes, count)):
            here, there = context.Pipe(duplex=False)
            own = range(first, count, processes)
            fork = context.Process(target=_work, args=(job, own, there), daemon=True)
            fork.start()
            there.close()
            begun.append((own, fork, here))
        found: dict[int, T] = {}
        for own, _, here in begun:
            for number in own:
                try:
                    made = pickle.loads(here.recv_bytes())
                except EOFError:
                    raise RuntimeError("a process that played games was killed") from None
                if isinstance(made, BaseException):
                    raise made
                found[number] = made
        return [found[number] for number in range(count)]
    finally:
        for _, fork, here in begun:
            fork.kill()
            fork.join()
            here.close()


def _work(job: Callable[[int], object], numbers: Sequence[int], there: Connection) -> None:
    """In a fork: send what comes of each number, or the exception that ends it."""
    # The process that it comes from is told, and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    for number in numbers:
        try:
            made: object = job(number)
        except Exception as error:
            made = error
        there.send_bytes(pickle.dumps(made))
        if isinstance(made, Exception):
            return
