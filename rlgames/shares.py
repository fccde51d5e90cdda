"""Long evaluations: games in shares, some of which are played at once where there are threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.play import Moves, Results, Start, play
from rlgames.players.player import Player

SHARE = 8
"""A share has so many batches of games; the last of them, which thins out, takes little of it."""

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
    its own, as many at once as torch has threads. How many that are changes nothing."""
    size = SHARE * batch
    if games <= size:
        start = openings(rng)
        return play(
            game, players, games, rng, batch=batch, start=start, seating=seating, record=record
        )
    firsts = range(0, games, size)
    seeds = torch.randint(2**62, (len(firsts),), generator=rng, device=rng.device).tolist()
    stop = threading.Event()

    def share(first: int, seed: int) -> tuple[Moves | None, Results]:
        own = torch.Generator(rng.device).manual_seed(seed)
        opened = openings(own)

        def start(begun: int, count: int) -> State:
            if stop.is_set():
                raise CancelledError
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
    if rng.device.type != "cpu" or any(player.changes for player in players):
        found = [share(*each) for each in zip(firsts, seeds, strict=True)]
    else:
        try:
            torch.set_num_threads(1)
            with ThreadPoolExecutor(threads) as pool:
                try:
                    found = list(pool.map(share, firsts, seeds))
                except BaseException:
                    stop.set()
                    raise
        finally:
            torch.set_num_threads(threads)
    moves = [each for each, _ in found if each is not None]
    ended = [each for _, each in found]
    final = type(ended[0].state).cat([each.state for each in ended])
    results = Results(final, sum(each.moves for each in ended))
    return (reduce(Moves.join, moves) if moves else None), results
