"""Games played on Ray: actors play with the weights that the learner publishes, and send it games.

Ray starts and restarts the actors, moves weights and games, and repeats the tasks of an actor that
died. Only engine=ray imports this file. Each batch is played while the learner learns from the one
before it, by the weights from before that: so results depend neither on the number of actors nor on
which of them is faster. A run that resumes is not bit-equal to one that never stopped, because its
first batch is played by the weights that it has then.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from rlgames.config.plugins import import_plugins, plugins_override
from rlgames.config.typed import from_plain, to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupts
from rlgames.core.untrusted import sanitized
from rlgames.rng import Rng, torch_seeded
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.training.parts import build_actor
from rlgames.training.sources import Batch, GameSource

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages about actors that died, which are replaced
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the new behavior; Ray warns about the old one
}
"""Environment variables that Ray reads while it is imported; those that are set already stay."""

AUTH_MODE = "RAY_AUTH_MODE"
"""The variable that lets a process take part in a cluster with a token, or without one."""

_named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
_has_token = _named or os.path.exists(os.path.expanduser("~/.ray/auth_token"))

# `ray start --head` and ray.init use a token without being told, but nobody else does. A program
# that has imported ray has chosen: what is started here must not differ from it.
if _has_token and "ray" not in sys.modules:
    SETTINGS[AUTH_MODE] = "token"

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

import ray  # noqa: E402

MAX_RESTARTS = 100
"""Of one actor, after which the run fails: something kills it again and again."""

POLL_SECONDS = 0.2
"""Ctrl-C and SIGTERM wait this long at most for a call of Ray, which would swallow them."""


@dataclass(frozen=True)
class Weights:
    """Published weights. version: counts publications. progress: see Player.act. arrays: the
    tensors of the policy by name."""

    version: int
    progress: float
    arrays: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Games:
    """Games that an actor has played. seconds: the time that it took. process: the host and the PID
    of the actor."""

    trajectories: Trajectories
    final_states: FinalStates
    seconds: float
    process: str


class SelfPlayActor:
    """Plays the games of a training.

    config: the training's, plain. directory: the learner's, for paths in the config.
    folders: where the learner imports plugins from.
    """

    def __init__(self, config: dict[str, Any], directory: str, folders: list[str]) -> None:
        send_compactly()
        if os.path.isdir(directory):  # on another machine there may be none
            os.chdir(directory)
        sys.path += [folder for folder in folders if folder not in sys.path]
        plugins = plugins_override(config["plugins"])
        import_plugins([plugins] if plugins else [])
        cfg = from_plain(config)
        self.seed, self.version = cfg.seed, 0
        self.agent, self.games = build_actor(cfg)
        self.process = f"{socket.gethostname()}:{os.getpid()}"

    def join(self) -> str:
        """Return the actor's host and PID, once it can play."""
        return self.process

    def play(self, weights: Weights, num_games: int, games_played: int) -> Games:
        """Play the games of the run that follow games_played others."""
        begin = time.perf_counter()
        if weights.version != self.version:
            tensors = {name: torch.tensor(array) for name, array in weights.arrays.items()}
            self.agent.policy.load_state_dict(tensors)
            self.version = weights.version
        rng = Rng(self.seed, "play")
        with torch_seeded(Rng(self.seed, "actor").fold_in(games_played)):
            batch = self.games.play(num_games, games_played, weights.progress, rng)
        return Games(*batch, time.perf_counter() - begin, self.process)


def send_compactly() -> None:
    """Have this process send tensors as arrays, which takes a fraction of the bytes and time."""
    # torch.tensor copies the array, whose memory belongs to Ray and is read-only.
    ray.util.register_serializer(Tensor, serializer=Tensor.numpy, deserializer=torch.tensor)


def wait_for(awaited: str, is_there: Callable[[], object], seconds: float) -> None:
    """Wait for something. Raises ConnectionError when the time, join_seconds=, is over."""
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() >= deadline:
            raise ConnectionError(f"{awaited} did not join within join_seconds={seconds:g}")
        time.sleep(0.1)


