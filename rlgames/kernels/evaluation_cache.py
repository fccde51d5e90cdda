"""A cache of what a network said about positions, of fixed memory.

The trees of a game meet many positions again, move after move. In AlphaZero's self-play almost half
of all leaves were evaluated before. A position has one slot, and a new one replaces what is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.rules import Position
from rlgames.kernels.tree_search import spread
from rlgames.kernels.words import Floats, Integers, compiled


class EvaluationCache(NamedTuple):
    """positions: int64 [slots, W], the slots a power of two. prior: float32 [slots, A], minus
    infinity for illegal actions. value: float32 [slots], for the seat to move; NaN: nothing is
    stored here."""

    positions: Integers
    prior: Floats
    value: Floats


def make_cache(slots: int, words: int, actions: int) -> EvaluationCache:
    return EvaluationCache(
        positions=np.zeros((slots, words), np.int64),
        prior=np.zeros((slots, actions), np.float32),
        value=np.full(slots, np.nan, np.float32),
    )


@compiled
def key_of(position: Position) -> np.uint64:
    """64 bits that tell positions apart."""
    key = np.uint64(0)
    for word in range(len(position)):
        key = spread(key + np.uint64(position[word]))
    return key


@compiled
def slot_of(cache: EvaluationCache, position: Position) -> np.uint64:
    """The slot of a position, with its evaluation or another one's."""
    return key_of(position) & np.uint64(len(cache.value) - 1)


@compiled
def holds(cache: EvaluationCache, slot: np.uint64, position: Position) -> bool:
    """Whether a slot has the evaluation of this position."""
    is_same = not np.isnan(cache.value[slot])
    for word in range(len(position)):
        is_same &= cache.positions[slot, word] == position[word]
    return is_same
