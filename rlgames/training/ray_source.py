"""Games played on Ray: actors play with the weights that the learner publishes, and send it games.

Ray starts and restarts the actors, moves weights and games, and repeats the tasks of an actor that
died. Only engine=ray imports this file. A run that resumes is not bit-equal to one that never
stopped: which games arrive first depends on the machines, and those under way are not saved.
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
from rlgames.core.rng import make_generator, torch_seeded
from rlgames.core.signals import Interrupts
from rlgames.core.untrusted import sanitized
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.training.parts import build_actor
from rlgames.training.sources import Batch, GameSource

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # messages about actors that died, which are replaced
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the new behavior, of which it would warn
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

TASKS_PER_ACTOR = 2
"""An actor plays one while the learner updates; the next one waits where it plays."""

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
    """Games that an actor has played. version: of its weights. seconds: the time that it took.
    process: the host and the PID of the actor."""

    trajectories: Trajectories
    final_states: FinalStates
    version: int
    seconds: float
    process: str

    def __len__(self) -> int:
        return self.trajectories.num_games

    def split(self, num_games: int) -> list[Games]:
        """The first games, and the others."""
        parts = []
        for chosen in torch.arange(len(self)).split([num_games, len(self) - num_games]):
            trajectories = self.trajectories.select_games(chosen)
            final_states = FinalStates(self.final_states.state[chosen], len(trajectories))
            seconds = self.seconds * len(chosen) / len(self)
            parts.append(Games(trajectories, final_states, self.version, seconds, self.process))
        return parts


class SelfPlayActor:
    """Plays the games of a training.

    config: the training's, plain. directory: the learner's, to which paths in the config may refer.
    folders: those from which the learner imports, for plugins.
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

    def join(self) -> None:
        """Return once the actor can play."""

    def play(self, weights: Weights, num_games: int, games_played: int, stream: str) -> Games:
        """Play games, with the seats as after games_played others, and its own random stream."""
        begin = time.perf_counter()
        if weights.version != self.version:
            tensors = {name: torch.tensor(array) for name, array in weights.arrays.items()}
            self.agent.policy.load_state_dict(tensors)
            self.version = weights.version
        rng = make_generator(self.seed, stream)
        with torch_seeded(self.seed, stream):
            batch = self.games.play(num_games, games_played, weights.progress, rng)
        return Games(*batch, weights.version, time.perf_counter() - begin, self.process)


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

    An actor has two tasks at a time, each to play some games with the weights that were the latest
    when the task was submitted. Each task has its own random stream. Games beyond a batch wait for
    the next one. What is under way is part of no mark: a run that resumes has other games played
    instead.
    """

    is_exact = False

    def __init__(
        self, *parts: Any, actors: int, address: str | None, games_per_task: int | None
    ) -> None:
        super().__init__(*parts)
        self.num_actors, self.address = actors, address
        self.games_per_task = games_per_task or -(-self.cfg.batch // actors)
        self._actors: list[Any] = []
        self._tasks: dict[Any, int] = {}  # by what Ray will return: the number of the actor
        self._free: list[int] = []  # actors, once for each task that they could take
        self._backlog: list[Games] = []
        self._processes: dict[int, str] = {}
        self._version = self._num_submitted = self._num_restarts = 0
        self._weights: Any = None
        self._is_ray_ours = False
        self._metrics: dict[str, float] = {}

    def start(self, games_played: int, interrupts: Interrupts) -> None:
        """Start Ray or join its cluster, and start the actors; wait for one of them.

        Raises ConnectionError where that takes longer than join_seconds.
        """
        self._interrupts, self._games_before = interrupts, games_played
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
                self._tasks[actor.join.remote()] = number
        first = f"the first actor, which takes {self.cfg.threads} CPUs,"
        wait_for(first, lambda: self._receive(0.0), self.cfg.join_seconds)

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        actors, self._actors = self._actors, []
        for held in (self._tasks, self._free, self._backlog):
            held.clear()
        self._weights = None
        for actor in actors:
            ray.kill(actor)
        if self._is_ray_ours:
            self._is_ray_ours = False
            ray.shutdown()

    def play_whole(self, num_games: int, games_played: int, progress: float) -> Batch:
        """The games of the actors that arrive first."""
        begin, num_restarts = time.perf_counter(), self._num_restarts
        self._publish(progress)
        while sum(len(games) for games in self._backlog) < num_games:
            self._submit()
            self._receive(POLL_SECONDS)
        batch = self._take(num_games)
        age = sum(len(games) * (self._version - games.version) for games in batch)
        self._metrics = {
            "game_age": age / num_games,
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

    def _publish(self, progress: float) -> None:
        """Publish the current weights; tasks take the latest ones that are published."""
        self._version += 1
        state = self.agent.policy.state_dict()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        with self._interrupts.shielded():
            self._weights = ray.put(Weights(self._version, progress, arrays))

    def _submit(self) -> None:
        """Give every actor the tasks that it can take."""
        with self._interrupts.shielded():
            for number in self._free:
                stream = f"self-play {self._num_submitted} after {self._games_before}"
                first_game = self._num_submitted * self.games_per_task
                task = self._actors[number].play.remote(
                    self._weights, self.games_per_task, first_game, stream
                )
                self._tasks[task] = number
                self._num_submitted += 1
            self._free.clear()

    def _receive(self, seconds: float) -> bool:
        """Receive what has arrived, after waiting this long at most for the first; whether there
        was anything."""
        with self._interrupts.shielded():
            tasks = list(self._tasks)
            ready, _ = ray.wait(tasks, timeout=seconds)
            if ready:
                ready, _ = ray.wait(tasks, num_returns=len(tasks), timeout=0)
            for task in ready:
                number = self._tasks.pop(task)
                result = _get(task)
                if result is None:  # it has joined
                    self._free += [number] * TASKS_PER_ACTOR
                    continue
                self._free.append(number)
                self._backlog.append(result)
                before = self._processes.get(number, result.process)
                self._num_restarts += before != result.process
                self._processes[number] = result.process
        return bool(ready)

    def _take(self, num_games: int) -> list[Games]:
        """Take this many games off the backlog, the oldest first."""
        batch = []
        while num_games:
            games = self._backlog.pop(0)
            if len(games) > num_games:
                games, rest = games.split(num_games)
                self._backlog.insert(0, rest)
            batch.append(games)
            num_games -= len(games)
        return batch


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


def _get(task: Any) -> Games | None:
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