class RaySource(GameSource):
    """Has actors play.

    A task is to play some games of a batch. Free actors take the tasks in turn, and tasks of
    the next batch while the learner learns. A mark holds no unfinished tasks: a run that resumes
    has them played again.
    """

    is_exact = False

    def __init__(self, *parts: Any, actors: int, address: str | None) -> None:
        super().__init__(*parts)
        self.num_actors, self.address = actors, address
        self.games_per_task = -(-self.cfg.batch // actors)
        self._actors: list[Any] = []
        # By what Ray will return: the number of the actor, and the task's first game.
        self._tasks: dict[Any, tuple[int, int]] = {}
        self._free: list[int] = []  # actors
        # Tasks that no actor has taken: their weights, number of games and first game.
        self._waiting: list[tuple[Any, int, int]] = []
        self._played: dict[int, Games] = {}  # by the first game
        self._processes: dict[int, str] = {}
        self._version = self._num_restarts = self._next_game = 0
        self._is_ray_ours = False
        self._metrics: dict[str, float] = {}

    def start(self, games_played: int, interrupts: Interrupts) -> None:
        """Start Ray or join its cluster, and start the actors; wait for one of them.

        Raises ConnectionError where that takes longer than join_seconds.
        """
        self._interrupts, self._next_game = interrupts, games_played
        self._connect()
        with interrupts.shielded():
            send_compactly()
            remote: Any = ray.remote(SelfPlayActor)
            make_actor = remote.options(
                num_cpus=self.cfg.threads,
                max_restarts=MAX_RESTARTS,
                max_task_retries=-1,
                scheduling_strategy="SPREAD",
            )
            config = {**to_plain(self.cfg), "device": "cpu"}
            directory = os.getcwd()
            folders = [path or directory for path in sys.path]
            for number in range(self.num_actors):
                actor = make_actor.remote(config, directory, folders)
                self._actors.append(actor)
                self._tasks[actor.join.remote()] = number, -1
        first = f"the first actor, which takes {self.cfg.threads} CPUs,"
        wait_for(first, lambda: self._receive(0.0), self.cfg.join_seconds)

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        actors, self._actors = self._actors, []
        for held in (self._tasks, self._free, self._waiting, self._played):
            held.clear()
        for actor in actors:
            ray.kill(actor)
        if self._is_ray_ours:
            self._is_ray_ours = False
            ray.shutdown()

    def play_whole(self, num_games: int, games_played: int, progress: float) -> Batch:
        """The next batch, once the actors have played it; the one after it begins."""
        begin, num_restarts = time.perf_counter(), self._num_restarts
        if self._next_game == games_played:  # nothing is under way
            self._plan(num_games, progress)
        stop = games_played + num_games
        left = self.cfg.games - stop
        if left > 0:
            self._plan(min(num_games, left), progress)
        firsts = range(games_played, stop, self.games_per_task)
        while not self._played.keys() >= {*firsts}:
            self._submit()
            self._receive(POLL_SECONDS)
        self._submit()
        batch = [self._played.pop(first) for first in firsts]
        self._metrics = {
            "game_seconds": sum(games.seconds for games in batch) / num_games,
            "wait_seconds": time.perf_counter() - begin,
            "actor_restarts": float(self._num_restarts - num_restarts),
        }
        trajectories = Trajectories.cat([games.trajectories for games in batch])
        final = FinalStates.cat([games.final_states for games in batch])
        device = self.rng.device
        return trajectories.to(device), replace(final, state=final.state.to(device))

    def metrics(self) -> dict[str, float]:
        return self._metrics

    def _connect(self) -> None:
        """Start Ray here or join a cluster, unless this process is connected already."""
        address, seconds = self.address, self.cfg.join_seconds
        if ray.is_initialized():
            return
        check_address(address)
        where = f"Ray at {sanitized(address)}" if address else "Ray"
        host, colon, port = (address or "").rpartition(":")
        if colon:
            is_there = partial(_accepts_connections, host.strip("[]"), int(port))
            wait_for(where, is_there, seconds)
        wait_for(where, lambda: self._is_initialized(where), seconds)

    def _is_initialized(self, where: str) -> bool:
        """Try to start or join Ray; whether it did so in time."""
        own: dict[str, Any] = {"num_cpus": self.num_actors * self.cfg.threads}
        own = {} if self.address else own | {"include_dashboard": False}
        handler = signal.getsignal(signal.SIGTERM)
        with self._interrupts.shielded():
            self._is_ray_ours = True
            try:
                ray.init(
                    self.address or "local",
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    **own,
                )
            except Exception as error:
                # Ray reports its timeout of 30 s, short for a busy machine, as a plain Exception.
                if type(error) is not Exception:
                    raise ConnectionError(f"{where} cannot be used: {_last_line(error)}") from None
            finally:
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, handler)  # Ray installs its own
        return bool(ray.is_initialized())

    def _plan(self, num_games: int, progress: float) -> None:
        """Have the next games played by the current weights."""
        self._version += 1
        state = self.agent.policy.state_dict()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        with self._interrupts.shielded():
            weights = ray.put(Weights(self._version, progress, arrays))
        stop = self._next_game + num_games
        for first in range(self._next_game, stop, self.games_per_task):
            self._waiting.append((weights, min(self.games_per_task, stop - first), first))
        self._next_game = stop

    def _submit(self) -> None:
        """Give every free actor a task."""
        with self._interrupts.shielded():
            while self._free and self._waiting:
                number, (weights, num_games, first) = self._free.pop(0), self._waiting.pop(0)
                task = self._actors[number].play.remote(weights, num_games, first)
                self._tasks[task] = number, first

    def _receive(self, seconds: float) -> bool:
        """Receive what has arrived, after waiting this long at most for the first; whether there
        was anything."""
        with self._interrupts.shielded():
            tasks = list(self._tasks)
            ready, _ = ray.wait(tasks, timeout=seconds)
            if ready:
                ready, _ = ray.wait(tasks, num_returns=len(tasks), timeout=0)
            for task in ready:
                number, first = self._tasks.pop(task)
                result = _get(task)
                self._free.append(number)
                process = result if isinstance(result, str) else result.process
                self._num_restarts += self._processes.get(number, process) != process
                self._processes[number] = process
                if not isinstance(result, str):  # which it returns when it joins
                    self._played[first] = result
        return bool(ready)


