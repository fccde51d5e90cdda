"""Fits the sizes that nobody typed to a large board."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from functools import cache

from rlgames.config.commands import TrainConfig
from rlgames.config.schema import OptionConfig
from rlgames.config.words import key_of
from rlgames.core import distributed
from rlgames.core.text import printable
from rlgames.factory.components import build_game
from rlgames.factory.memory import bytes_of_game

BATCH_BYTES, EVAL_BYTES = 1 << 30, 1 << 33
"""The memory that all moves of a batch, and of the games of an evaluation, would take. It is a
measure of time as well: they take seconds on one core."""

SIMULATIONS_PER_MOVE = 4
"""So many take about as long as to play a move without a search and to learn from it."""

MIN_EVAL_GAMES = 32

_bytes_of_game: dict[str, int] = {}
"""By game and window: to build a game takes longer than to compose a job of a sweep."""


def fit_sizes(cfg: TrainConfig, words: Sequence[str]) -> TrainConfig:
    """The config of a new training with a batch and evaluations that take seconds on its board.

    The rule gives the same sizes on every machine, and those of presets on their boards. What is
    smaller is said on standard error. words: as typed; the sizes among them stay, and those of a
    file that config= names.
    """
    typed = {key_of(word) for word in words}
    if "config" in typed:
        return cfg
    simulations = max(1, getattr(cfg.search, "simulations", 0) // SIMULATIONS_PER_MOVE)
    batch = BATCH_BYTES // (simulations * _game_bytes(cfg.game, cfg.window))
    games = max(MIN_EVAL_GAMES, EVAL_BYTES // _game_bytes(cfg.game, None))
    fitted = dataclasses.replace(
        cfg,
        batch=cfg.batch if "batch" in typed else _power_of_two(batch, cfg.batch),
        eval_games=cfg.eval_games
        if "eval_games" in typed
        else _power_of_two(games, cfg.eval_games),
    )
    smaller = [
        name for name in ("batch", "eval_games") if getattr(fitted, name) != getattr(cfg, name)
    ]
    if smaller and not distributed.rank():
        sizes = ", ".join(
            f"{name}={getattr(fitted, name)} instead of {getattr(cfg, name)}" for name in smaller
        )
        words_to_keep = " ".join(f"{name}={getattr(cfg, name)}" for name in smaller)
        _say(f"rlgames: {sizes}, because the board is large; {words_to_keep} keeps the preset's")
    return fitted


def _power_of_two(limit: int, size: int) -> int:
    """The size, or the largest power of two within the limit if it is larger than that."""
    return size if size <= limit else 1 << max(1, limit).bit_length() - 1


def _game_bytes(game: OptionConfig, window: int | None) -> int:
    key = f"{game} {window}"
    if key not in _bytes_of_game:
        _bytes_of_game[key] = bytes_of_game(build_game(game), window)
    return _bytes_of_game[key]


@cache
def _say(text: str) -> None:
    """Print a line once, however many jobs of a sweep it is about."""
    print(printable(text), file=sys.stderr, flush=True)
