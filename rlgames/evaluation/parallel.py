"""Long evaluations: games are split into shards, which several processes play at once.

Processes rather than threads, because Python threads wait for each other after every torch
operation. The processes are forks, so that players and games need not be pickled.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from typing import Any, TypeVar

import torch
from torch import Tensor

from rlgames.core.processes import kill_with_parent
from rlgames.core.rng import make_generator
from rlgames.core.signals import STOP_SIGNALS
from rlgames.games.game import HIDDEN, Game, State
from rlgames.players.player import Player
from rlgames.rollouts.play import GamePool, InitialStates
from rlgames.rollouts.trajectories import FinalStates, Trajectories

T = TypeVar("T")

BATCHES_PER_SHARD = 8
"""Long enough that the end of a shard, where few games are left, takes a small part of its time."""


@dataclass(frozen=True)
class ShardedGames:
    """Games to play, at most `batch` of them side by side; the fields are those of GamePool.

    Up to BATCHES_PER_SHARD batches are played in one pool. More are split into shards, each with
    its own random stream, and as many shards run at once as torch has threads. The number of
    threads does not change the result.
    """

    game: Game[Any]
    players: Sequence[Player]
    games: int
    batch: int
    initial_states: InitialStates
    seating: Tensor | None = None

    def run(self, rng: torch.Generator) -> FinalStates:
        """Play all games. Raises RuntimeError if a process is killed, or what it raised."""
        return self._play(rng, lambda pool: (None, pool.run()))[1]

    def collect(self, rng: torch.Generator) -> tuple[Trajectories, FinalStates]:
        """Like run, and record every move."""
        shards, final = self._play(rng, GamePool.collect)
        return reduce(Trajectories.join, shards), final

    def _play(
        self, rng: torch.Generator, play: Callable[[GamePool], tuple[T, FinalStates]]
    ) -> tuple[list[T], FinalStates]:
        """What play returns besides the final states for each shard, and all final states."""
        rows = self._rows_by_shard()
        if len(rows) == 1:
            result, final = play(self._pool(rows[0], rng))
            return [result], final
        seed = int(torch.randint(2**62, (1,), generator=rng, device=rng.device))
        workers = min(torch.get_num_threads(), len(rows)) if self._can_fork(rng.device) else 1
        example = self.initial_states(0, 1, torch.Generator(rng.device))
        state = _allocate(example, self.games, shared=workers > 1)

        def play_shard(shard: int) -> tuple[T, int]:
            """Play a shard and store its final positions; the rest of its result."""
            own_rng = make_generator(seed, f"shard {shard}", rng.device)
            result, final = play(self._pool(rows[shard], own_rng))
            _store(state, rows[shard], final.state)
            return result, final.num_moves

        if workers > 1:
            results = _map_in_forks(play_shard, len(rows), workers)
        else:
            results = [play_shard(shard) for shard in range(len(rows))]
        num_moves = sum(moves for _, moves in results)
        return [result for result, _ in results], FinalStates(state, num_moves)

    def _rows_by_shard(self) -> list[slice]:
        size = BATCHES_PER_SHARD * self.batch
        starts = range(0, self.games, size)
        return [slice(start, min(start + size, self.games)) for start in starts]

    def _pool(self, rows: slice, rng: torch.Generator) -> GamePool:
        """A pool that plays some of the games."""

        def initial_states(first: int, count: int, rng: torch.Generator) -> State:
            return self.initial_states(rows.start + first, count, rng)

        return GamePool(
            self.game,
            self.players,
            rows.stop - rows.start,
            rng,
            batch=self.batch,
            initial_states=initial_states,
            seating=None if self.seating is None else self.seating[rows],
        )

    def _can_fork(self, device: torch.device) -> bool:
        """Whether forks may play: libraries of macOS start threads, which do not survive a fork;
        daemons may not have children; what a stateful player counts would be lost with the fork."""
        is_supported = sys.platform == "linux" and device.type == "cpu"
        is_stateful = any(player.is_stateful for player in self.players)
        return is_supported and not current_process().daemon and not is_stateful


def _allocate(example: State, games: int, shared: bool) -> State:
    """Uninitialized positions [games] with the fields of an example [1]; shared: in memory that
    forks can write to."""

    def allocate(column: Tensor) -> Tensor:
        shape = (games, *column.shape[1:])
        if not shared or not column.numel():
            return column.new_empty(shape)
        memory = mmap.mmap(-1, games * column.numel() * column.element_size())
        return torch.frombuffer(memory, dtype=column.dtype).view(shape)

    columns = vars(example).items()
    return replace(
        example,
        **{name: column if column is HIDDEN else allocate(column) for name, column in columns},
    )


def _store(target: State, rows: slice, source: State) -> None:
    for name, column in vars(source).items():
        if column is not HIDDEN:
            getattr(target, name)[rows] = column


def _map_in_forks(task: Callable[[int], T], count: int, workers: int) -> list[T]:
    """task(0) to task(count - 1), computed by `workers` forks side by side."""
    context = get_context("fork")
    forks: list[ForkProcess] = []
    pipes: list[Connection] = []
    try:
        for worker in range(workers):
            _start_fork(context, task, range(worker, count, workers), forks, pipes)
        return [_receive(pipes[index % workers]) for index in range(count)]
    finally:
        for process in forks:
            process.kill()
            process.join()


def _start_fork(
    context: ForkContext,
    task: Callable[[int], Any],
    indices: range,
    forks: list[ForkProcess],
    pipes: list[Connection],
) -> None:
    """Start a fork that computes task for some indices; appends it and the pipe to read from."""
    reader, writer = context.Pipe(duplex=False)
    pipes.append(reader)
    # The fork closes the readers of earlier forks, which would keep those pipes open.
    arguments = (task, indices, writer, list(pipes), os.getpid())
    process = context.Process(target=_work, args=arguments, daemon=True)
    # An interruption that arrives while the process starts would be lost.
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        process.start()
        forks.append(process)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    writer.close()


def _receive(pipe: Connection) -> Any:
    """The next result of a fork; raises what the fork raised."""
    try:
        result = pickle.loads(pipe.recv_bytes())
    except EOFError:
        raise RuntimeError("a process that played games was killed") from None
    if isinstance(result, BaseException):
        raise result
    return result


def _work(
    task: Callable[[int], Any],
    indices: range,
    pipe: Connection,
    readers: Sequence[Connection],
    parent: int,
) -> None:
    """In a fork: send the result of each index, or the exception. It ends with its parent.

    readers: the parent's ends of pipes. Open copies here would outlive the parent.
    """
    kill_with_parent(parent)
    for reader in readers:
        reader.close()
    # Only the parent reports an interruption; it ends its forks.
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all its processes
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    torch.set_num_threads(1)
    try:
        for index in indices:
            pipe.send_bytes(pickle.dumps(task(index)))
    except BrokenPipeError:
        pass  # the parent has stopped reading
    except Exception as error:
        pipe.send_bytes(_pickle_exception(error))


def _pickle_exception(error: Exception) -> bytes:
    """The exception, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled
