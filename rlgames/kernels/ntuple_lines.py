"""N-tuple networks of k in a row, and TD learning of them while they play both seats.

The value of a board right after a move belongs to the seat that moved, and each seat has its own
tables. A cell is 0 empty, 1 with a stone of the first seat, 2 with one of the second, or 3 empty
where a stone can fall. The contents of a tuple are the digits of a number, whose place in the table
changes with every stone by the same amount wherever the other stones lie. So a board's places are
sums over its stones, and a move changes those of the tuples that contain its cell or the one above:

    network.starts: int64 [65]. Bit b of a board has the changes starts[b] to starts[b + 1] - 1.
    network.lookups: uint64 [C], the lookup that changes, of K lookups of a board.
    network.deltas: uint64 [2 · C], what a stone of the first seat adds to its place in the table,
        modulo 2^64; from C on, a stone of the second seat.
    network.empty: uint64 [K], the places of the empty board after a move of the first seat. Those
        after a move of the second seat come network.half later.
    network.tuples: uint64 [T + 1]. Tuple t has the lookups tuples[t] to tuples[t + 1] - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.k_in_a_row import Bits, LineRules, is_won, stone_of
from rlgames.kernels.words import Array, compiled, count_bits, next_random, random_below

U = np.uint64
HALF = U(32)


class Games(NamedTuple):
    """The fields of the games' states, with the numbers of games in front; changed in place."""

    done: Array
    current_seat: Array
    turn: Array
    score: Array
    own: Array
    occupied: Array


class Network(NamedTuple):
    """Where the values of boards are, see above."""

    starts: Array
    lookups: Array
    deltas: Array
    empty: Array
    half: np.uint64
    tuples: Array


class Settings(NamedTuple):
    """epsilon: the probability of a random move in units of 2^-32. win, draws: the values of a won
    and of a drawn game, by the seat that moved last. discount: for each ply. largest: bounds the
    values of games in progress, from below and above. coherent: as in ntuple_td."""

    epsilon: np.uint64
    lr: np.float32
    discount: np.float32
    td_lambda: np.float32
    win: np.float32
    draws: Array
    largest: np.float32
    coherent: bool


class Memory(NamedTuple):
    """What one thread writes.

    random: uint64 [1], the state of the random numbers. places: uint64 [K], those of the board for
    the first seat. values: float32 [K], the values there. scores: float32 [actions], the values of
    moves for the seat that makes them, -inf for illegal ones. best_score, is_best: [plies], the
    value of the best move of a ply, and whether it was made. entries: uint64 [plies · K], the
    places of the boards that the moves led to.
    """

    random: Array
    places: Array
    values: Array
    scores: Array
    best_score: Array
    is_best: Array
    entries: Array


@jit()
def make_memory(network: Network, actions: int, plies: int, seed: np.uint64) -> Memory:
    num = len(network.empty)
    return Memory(
        np.full(1, seed, np.uint64),
        np.empty(num, np.uint64),
        np.empty(num, np.float32),
        np.empty(actions, np.float32),
        np.empty(plies, np.float32),
        np.empty(plies, np.bool_),
        np.empty(plies * num, np.uint64),
    )


@compiled
def clamp(value: np.float32, largest: np.float32) -> np.float32:
    """The value of a game in progress, which is never quite won or lost."""
    return min(max(value, -largest), largest)


@compiled
def add_stone(stone: Bits, seat: Bits, network: Network, places: Array) -> None:
    """Add a stone of a seat to the board with these K places."""
    bit = count_bits(U(stone) - U(1))
    owner = len(network.lookups) * seat
    for change in range(network.starts[bit], network.starts[bit + 1]):
        places[network.lookups[change]] += network.deltas[owner + change]


@compiled
def remove_stone(stone: Bits, seat: Bits, network: Network, places: Array) -> None:
    """Remove a stone that add_stone added."""
    bit = count_bits(U(stone) - U(1))
    owner = len(network.lookups) * seat
    for change in range(network.starts[bit], network.starts[bit + 1]):
        places[network.lookups[change]] -= network.deltas[owner + change]


@compiled
def find_places(own: Bits, occupied: Bits, seat: Bits, network: Network, places: Array) -> None:
    """Write the K places of a board, for the first seat. own: the stones of `seat`."""
    for lookup in range(len(network.empty)):
        places[lookup] = network.empty[lookup]
    rest = occupied
    while rest:
        stone = rest & -rest
        rest ^= stone
        add_stone(stone, seat if own & stone else 1 - seat, network, places)


@compiled
def score_moves(
    own: Bits,
    occupied: Bits,
    seat: Bits,
    table: Array,
    network: Network,
    rules: LineRules,
    settings: Settings,
    memory: Memory,
) -> int:
    """Fill memory.scores; the first action with the highest one.

    memory has the places of the board.
    """
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
                score = settings.win
            elif occupied | stone == rules.board:
                score = settings.draws[seat]
            else:
                bit, value = count_bits(U(stone) - U(1)), total
                for change in range(network.starts[bit], network.starts[bit + 1]):
                    lookup = network.lookups[change]
                    place = memory.places[lookup] + half + network.deltas[owner + change]
                    value += table[place] - memory.values[lookup]
                score = clamp(value, settings.largest)
        memory.scores[action] = score
        if score > highest:
            best, highest = action, score
    return best