def check_address(address: str | None) -> None:
    """Raises ConfigError for a text that is not an address of a cluster, and for a cluster on the
    network that would be joined without a token."""
    if address not in (None, "auto"):
        _, colon, port = (address or "").rpartition(":")
        if "://" in (address or "") or not colon or not port.isdecimal():
            raise ConfigError(
                f"engine.address={sanitized(address)} is not HOST:PORT",
                "as `ray start` prints it, on one of whose machines the learner has to run",
            )
    address = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host = (address or "").rpartition(":")[0]
    is_here = not host or host in ("localhost", "[::1]") or host.startswith("127.")
    if not is_here and AUTH_MODE not in os.environ:
        raise ConfigError(
            f"engine.address={sanitized(address)} is open to the network, but Ray has no"
            " token, so anyone could run code there",
            "make one with `ray get-auth-token --generate` and copy it to every machine, or set"
            f" {AUTH_MODE}=disabled to join without one",
        )


def _accepts_connections(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:  # also where the name is not known (yet)
        return False


def _get(task: Any) -> Games | str:
    """The result of a task. Raises what the actor raised, and ConnectionError where it cannot be
    restarted."""
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise ConnectionError(f"an actor cannot play: {_last_line(error)}") from None


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return sanitized(lines[-1]) if lines else type(error).__name__
