"""Long evaluations are played in shards, by as many processes as there are threads."""

import multiprocessing
import os
import signal
import threading
import time

import pytest
import torch
from processes import has_ended

from rlgames.core.signals import STOP_SIGNALS
from rlgames.evaluation.shards import BATCHES_PER_SHARD, ShardedGames, map_in_forks
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import sampled_by_game

GAMES = 2 * 8 * BATCHES_PER_SHARD + 5
"""With batches of 8 games: two whole shards and a bit."""


def collect(game, players, threads, seating=None):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        games = ShardedGames(game, players, GAMES, 8, sampled_by_game(game), seating)
        played = games.play(torch.Generator().manual_seed(3), records=True)
        return played.trajectories, played.final
    finally:
        assert torch.get_num_threads() == threads
        torch.set_num_threads(before)


@pytest.mark.parametrize("game", [KInARow(3, 3, 3, False), Battleship(3, 3, [2])])
def test_the_number_of_threads_changes_nothing(game):
    moves, results = collect(game, [Random(game)], 1)
    for threads in (2, 3):
        again, ended = collect(game, [Random(game)], threads)
        assert torch.equal(moves.action, again.action)
        assert torch.equal(moves.game, again.game)
        assert torch.equal(results.score, ended.score)
        assert results.num_moves == ended.num_moves
    assert torch.equal(torch.bincount(moves.game), results.turns)
    assert results.num_moves == len(moves)
    assert len(results.turns.unique()) > 1
    assert len(results.turns) == GAMES


def test_shards_have_their_own_seats_and_random_streams():
    game = KInARow(3, 3, 3, False)
    seating = torch.randint(2, (GAMES, 1)).repeat(1, 2)
    seating[:, 1] = 1 - seating[:, 0]
    moves, _ = collect(game, [Random(game), Random(game)], 2, seating=seating)
    assert torch.equal(moves.player, seating[moves.game, moves.seat])
    first = [
        moves.action[moves.game == at * 8 * BATCHES_PER_SHARD + row]
        for at in (0, 1)
        for row in range(8)
    ]
    assert any(not torch.equal(a, b) for a, b in zip(first[:8], first[8:], strict=True))


class CountingPlayer(Random):
    """Counts its calls."""

    is_stateful = True
    num_calls = 0

    def choose(self, state, rng):
        self.num_calls += 1
        return super().choose(state, rng)


def test_stateful_players_play_in_this_process():
    game = KInARow(3, 3, 3, False)
    player = CountingPlayer(game)
    collect(game, [player], 3)
    assert player.num_calls > 9


class Failing(Random):
    def choose(self, state, rng):
        raise ArithmeticError("no move")


@pytest.mark.parametrize("threads", [1, 2])
def test_exceptions_of_players_are_raised_here(threads):
    game = KInARow(3, 3, 3, False)
    with pytest.raises(ArithmeticError, match="no move"):
        collect(game, [Failing(game)], threads)
    assert not multiprocessing.active_children()


class Killed(Random):
    def choose(self, state, rng):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_reported():
    game = KInARow(3, 3, 3, False)
    with pytest.raises(ChildProcessError, match="was killed"):
        collect(game, [Killed(game)], 2)
    assert not multiprocessing.active_children()


def test_forks_end_when_their_parent_is_killed(tmp_path):
    """Also while they write more than a pipe holds."""

    def share(number):
        (tmp_path / str(os.getpid())).touch()
        if number == 2:
            os.kill(os.getppid(), signal.SIGKILL)
        return bytes(1 << 20)

    fork = multiprocessing.get_context("fork")
    parent = fork.Process(target=map_in_forks, args=(share, 100, 2))
    parent.start()
    parent.join(60)
    assert parent.exitcode == -signal.SIGKILL
    pids, until = [path.name for path in tmp_path.iterdir()], time.monotonic() + 20
    assert len(pids) == 2
    while not all(map(has_ended, map(int, pids))):
        assert time.monotonic() < until
        time.sleep(0.05)


class Waiting(Random):
    def choose(self, state, rng):
        time.sleep(100)


def test_an_interruption_ends_all_forks():
    game = KInARow(3, 3, 3, False)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        collect(game, [Waiting(game)], 2)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_forks_leave_signals_to_their_parent(number):
    """A batch system sends them to every process of a job."""

    def strike(worker):
        os.kill(os.getpid(), number)
        return worker

    assert map_in_forks(strike, 2, 2) == [0, 1]
