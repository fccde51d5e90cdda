"""Values of packed 2048 boards: sums of table entries.

A network looks each of its T tuples up in the eight views of the board, its rotations and
reflections. The contents of a tuple are four bits for each of its cells, the first the lowest. They
are gathered in runs of cells that are consecutive in the view, too: a run is the bits `mask` of the
view rotated right. A network is one array, uint64:

    0  values of a cell, 2 to 16; larger exponents count as the last
    1  numbers per entry of the table, of which the first is the value
    2  K, the lookups of a board
    3  T, the tuples
    4  R, the runs
    5  bits by which a board with fewer than four columns moves when it is mirrored
    6  bits by which a board with fewer than four rows moves when it is flipped
    7  1 for a square board, which has eight symmetries; otherwise each view counts twice
    8  R times: mask, rotation, 8 times the tuple of the run
    8 + 3 R  T times: where the tuple's values begin; its lookups, 1, 2, 4 or 8: where several
             views make one, it has the lowest of their indices; the views, lookup by lookup

Indices of arrays are unsigned: signed ones are slower, as they may count from the end.
"""

from __future__ import annotations

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.packed_2048 import Array, Bits, mirror, transpose

U = np.uint64


RADIX, STRIDE, NUM_ENTRIES, NUM_TUPLES, NUM_RUNS = U(0), U(1), U(2), U(3), U(4)
MIRROR_SHIFT, FLIP_SHIFT, IS_SQUARE, HEADER = U(5), U(6), U(7), U(8)
RUN, TUPLE = U(3), U(10)
"""Numbers for each run and each tuple."""


@jit()
def flip(board: Bits) -> Bits:
    """The board of four rows with top and bottom exchanged."""
    board = (board << U(32)) | (board >> U(32))
    low, high = U(0x0000FFFF0000FFFF), U(0xFFFF0000FFFF0000)
    return ((board & low) << U(16)) | ((board & high) >> U(16))


@jit()
def clamp_exponents(board: Bits, radix: Bits) -> Bits:
    """The board with exponents of radix and more as radix - 1."""
    low, carry = U(0x0F0F0F0F0F0F0F0F), U(0x1010101010101010)
    excess = (U(16) - radix) * U(0x0101010101010101)
    is_large = (((board & low) + excess) | (((board >> U(4)) & low) + excess)) & carry
    if is_large == U(0):
        return board
    clamped = U(0)
    for shift in range(U(0), U(64), U(4)):
        exponent = (board >> shift) & U(15)
        clamped |= min(exponent, radix - U(1)) << shift
    return clamped


@jit()
def in_radix(contents: Bits, radix: Bits) -> Bits:
    """The number whose digits in this radix are the 16 hexadecimal digits of contents."""
    weight = radix
    contents -= (U(16) - weight) * ((contents >> U(4)) & U(0x0F0F0F0F0F0F0F0F))
    weight *= weight
    contents -= (U(1 << 8) - weight) * ((contents >> U(8)) & U(0x00FF00FF00FF00FF))
    weight *= weight
    contents -= (U(1 << 16) - weight) * ((contents >> U(16)) & U(0x0000FFFF0000FFFF))
    weight *= weight
    return contents - (U(1 << 32) - weight) * (contents >> U(32))


@jit()
def find_entries(board: Bits, network: Array, entries: Array, first: Bits) -> None:
    """Write where the board's K values are in the flat table, from entries[first] on.

    It writes 8 T numbers, of which those after the first K have no meaning.
    """
    if network[RADIX] < U(16):
        board = clamp_exponents(board, network[RADIX])
    v0, v1 = board, mirror(board) >> network[MIRROR_SHIFT]
    v2, v3 = flip(v0) >> network[FLIP_SHIFT], flip(v1) >> network[FLIP_SHIFT]
    v4, v5, v6, v7 = v0, v1, v2, v3
    if network[IS_SQUARE] == U(1):
        v4, v5, v6, v7 = transpose(v0), transpose(v1), transpose(v2), transpose(v3)
    for at in range(first, first + U(8) * network[NUM_TUPLES]):
        entries[at] = U(0)
    stop = HEADER + RUN * network[NUM_RUNS]
    for run in range(HEADER, stop, RUN):
        mask, right, at = network[run], network[run + U(1)], first + network[run + U(2)]
        left = (U(64) - right) & U(63)
        # Written out, as LLVM makes vector instructions of this and not of a loop.
        entries[at] |= ((v0 >> right) | (v0 << left)) & mask
        entries[at + U(1)] |= ((v1 >> right) | (v1 << left)) & mask
        entries[at + U(2)] |= ((v2 >> right) | (v2 << left)) & mask
        entries[at + U(3)] |= ((v3 >> right) | (v3 << left)) & mask
        entries[at + U(4)] |= ((v4 >> right) | (v4 << left)) & mask
        entries[at + U(5)] |= ((v5 >> right) | (v5 << left)) & mask
        entries[at + U(6)] |= ((v6 >> right) | (v6 << left)) & mask
        entries[at + U(7)] |= ((v7 >> right) | (v7 << left)) & mask
    source, radix, stride = first, network[RADIX], network[STRIDE]
    for at in range(stop, stop + TUPLE * network[NUM_TUPLES], TUPLE):
        if radix < U(16):
            for view in range(U(8)):
                entries[source + view] = in_radix(entries[source + view], radix)
        offset, num_lookups = network[at], network[at + U(1)]
        if num_lookups == U(8) and source == first:
            for lookup in range(U(8)):
                entries[first + lookup] = entries[first + lookup] * stride + offset
        else:
            keep_lowest(network, at, entries, source, num_lookups)
            for lookup in range(num_lookups):
                entries[first + lookup] = entries[source + lookup] * stride + offset
        source += U(8)
        first += num_lookups


@jit()
def keep_lowest(network: Array, at: Bits, entries: Array, source: Bits, num_lookups: Bits) -> None:
    """Replace the numbers that a tuple has in the eight views by the lowest of each lookup.

    at: where the network describes the tuple.
    """
    views = (
        entries[source],
        entries[source + U(1)],
        entries[source + U(2)],
        entries[source + U(3)],
        entries[source + U(4)],
        entries[source + U(5)],
        entries[source + U(6)],
        entries[source + U(7)],
    )
    view = at + U(2)
    for lookup in range(num_lookups):
        lowest = views[network[view]]
        for _ in range(U(8) // num_lookups):
            lowest = min(lowest, views[network[view]])
            view += U(1)
        entries[source + lookup] = lowest


@jit()
def sum_entries(table: Array, entries: Array, first: Bits, num: Bits) -> np.float32:
    """The sum of the values at num entries from entries[first] on, in four parts."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    at, stop = first, first + num
    while at + U(4) <= stop:
        a += table[entries[at]]
        b += table[entries[at + U(1)]]
        c += table[entries[at + U(2)]]
        d += table[entries[at + U(3)]]
        at += U(4)
    while at < stop:
        a += table[entries[at]]
        at += U(1)
    return (a + b) + (c + d)
