"""Self-play on Ray: actors play with the weights that the learner publishes, and send it games.

Ray starts and restarts the actors, moves weights and games, and repeats the tasks of an actor that
died. Only engine=ray imports this file.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import torch

from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.training.actor import Games, SelfPlayActor, Weights, send_compactly
from rlgames.training.engine import Engine, EngineContext
from rlgames.training.ray_library import AUTH_MODE, ray

TASKS_PER_ACTOR = 2
"""An actor plays one while the learner updates; the next one waits where it plays."""

MAX_RESTARTS = 100
"""Of one actor, after which the run fails: something kills it again and again."""

POLL_SECONDS = 0.2
"""Ctrl-C and SIGTERM wait this long at most for a call of Ray, which would swallow them."""

SILENT_SECONDS = 5.0
"""A longer wait for a cluster or an actor is announced."""


class Wait:
    """A limited wait for a cluster and its actors."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._start, self._has_spoken = seconds, time.monotonic(), False

    @property
    def remaining(self) -> float:
        return self._start + self.seconds - time.monotonic()

    def sleep(self, awaited: str) -> None:
        """Wait a little for something. Raises ConnectionError when the time is over."""
        if self.remaining <= 0:
            limit = f"join_seconds={self.seconds:g}"
            raise ConnectionError(f"{awaited} did not join within {limit}")
        waited = time.monotonic() - self._start
        if not self._has_spoken and waited >= SILENT_SECONDS:
            self._has_spoken = True
            line = f"waiting for {awaited}, at most {self.seconds:g} s"
            print(printable(f"rlgames: {line}"), file=sys.stderr, flush=True)
        time.sleep(min(0.1, max(0.0, self.remaining)))


def accepts_connections(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:  # also where the name is not known (yet)
        return False


class RayEngine(Engine):
    """Has actors play.

    An actor has two tasks at a time, each to play some games with the weights that were the latest
    when the task was submitted. Each task has its own random stream. Games beyond a batch wait for
    the next one. What is under way is part of no checkpoint: a run that resumes has other games
    played in their place.
    """

    last_words = "the run ended at once: it was killed, or the Ray process of this machine died"

    def __init__(
        self,
        context: EngineContext,
        *,
        actors: int,
        address: str | None,
        games_per_task: int | None,
    ) -> None:
        super().__init__(context)
        self.num_actors, self.address, self.threads = actors, address, context.threads
        self.join_seconds, self.config = context.join_seconds, context.config or {}
        self.games_per_task = games_per_task or -(-context.batch // actors)
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
        wait = Wait(self.join_seconds)
        self._connect(wait)
        with interrupts.shielded():
            send_compactly()
            remote: Any = ray.remote(SelfPlayActor)
            make_actor = remote.options(
                num_cpus=self.threads,
                max_restarts=MAX_RESTARTS,
                max_task_retries=-1,
                scheduling_strategy="SPREAD",
            )
            config = {**self.config, "device": "cpu"}
            directory = os.getcwd()
            folders = [path or directory for path in sys.path]
            for number in range(self.num_actors):
                actor = make_actor.remote(config, directory, folders)
                self._actors.append(actor)
                self._tasks[actor.join.remote()] = number
        while not self._free:
            self._receive(0.0)
            if not self._free:
                wait.sleep(f"the first actor{self._resources()}")

    def play(
        self, num_games: int, games_played: int, rng: torch.Generator
    ) -> tuple[Trajectories, FinalStates]:
        """The games of the actors that arrive first; rng is not used."""
        begin = time.perf_counter()
        num_restarts = self._num_restarts
        self._publish()
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
        return trajectories.to(rng.device), replace(final, state=final.state.to(rng.device))

    def metrics(self) -> dict[str, float]:
        return self._metrics

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        actors, self._actors = self._actors, []
        self._tasks.clear()
        self._free.clear()
        self._backlog.clear()
        self._weights = None
        for actor in actors:
            ray.kill(actor)
        if self._is_ray_ours:
            self._is_ray_ours = False
            ray.shutdown()

    def _connect(self, wait: Wait) -> None:
        """Start Ray here or join a cluster, unless this process is connected already."""
        if ray.is_initialized():
            return
        address = self.address
        _check_address(address)
        check_token(address)
        num_cpus = self.num_actors * self.threads
        own: dict[str, Any] = {} if address else {"num_cpus": num_cpus, "include_dashboard": False}
        host, colon, port = (address or "").rpartition(":")
        while colon and not accepts_connections(host.strip("[]"), int(port)):
            wait.sleep(f"Ray at {sanitized(address)}")
        while not ray.is_initialized():
            with self._interrupts.shielded(), _own_sigterm(), _own_groups():
                self._is_ray_ours = True
                try:
                    ray.init(  # without its messages and its dashboard
                        address or "local",
                        log_to_driver=False,
                        logging_level=logging.CRITICAL,
                        **own,
                    )
                except Exception as error:
                    # Of its own timeout of 30 s, short for a busy machine, Ray raises no subclass.
                    if type(error) is Exception and wait.remaining > 0:
                        continue
                    where = f"Ray at {sanitized(address)}" if address else "Ray"
                    raise ConnectionError(f"{where} cannot be used: {_last_line(error)}") from None

    def _publish(self) -> None:
        """Publish the current weights; tasks take the latest ones that are published."""
        self._version += 1
        state = self.agent.policy.state_dict()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        with self._interrupts.shielded():
            self._weights = ray.put(Weights(self._version, self.agent.progress, arrays))

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

    def _receive(self, seconds: float) -> None:
        """Receive what has arrived, after waiting this long at most for the first."""
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

    def _resources(self) -> str:
        """What the cluster that was joined has for an actor, in words."""
        if not self.address:
            return ""
        with self._interrupts.shielded():
            untyped: Any = ray
            total = untyped.cluster_resources().get("CPU", 0)
            free = untyped.available_resources().get("CPU", 0)
        return f", which takes {self.threads} of {total:g} CPUs, {free:g} of them free"


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """A block after which SIGTERM has the handler that it had before: Ray installs its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def _own_groups() -> Iterator[None]:
    """A block in which Ray's processes start in separate process groups. A SIGTERM to the learner's
    group would end them, and they would end the learner before it has saved."""
    services: Any = import_module("ray._private.services")
    start = services.ConsolePopen
    services.ConsolePopen = partial(start, process_group=0)
    try:
        yield
    finally:
        services.ConsolePopen = start


def _check_address(address: str | None) -> None:
    """Raises ConfigError for a text that is not an address of a cluster."""
    if address is None or address == "auto":
        return
    _, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdecimal():
        raise ConfigError(
            f"engine.address={sanitized(address)} is not HOST:PORT",
            "as `ray start` prints it, on one of whose machines the learner has to run",
        )


def check_token(address: str | None) -> None:
    """Raises ConfigError for a cluster on the network that would be joined without a token."""
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