@compiled
def random_action(memory: Memory) -> int:
    """A uniformly random legal action."""
    num_legal = 0
    for action in range(len(memory.scores)):
        num_legal += memory.scores[action] > -np.inf
    chosen = random_below(memory.random, num_legal)
    for action in range(len(memory.scores)):
        if memory.scores[action] > -np.inf:
            if chosen == 0:
                return action
            chosen -= 1
    return 0


@compiled
def play(
    games: Games,
    game: int,
    table: Array,
    network: Network,
    rules: LineRules,
    settings: Settings,
    memory: Memory,
) -> int:
    """Play a game to its end, which memory describes; the number of moves."""
    own: Bits = np.int64(games.own[game])
    occupied: Bits = np.int64(games.occupied[game])
    seat: Bits = np.int64(games.current_seat[game])
    num, ply, won = len(network.empty), 0, False
    find_places(own, occupied, seat, network, memory.places)
    while not won and occupied != rules.board:
        best = score_moves(own, occupied, seat, table, network, rules, settings, memory)
        action = best
        if settings.epsilon > U(0) and (next_random(memory.random) >> HALF) < settings.epsilon:
            action = random_action(memory)
        memory.best_score[ply] = memory.scores[best]
        memory.is_best[ply] = memory.scores[action] == memory.scores[best]
        stone = stone_of(occupied, action, rules)
        add_stone(stone, seat, network, memory.places)
        for lookup in range(num):
            memory.entries[ply * num + lookup] = memory.places[lookup] + network.half * U(seat)
        won = is_won(own | stone, rules)
        own, occupied, seat = own ^ occupied, occupied | stone, 1 - seat
        ply += 1
    games.own[game], games.occupied[game] = own, occupied
    games.current_seat[game], games.done[game] = seat, True
    games.turn[game] += ply
    if won:
        games.score[game, seat] -= np.float32(1)
        games.score[game, 1 - seat] += np.float32(1)
    return ply


@jit(error_model="numpy", _nrt=False)
def correct(
    table: Array,
    network: Network,
    entries: Array,
    first: np.uint64,
    error: np.float32,
    lr: np.float32,
    coherent: bool,
) -> None:
    """Move the values at K entries from entries[first] on by their equal parts of an error.

    A value that several lookups of a tuple read takes all their parts: n of them move it by
    1 - (1 - rate)^n of one, as n moves towards the same target would.
    """
    part = error / np.float32(len(network.empty))
    size = np.abs(part)
    for number in range(U(len(network.tuples) - 1)):
        start, stop = first + network.tuples[number], first + network.tuples[number + U(1)]
        for at in range(start, stop):
            entry, count = entries[at], 1
            for other in range(at + U(1), stop):
                count += entries[other] == entry
            is_repeated = False
            for other in range(start, at):
                is_repeated |= entries[other] == entry
            if is_repeated:
                continue
            rate = lr
            if coherent:
                errors, sizes = table[entry + U(1)], table[entry + U(2)]
                if sizes > np.float32(0):
                    rate = lr * (np.abs(errors) / sizes)
                table[entry + U(1)] = errors + part
                table[entry + U(2)] = sizes + size
            moved = rate
            for _ in range(count - 1):
                moved += rate * (np.float32(1) - moved)
            table[entry] += moved * part


@compiled
def sum_values(table: Array, entries: Array, first: np.uint64, num: np.uint64) -> np.float32:
    """The sum of the values at `num` entries from entries[first] on."""
    total = np.float32(0)
    for at in range(first, first + num):
        total += table[entries[at]]
    return total


@compiled
def learn_backward(
    table: Array, network: Network, settings: Settings, memory: Memory, plies: int
) -> float:
    """Learn from a finished game of some plies, the last board that was not final first.

    Returns the sum of the sizes of the errors.
    """
    total, reply, num = 0.0, memory.best_score[plies - 1], U(len(network.empty))
    for ply in range(plies - 2, -1, -1):
        if not memory.is_best[ply + 1]:
            reply = memory.best_score[ply + 1]
        first = U(ply) * num
        target = -settings.discount * reply
        error = target - sum_values(table, memory.entries, first, num)
        total += np.float64(np.abs(error))
        correct(table, network, memory.entries, first, error, settings.lr, settings.coherent)
        value = clamp(sum_values(table, memory.entries, first, num), settings.largest)
        reply = value + settings.td_lambda * (target - value)
    return total


@jit()
def learn_games(
    table: Array,
    network: Network,
    rules: LineRules,
    settings: Settings,
    games: Games,
    seed: np.uint64,
) -> tuple[int, float]:
    """Play each game to its end, and learn from it before the next one.

    Returns the number of moves and the sum of the sizes of the errors.
    """
    memory = make_memory(network, rules.actions, len(rules.cell_bits), seed)
    num_moves, total_error = 0, 0.0
    for game in range(len(games.done)):
        if not games.done[game]:
            moves = play(games, game, table, network, rules, settings, memory)
            num_moves += moves
            total_error += learn_backward(table, network, settings, memory, moves)
    return num_moves, total_error
