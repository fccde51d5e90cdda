"""Alpha-beta search of k in a row with gravity, for one question: is a score at least a bound?

A score belongs to the seat to move: the number of stones that the winner still had, counting the
one that won; negative if the other seat won, 0 for a draw. So the earlier a win, the higher it is.
Boards are numbers, as in rlgames/games/k_in_a_row.py.

The search keeps its own stack, one row of `frames` and `moves` for each ply, and can stop at any
position and continue later. No seat to move on the stack can win at once.

Bounds of positions are kept in a table of a fixed number of entries. Two entries share a place. A
position is a number of at most 62 bits. Reversible operations mix it into another one, whose upper
bits are its place. The remaining bits are part of the entry, so no position is taken for another:

    bits 17 to 62           12 to 16    6 to 11     0 to 5
    the rest of the key     work        low + 32    high + 32

The score of the position is at least low and at most high, both between -31 and 31. Work is about
the logarithm of the positions that the result took. The first entry of a place keeps the one
with more work, the second takes what is left. An entry of 0 is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.games.k_in_a_row import MAX_BITS, LineRules, has_line
from rlgames.kernels.jit import jit
from rlgames.kernels.words import compiled, count_bits

OWN, OCCUPIED, BOUND, BEST, NUM_MOVES, START, KEY, LOW, HIGH, FRAME_SIZE = range(10)
"""The stones of the seat to move and all stones; the bound in question; the best score so far;
moves not yet searched; positions searched before; the key of the position and its bounds."""

PLY, POSITIONS, SCORE, PROGRESS_SIZE = range(4)
"""Where the search is: the length of the stack, the positions visited and, in the end, a score."""


def make_stack(rules: LineRules) -> tuple[Any, Any, Any, Any]:
    """Frames, moves, the threats that the moves of one position make, and progress, all int64."""
    plies, columns = len(rules.cell_bits) + 2, rules.actions
    frames, moves = np.zeros((plies, FRAME_SIZE), np.int64), np.zeros((plies, columns), np.int64)
    return frames, moves, np.zeros(columns, np.int64), np.zeros(PROGRESS_SIZE, np.int64)


@compiled
def completing_cells(stones: int, line: int | None, height: int, board: int) -> int:
    """The cells that would complete a line of these stones; some of them may be taken."""
    if line is not None:
        return _completing_cells_of_any_line(stones, line - 1, height, board)
    cells = stones << 1 & stones << 2 & stones << 3  # of a vertical line only the top can be empty
    for direction in range(3):
        step = height - 1 + direction
        up, down = stones << step, stones >> step
        pair = up & stones << 2 * step
        cells |= pair & (stones << 3 * step | down)
        pair = down & stones >> 2 * step
        cells |= pair & (up | stones >> 3 * step)
    return cells & board


@compiled
def _completing_cells_of_any_line(stones: int, reach: int, height: int, board: int) -> int:
    """completing_cells for reach other stones; its loops end early, so they stay small and fast."""
    cells, distance = board, 1
    while distance <= reach and cells:
        cells &= stones << distance
        distance += 1
    for direction in range(3):
        step = height - 1 + direction
        if reach * step > MAX_BITS:
            continue
        for below in range(reach + 1):  # the stones of the line before the empty cell
            completing, distance = board, -below
            while distance <= reach - below and completing:
                if distance < 0:
                    completing &= stones << -distance * step
                elif distance > 0:
                    completing &= stones >> distance * step
                distance += 1
            cells |= completing
    return cells & board


@jit(forceinline=True, _nrt=False)
def _list_moves(
    rules: LineRules,
    own: int,
    free: int,
    candidates: int,
    moves: Any,
    threats: Any,
    ply: int,
) -> int:
    """List moves in reverse order: those with most threats last, of equals the most central."""
    count = 0
    for column in range(rules.actions):
        move = candidates & int(rules.piles[column])
        if move:
            completing = completing_cells(own | move, rules.line, rules.stride, free)
            num_threats = int(count_bits(np.uint64(completing)))
            place = count
            while place and threats[place - 1] >= num_threats:
                moves[ply, place] = moves[ply, place - 1]
                threats[place] = threats[place - 1]
                place -= 1
            moves[ply, place] = move
            threats[place] = num_threats
            count += 1
    return count


@jit(forceinline=True, _nrt=False)
def _enter(
    rules: LineRules,
    frames: Any,
    moves: Any,
    threats: Any,
    table: Any,
    rest_bits: int,
    ply: int,
    empty: int,
) -> int:
    """List the moves of a position, or set its best score where none has to be searched.

    empty: the number of empty cells. Returns how many moves there are to search.
    """
    own, occupied = int(frames[ply, OWN]), int(frames[ply, OCCUPIED])
    bound = int(frames[ply, BOUND])
    line, height = rules.line, rules.stride
    free = rules.board[0] & ~occupied
    losing = completing_cells(own ^ occupied, line, height, free)
    candidates = (occupied + rules.bottom) & free
    forced = losing & candidates
    if forced:
        candidates = forced
    # A stone right below a threat lets the other seat complete its line.
    candidates &= ~(losing >> 1)
    frames[ply, BEST] = -(empty >> 1)  # the other seat wins with its next stone, if it has one left
    if forced & (forced - 1) or not candidates:
        return 0
    # From here on the other seat does not win with its next stone, nor the seat to move with this.
    if empty <= 2:
        frames[ply, BEST] = 0
        return 0
    low, high = 1 - (empty >> 1), (empty - 1) >> 1
    if bound > 0 and high > 0 and not has_line(own | free, line, height):
        high = 0
    if bound <= 0 and low < 0 and not has_line(own ^ occupied | free, line, height):
        low = 0
    if low < bound <= high:
        key = position_key(own, occupied, len(rules.cell_bits) - empty, height, rules.actions)
        known_low, known_high = lookup(table, rest_bits, key)
        low, high = max(low, known_low), min(high, known_high)
        frames[ply, KEY] = key
    if low >= bound or high < bound:
        frames[ply, BEST] = low if low >= bound else high
        return 0
    frames[ply, LOW] = low
    frames[ply, HIGH] = high
    return _list_moves(rules, own, free, candidates, moves, threats, ply)


@jit(forceinline=True, _nrt=False)
def _leave(frames: Any, table: Any, rest_bits: int, ply: int, positions: int) -> None:
    """Store what the search of a position has found."""
    low, high, best = int(frames[ply, LOW]), int(frames[ply, HIGH]), int(frames[ply, BEST])
    if best >= frames[ply, BOUND]:
        low = best
    else:
        high = min(high, best)
    store(table, rest_bits, int(frames[ply, KEY]), low, high, positions - int(frames[ply, START]))


@compiled
def search(
    rules: LineRules,
    frames: Any,
    moves: Any,
    threats: Any,
    progress: Any,
    table: Any,
    rest_bits: int,
    max_positions: int,
) -> bool:
    """Search frames[0] until it is done (True) or max_positions in all are visited (False).

    At first progress[PLY] and progress[POSITIONS] are 0. In the end progress[SCORE] is a lower
    bound of the score if it is at least frames[0, BOUND], and an upper bound if it is less.
    """
    ply, positions = int(progress[PLY]), int(progress[POSITIONS])
    empty = len(rules.cell_bits) - int(count_bits(np.uint64(frames[0, OCCUPIED])))
    while positions < max_positions:
        frames[ply, START] = positions
        positions += 1
        count = _enter(rules, frames, moves, threats, table, rest_bits, ply, empty - ply)
        while not count:
            score = int(frames[ply, BEST])
            if ply == 0:
                progress[PLY], progress[POSITIONS], progress[SCORE] = 0, positions, score
                return True
            ply -= 1
            best = max(int(frames[ply, BEST]), -score)
            frames[ply, BEST] = best
            count = int(frames[ply, NUM_MOVES])
            if best >= frames[ply, BOUND] or not count:
                _leave(frames, table, rest_bits, ply, positions)
                count = 0
        frames[ply, NUM_MOVES] = count - 1
        own, occupied = int(frames[ply, OWN]), int(frames[ply, OCCUPIED])
        bound = int(frames[ply, BOUND])
        ply += 1
        frames[ply, OWN] = own ^ occupied
        frames[ply, OCCUPIED] = occupied | int(moves[ply - 1, count - 1])
        frames[ply, BOUND] = 1 - bound
    progress[PLY], progress[POSITIONS] = ply, positions
    return False


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
