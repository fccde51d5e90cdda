"""Long evaluations: games are split into shards, which several processes play at once.

Processes rather than threads, because Python threads wait for each other after every torch
operation. The processes are forks, so that players and games need not be pickled.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from rlgames.core import progress, signals
from rlgames.core.forks import Fork, can_fork
from rlgames.core.rng import make_generator
from rlgames.evaluation.chance import MoveHashes
from rlgames.evaluation.greedy_play import find_greedy_play
from rlgames.games.board_game import BoardGame
from rlgames.games.game import HIDDEN, Game, State
from rlgames.players.player import Player, Random
from rlgames.rollouts.play import GamePool, InitialStates
from rlgames.rollouts.trajectories import FinalStates, PlyRecord, Trajectories

T = TypeVar("T")

Kernel = Callable[..., tuple[Any, int]]
"""It plays games on to their ends, as BoardGame.play_randomly."""

BATCHES_PER_SHARD = 8
"""Long enough that the end of a shard, where few games are left, takes a small part of its time."""


@dataclass(frozen=True)
class ShardedGames:
    """Games to play, at most `batch` of them side by side; the fields are as in GamePool.

    Up to BATCHES_PER_SHARD batches are played in one pool. More are split into shards, each with
    its own random stream, and as many shards run at once as torch has threads. The number of
    threads does not change the result.
    kernel: it plays all seats in run; None: the players do.
    """

    game: Game[Any]
    players: Sequence[Player]
    games: int
    batch: int
    initial_states: InitialStates
    seating: Tensor | None = None
    kernel: Kernel | None = None

    def run(self, rng: torch.Generator) -> tuple[FinalStates, Tensor | None]:
        """Play all games; how they ended, and a hash of the moves of each, see MoveHashes; None
        if a kernel played.

        Raises ChildProcessError if a process is killed, or what it raised.
        """
        hashes, final = self._play(rng, self._run_shard)
        return final, None if self.kernel else torch.cat(hashes)

    def collect(self, rng: torch.Generator) -> tuple[Trajectories, FinalStates]:
        """Like run, and record every move."""
        shards, final = self._play(rng, lambda rows, rng: self._pool(rows, rng).collect())
        return Trajectories.cat(shards), final

    def _run_shard(self, rows: slice, rng: torch.Generator) -> tuple[Tensor, FinalStates]:
        hashes = MoveHashes(rows.stop - rows.start, rng.device)
        if self.kernel is None:
            pool = self._pool(rows, rng)

            def on_ply(record: PlyRecord) -> None:
                hashes.add(record)
                if progress.has_listener():
                    live = int(torch.count_nonzero(~pool.state.done))
                    progress.report((pool.num_started - live) / pool.games)

            return hashes.values, pool.run(on_ply=on_ply)
        start = self.initial_states(rows.start, rows.stop - rows.start, rng)
        seed = int(torch.randint(2**62, (1,), generator=rng))
        observe = observes(self.players)
        final = FinalStates(*self.kernel(start, self.batch, seed, observe=observe))
        return hashes.values, final

    def _play(
        self,
        rng: torch.Generator,
        play: Callable[[slice, torch.Generator], tuple[T, FinalStates]],
    ) -> tuple[list[T], FinalStates]:
        """What play returns besides the final states for each shard, and all final states.

        play: plays the games of a shard.
        """
        size = BATCHES_PER_SHARD * self.batch
        starts = range(0, self.games, size)
        rows = [slice(start, min(start + size, self.games)) for start in starts]
        if len(rows) == 1:
            result, final = play(rows[0], rng)
            return [result], final
        seed = int(torch.randint(2**62, (1,), generator=rng, device=rng.device))
        workers = min(torch.get_num_threads(), len(rows)) if self._can_fork(rng.device) else 1
        example = self.initial_states(0, 1, torch.Generator(rng.device))
        state = _allocate(example, self.games, shared=workers > 1)

        def play_shard(shard: int) -> tuple[T, int]:
            """Play a shard and store its final positions; the rest of its result."""
            own_rng = make_generator(seed, f"shard {shard}", rng.device)
            result, final = play(rows[shard], own_rng)
            for name, column in vars(final.state).items():
                if column is not HIDDEN:
                    getattr(state, name)[rows[shard]] = column
            return result, final.num_moves

        results = []
        if workers > 1:
            results = _map_in_forks(play_shard, len(rows), workers)
        else:
            for shard in range(len(rows)):
                with progress.part(shard, len(rows)):
                    results.append(play_shard(shard))
        num_moves = sum(moves for _, moves in results)
        return [result for result, _ in results], FinalStates(state, num_moves)

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
        """Whether forks may play: what a stateful player counts would be lost with the fork."""
        is_stateful = any(player.is_stateful for player in self.players)
        return can_fork() and device.type == "cpu" and not is_stateful


def find_kernel(
    game: Game[Any], players: Sequence[Player], games: int, batch: int, device: torch.device
) -> Kernel | None:
    """What plays like these players, if loading it pays. Where all of them choose at random it
    does for games in several shards, as many as min_random_games of the rules asks for."""
    if device.type == "cpu" and (greedy_play := find_greedy_play(game, players[0], games)):
        return greedy_play.play
    all_random = all(type(player) is Random for player in players)
    if device.type != "cpu" or not all_random or games <= BATCHES_PER_SHARD * batch:
        return None
    if not isinstance(game, BoardGame) or games < game.min_random_games:
        return None
    game.play_randomly(game.example_state(), 1, 0, observe=observes(players))  # compiles
    return game.play_randomly


def observes(players: Sequence[Player]) -> bool:
    """Whether a random player computes observations."""
    return any(isinstance(player, Random) and player.observe for player in players)


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


def _map_in_forks(task: Callable[[int], T], count: int, workers: int) -> list[T]:
    """task(0) to task(count - 1), computed by `workers` forks side by side."""
    forks: list[Fork[T]] = []
    results = []
    try:
        for worker in range(workers):
            compute = partial(map, task, range(worker, count, workers))
            with signals.held_back(), progress.listening(None):  # a fork reports by its results
                forks.append(Fork(compute, forks))
        for index in range(count):
            results.append(forks[index % workers].receive())
            progress.report(len(results) / count)
        return results
    finally:
        for fork in forks:
            fork.end()
