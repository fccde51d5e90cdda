"""What an actor on Ray does: it plays games with the weights that it is given."""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from rlgames.config.plugins import import_plugins, plugins_override
from rlgames.config.typed import from_plain
from rlgames.core.rng import make_generator
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.training.parts import build_actor
from rlgames.training.ray_library import ray


@dataclass(frozen=True)
class Weights:
    """Published weights. version: counts publications. progress: see Agent. arrays: the tensors of
    the policy by name."""

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

    def split(self, num_games: int) -> tuple[Games, Games]:
        """The first games, and the others."""
        first, rest = torch.arange(len(self)).split([num_games, len(self) - num_games])
        return self._select(first), self._select(rest)

    def _select(self, chosen: Tensor) -> Games:
        trajectories = self.trajectories.select_games(chosen)
        final_states = FinalStates(self.final_states.state[chosen], len(trajectories))
        seconds = self.seconds * len(chosen) / len(self)
        return Games(trajectories, final_states, self.version, seconds, self.process)


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
        self.seed, self.engine = cfg.seed, build_actor(cfg)
        self.version = 0
        self.process = f"{socket.gethostname()}:{os.getpid()}"

    def join(self) -> None:
        """Return once the actor can play."""

    def play(self, weights: Weights, num_games: int, games_played: int, stream: str) -> Games:
        """Play games, with the seats as after games_played others, and its own random stream."""
        begin, agent = time.perf_counter(), self.engine.agent
        if weights.version != self.version:
            tensors = {name: torch.tensor(array) for name, array in weights.arrays.items()}
            agent.policy.load_state_dict(tensors)
            self.version = weights.version
        agent.progress = weights.progress
        rng = make_generator(self.seed, stream)
        games = self.engine.play(num_games, games_played, rng)
        return Games(*games, weights.version, time.perf_counter() - begin, self.process)


def send_compactly() -> None:
    """Have this process send tensors as arrays, which takes a fraction of the bytes and time."""
    # torch.tensor copies the array, whose memory belongs to Ray and is read-only.
    ray.util.register_serializer(Tensor, serializer=Tensor.numpy, deserializer=torch.tensor)
