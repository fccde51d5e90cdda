"""N-tuple networks of k in a row, see ntuple.py.

The value of a board right after a move belongs to the seat that moved, and each seat has its own
tables. A cell is 0 empty, 1 with a stone of the first seat, 2 with one of the second, or 3 empty
where a stone can fall. The contents of a tuple are the digits of a number, whose place in the table
changes with every stone by the same amount wherever the other stones lie. So a board's places are
sums over its stones, and a move changes the entries of the tuples with its cell or the one above.

memory.places are the board's places for the first seat, and memory.values are the values there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels import k_in_a_row
from rlgames.kernels.k_in_a_row import Bits, LineRules, is_won, stone_of
from rlgames.kernels.ntuple import Memory
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, count_bits

U = np.uint64
ADDED, REMOVED = U(1), U(0xFFFFFFFFFFFFFFFF)
"""The signs of changes: 1 and -1."""


class LineNetwork(NamedTuple):
    """starts: int64 [65]. Bit b of a board has the changes starts[b] to starts[b + 1] - 1.
    lookups: uint64 [C], the lookup that changes, of K lookups of a board.
    deltas: uint64 [2 · C], what a stone of the first seat adds to its place in the table, modulo
    2^64; from C on, a stone of the second seat.
    empty: uint64 [K], the places of the empty board after a move of the first seat. Those after a
    move of the second seat come `half` later.
    win, draws: the values of a won game, and of a drawn one by the seat that moved last. largest:
    bounds the values of games in progress, from below and above."""

    starts: Array
    lookups: Array
    deltas: Array
    empty: Array
    half: np.uint64
    win: np.float32
    draws: Array
    largest: np.float32


@compiled
def num_entries(network: LineNetwork) -> np.uint64:
    return U(len(network.empty))


@compiled
def bounded(network: LineNetwork, value: np.float32) -> np.float32:
    return min(max(value, -network.largest), network.largest)


@compiled
def move_stone(
    network: LineNetwork, stone: Bits, seat: Bits, sign: np.uint64, memory: Memory
) -> None:
    """Change the places by a stone of a seat."""
    bit = count_bits(U(stone) - U(1))
    owner = len(network.lookups) * seat
    for change in range(network.starts[bit], network.starts[bit + 1]):
        memory.places[network.lookups[change]] += sign * network.deltas[owner + change]


@compiled
def enter(network: LineNetwork, position: Position, seat: Bits, memory: Memory) -> None:
    own, rest = position
    for lookup in range(len(network.empty)):
        memory.places[lookup] = network.empty[lookup]
    while rest:
        stone = rest & -rest
        rest ^= stone
        move_stone(network, stone, seat if own & stone else 1 - seat, ADDED, memory)


@compiled
def score_moves(
    network: LineNetwork,
    rules: LineRules,
    position: Position,
    seat: Bits,
    table: Array,
    scale: np.float32,
    memory: Memory,
) -> int:
    own, occupied = position
    half, total, owner = network.half * U(seat), np.float32(0), len(network.lookups) * seat
    for lookup in range(len(network.empty)):
        memory.values[lookup] = table[memory.places[lookup] + half]
        total += memory.values[lookup]
    best, highest = 0, np.float32(-np.inf)
    for action in range(len(memory.scores)):
        stone = stone_of(occupied, action, rules)
        score = np.float32(-np.inf)
        if stone:
            if is_won(own | stone, rules):
                score = network.win
            elif occupied | stone == rules.board:
                score = network.draws[seat]
            else:
                bit, value = count_bits(U(stone) - U(1)), total
                for change in range(network.starts[bit], network.starts[bit + 1]):
                    lookup = network.lookups[change]
                    place = memory.places[lookup] + half + network.deltas[owner + change]
                    value += table[place] - memory.values[lookup]
                score = bounded(network, value)
            if not score <= highest:  # also if it is not a number: an illegal move would never end
                best, highest = action, score
        memory.scores[action] = score
    return best


@compiled
def make_move(
    network: LineNetwork,
    rules: LineRules,
    position: Position,
    seat: Bits,
    action: int,
    memory: Memory,
) -> Played:
    stone = stone_of(position[1], action, rules)
    move_stone(network, stone, seat, ADDED, memory)
    return k_in_a_row.add_stone(rules, position, stone)


@compiled
def take_back(
    network: LineNetwork, before: Position, after: Position, seat: Bits, memory: Memory
) -> None:
    move_stone(network, before[1] ^ after[1], seat, REMOVED, memory)


@compiled
def find_places(network: LineNetwork, after: Position, seat: Bits, memory: Memory) -> np.uint64:
    return network.half * U(seat)


implement(
    LineNetwork,
    num_entries=num_entries,
    bounded=bounded,
    enter=enter,
    score_moves=score_moves,
    make_move=make_move,
    take_back=take_back,
    find_places=find_places,
)
