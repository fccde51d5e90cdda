"""A cache of what a network said about positions of k in a row, of fixed memory.

The trees of a game meet many positions again, move after move. In AlphaZero's self-play almost half
of all leaves were evaluated before. A position has one slot, and a new one replaces what is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.jit import jit
from rlgames.kernels.tree_search import spread

FREE = -1
"""In place of `occupied`: nothing is stored here."""


class EvaluationCache(NamedTuple):
    """own, occupied: int64 [slots], a power of two; the stones of the seat to move, all stones.
    prior: float32 [slots, A], minus infinity for illegal actions. value: float32 [slots], for the
    seat to move."""

    own: NDArray[np.int64]
    occupied: NDArray[np.int64]
    prior: NDArray[np.float32]
    value: NDArray[np.float32]


def make_cache(slots: int, actions: int) -> EvaluationCache:
    return EvaluationCache(
        own=np.zeros(slots, np.int64),
        occupied=np.full(slots, FREE, np.int64),
        prior=np.empty((slots, actions), np.float32),
        value=np.empty(slots, np.float32),
    )


@jit()
def slot_of(cache: EvaluationCache, own: int, occupied: int) -> np.uint64:
    """The slot of a position, with its evaluation or that of another one."""
    key = spread(spread(np.uint64(own)) + np.uint64(occupied))
    return key & np.uint64(len(cache.own) - 1)


@jit()
def holds(cache: EvaluationCache, slot: np.uint64, own: int, occupied: int) -> bool:
    """Whether a slot has the evaluation of this position."""
    return bool(cache.occupied[slot] == occupied and cache.own[slot] == own)
