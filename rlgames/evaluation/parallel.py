"""Long evaluations: games in shares, which several processes play at once where there are threads.

Processes, as threads of Python would wait for each other after every operation of torch.
"""

from __future__ import annotations

import mmap
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import HIDDEN, Game, State
from rlgames.players.player import Player
from rlgames.rollouts.play import InitialStates, play
from rlgames.rollouts.trajectories import FinalStates, Trajectories

BATCHES_PER_SHARD = 8
"""A share has so many batches of games; the last of them, which thins out, takes little of it."""

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)

Openings = Callable[[torch.Generator], InitialStates]
"""How games begin, by the generator that what is left to chance is drawn with."""


def sampled_by_game(game: Game[Any]) -> Openings:
    """The openings that the game itself draws."""
    return lambda rng: lambda _, count: game.initial(count, rng)


def play_sharded(
    game: Game[Any],
    players: Sequence[Player],
    games: int,
    rng: torch.Generator,
    openings: Openings,
    *,
    batch: int,
    seating: Tensor | None = None,
    record: bool = True,
) -> tuple[Trajectories | None, FinalStates]:
    """As play; more games than a share has are played in shares, each with a stream of chance of
    its own, as many at once as torch has threads. How many that are changes nothing.

    Raises RuntimeError where a process that played is killed, and what it raised.
    """
    size = BATCHES_PER_SHARD * batch
    if games <= size:
        start = openings(rng)
        return play(
            game, players, games, rng, batch=batch, start=start, seating=seating, record=record
        )
    firsts = range(0, games, size)
    seeds = torch.randint(2**62, (len(firsts),), generator=rng, device=rng.device).tolist()
    # Forks that have threads of their own, as macOS's libraries do, come to grief.
    able = sys.platform == "linux" and rng.device.type == "cpu" and not current_process().daemon
    apart = able and not any(player.is_stateful for player in players)
    workers = min(torch.get_num_threads(), len(firsts)) if apart else 1
    one = openings(torch.Generator(rng.device))(0, 1)
    final = _room(one, games, shared=workers > 1)

    def share(number: int) -> tuple[Trajectories | None, int]:
        """Play a share, and keep how its games ended; its moves, and how many they are."""
        first, own = firsts[number], torch.Generator(rng.device).manual_seed(seeds[number])
        opened = openings(own)
        rows = slice(first, min(first + size, games))
        moves, results = play(
            game,
            players,
            rows.stop - first,
            own,
            batch=batch,
            start=lambda begun, count: opened(first + begun, count),
            seating=None if seating is None else seating[rows],
            record=record,
        )
        _keep(final, rows, results.state)
        return moves, results.moves

    if workers > 1:
        found = _in_processes(share, len(firsts), workers)
    else:
        found = [share(number) for number in range(len(firsts))]
    moves = [each for each, _ in found if each is not None]
    results = FinalStates(final, sum(count for _, count in found))
    return (reduce(Trajectories.join, moves) if moves else None), results


def _room(one: State, games: int, shared: bool) -> State:
    """So many positions like one, not yet told, in memory that forks write to if it is shared."""

    def room(each: Tensor) -> Tensor:
        shape = (games, *each.shape[1:])
        if not shared or not each.numel():
            return each.new_empty(shape)
        memory = mmap.mmap(-1, games * each.numel() * each.element_size())
        return torch.frombuffer(memory, dtype=each.dtype).view(shape)

    columns = vars(one).items()
    return replace(one, **{n: each if each is HIDDEN else room(each) for n, each in columns})


def _keep(final: State, rows: slice, state: State) -> None:
    for name, each in vars(state).items():
        if each is not HIDDEN:
            getattr(final, name)[rows] = each


def _in_processes(share: Callable[[int], Any], shares: int, workers: int) -> list[Any]:
    """What share says of each number, worked out by so many forks side by side."""
    fork = get_context("fork")
    forks, pipes = [], []
    try:
        for worker in range(workers):
            # A pipe of an earlier fork would keep this one's open when nobody reads any more.
            pipe, theirs = fork.Pipe(duplex=False)
            pipes.append(pipe)
            work = (share, range(worker, shares, workers), theirs, list(pipes))
            process = fork.Process(target=_work, args=work, daemon=True)
            # Where an interruption meets a fork in the making it would be lost.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
            try:
                process.start()
                forks.append(process)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        found = []
        for number in range(shares):
            try:
                told = pickle.loads(pipes[number % workers].recv_bytes())
            except EOFError:
                raise RuntimeError("a process that played games was killed") from None
            if isinstance(told, BaseException):
                raise told
            found.append(told)
        return found
    finally:
        for process in forks:
            process.kill()
            process.join()


def _work(
    share: Callable[[int], Any], numbers: range, pipe: Connection, others: Sequence[Connection]
) -> None:
    """In a fork: say of each number what share says, or what it raised.

    others: the parent's ends of pipes, which would stay open here when the parent is gone.
    """
    for other in others:
        other.close()
    # An interruption is for the parent to tell of: it ends its forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)
    torch.set_num_threads(1)
    try:
        for number in numbers:
            pipe.send_bytes(pickle.dumps(share(number)))
    except BrokenPipeError:
        pass  # nobody waits any more
    except Exception as error:
        pipe.send_bytes(_told(error))


def _told(error: Exception) -> bytes:
    try:
        told = pickle.dumps(error)
        pickle.loads(told)
    except Exception:
        told = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return told
