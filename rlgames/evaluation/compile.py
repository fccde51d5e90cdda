"""Compiled observations; only long evaluations make up for the time that compiling takes."""

from __future__ import annotations

import copy
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State

MIN_COMPILED_BATCH = 256
"""Smaller batches are observed without compiled code, whose calls take longer than they do."""


def with_compiled_observe(game: Game[Any], rng: torch.Generator) -> Game[Any]:
    """A copy of the game whose observations, equal to the game's, come from compiled code.

    The code is compiled here, before the first game. torch would recompile it for tensors that
    share their memory, as those of openings do, for another number of threads and where gradients
    are needed; evaluations need none, and the other cases are observed once. Code that several
    threads call must release Python's lock, and takes several times as long to compile.
    Raises ConfigError without a C++ compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if rng.device.type == "cpu" and shutil.which(compiler) is None:
        raise ConfigError(f"compile=true needs a C++ compiler, and there is no {compiler}")
    threads = torch.get_num_threads()
    torch.compiler.reset()
    options: dict[str, Any] = {"cpp_wrapper": threads > 1}
    compiled = torch.compile(game.observe, dynamic=True, options=options)

    def observe(state: State) -> Tensor:
        return game.observe(state) if len(state) < MIN_COMPILED_BATCH else compiled(state)

    with torch.inference_mode():
        opening = game.initial(MIN_COMPILED_BATCH + 1, rng)
        action = game.legal_action_mask(opening).float().argmax(1)
        states = [game.public(state) for state in (opening, game.step(opening, action, rng))]
        game.observe(states[0])  # makes the tables it needs
        try:
            for count in (1, threads):
                torch.set_num_threads(count)
                for state in states:
                    observe(state)
        finally:
            torch.set_num_threads(threads)
    return _with_observe(game, observe)


def _with_observe(game: Game[Any], observe: Callable[[State], Tensor]) -> Game[Any]:
    """A copy of the game with another observe. Its class derives from the game's own, so players
    and policies still recognize the rules by isinstance."""
    cls = type(game)
    overridden = type(cls.__name__, (cls,), {"observe": lambda _, state: observe(state)})
    result = copy.copy(game)
    result.__class__ = overridden
    return result
