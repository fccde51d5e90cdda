"""A table of what is known about positions of k in a row: a fixed number of entries, two of which
share a place.

A position is a number of at most 62 bits. Reversible operations mix it into another one, whose
upper bits are its place in the table. The remaining bits are part of the entry, so that no position
is ever taken for another:

    bits 17 to 62           12 to 16    6 to 11     0 to 5
    the rest of the key     work        low + 32    high + 32

The score of the position is at least low and at most high, both between -31 and 31. Work is about
the logarithm of the positions that the result took. The first entry of a place keeps the one
with more work, the second takes what is left. An entry of 0 is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.kernels.jit import jit

MAX_SCORE = 31
MAX_REST_BITS = 46
MAX_WORK = 31

MAX_MIRRORED_STONES = 10
"""Up to this many stones mirrored positions share an entry; later they hardly ever meet."""

FACTOR = 0x1E3779B97F4A7C15
"""Any odd number whose bits have no pattern."""


def make_table(key_bits: int, entries: int) -> tuple[Any, int]:
    """An empty table with about this number of entries, for keys of key_bits bits, and how many
    bits of a key are part of an entry."""
    places = max(entries // 2, 1).bit_length() - 1
    places = min(max(places, key_bits - MAX_REST_BITS), key_bits)
    return np.zeros(2 << places, np.int64), key_bits - places


@jit()
def position_key(own: int, occupied: int, stones: int, height: int, columns: int) -> int:
    """A position as a number, by a reversible function; with few stones its mirror image may have
    the same number."""
    key = own + occupied
    if stones <= MAX_MIRRORED_STONES:
        mirrored, rest = 0, key
        for _ in range(columns):
            mirrored = mirrored << height | rest & ((1 << height) - 1)
            rest >>= height
        key = min(key, mirrored)
    bits = height * columns
    key ^= key >> (bits >> 1)
    key = (key * FACTOR) & ((1 << bits) - 1)
    return key ^ key >> (bits >> 1)


@jit()
def lookup(table: Any, rest_bits: int, key: int) -> tuple[int, int]:
    """(low, high) of a position."""
    place, rest = key >> rest_bits << 1, key & ((1 << rest_bits) - 1)
    for second in range(2):
        entry = int(table[place + second])
        if entry and entry >> 17 == rest:
            return (entry >> 6 & 63) - 32, (entry & 63) - 32
    return -MAX_SCORE, MAX_SCORE


@jit()
def store(table: Any, rest_bits: int, key: int, low: int, high: int, positions: int) -> None:
    """Keep low and high of a position. positions: how many the result took."""
    place, rest = key >> rest_bits << 1, key & ((1 << rest_bits) - 1)
    work = 0
    while positions:
        positions >>= 1
        work += 1
    work = min(work, MAX_WORK)
    entry = rest << 17 | work << 12 | (low + 32) << 6 | (high + 32)
    first = int(table[place])
    if first >> 17 == rest:
        table[place] = entry
    elif (first >> 12 & 31) <= work:
        table[place], table[place + 1] = entry, first
    else:
        table[place + 1] = entry
