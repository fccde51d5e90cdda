"""Compiles how a game shows its positions; only long evaluations make up for the time it takes."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State

MIN_COMPILED_BATCH = 256
"""Fewer positions are shown as ever: calling compiled code takes longer than they do."""


def compile_observing(game: Game[Any], rng: torch.Generator) -> None:
    """Have the game show positions, the same as ever, by code that torch compiles now.

    Torch would compile anew for tensors that share their memory, as those of openings do, for
    another number of its threads, and where gradients are wanted: all that an evaluation, which
    wants none, has to show is shown here. Code that several threads call lets others go on
    meanwhile, and takes several times as long to compile.
    Raises ConfigError without a C++ compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if rng.device.type == "cpu" and shutil.which(compiler) is None:
        raise ConfigError(f"compile=true needs a C++ compiler, and there is no {compiler}")
    plain, threads = game.observe, torch.get_num_threads()
    torch.compiler.reset()
    options: dict[str, Any] = {"cpp_wrapper": threads > 1}
    fast = torch.compile(plain, dynamic=True, options=options)

    def observe(state: State) -> Tensor:
        few = len(state) < MIN_COMPILED_BATCH
        return plain(state) if few else fast(state)

    with torch.inference_mode():
        opening = game.initial(MIN_COMPILED_BATCH + 1, rng)
        action = game.legal_action_mask(opening).float().argmax(1)
        shown = [game.public(state) for state in (opening, game.step(opening, action, rng))]
        plain(shown[0])  # makes what tables it needs
        try:
            for count in (1, threads):
                torch.set_num_threads(count)
                for state in shown:
                    observe(state)
        finally:
            torch.set_num_threads(threads)
    game.__dict__["observe"] = observe
