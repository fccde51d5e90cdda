"""Depth-first proof-number search (Nagai 2002) for two-player board games.

It answers one question about a position: is it worth at least `goal`, 1 or 0, to the seat to move?
A move does if the position after it is not worth 1 - goal to the other seat. Each position has two
numbers: the least number of positions that must still be decided before the answer is yes (the
proof number) or no (the disproof number). The search always expands where the fewest are left, and
keeps the numbers in a table. Of a position that it does not know it sees whether the next move ends
the game, and that each reply must be refuted: where the other seat has few, it looks first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.evaluation_cache import key_of
from rlgames.kernels.rules import Position, canonical, is_legal, load, mobility, play, store
from rlgames.kernels.words import compiled

NEVER = 1 << 30
"""The number of an answer that is impossible; numbers of open questions stay below."""

BUCKET = 4
"""Slots of the table where a position can be."""

MAX_SCANS = 2
"""Where one move fails to prevent a win of the other seat, most others also fail. So the replies
to a seat's moves are scanned for wins until as many scans have found none."""


class ProofTable(NamedTuple):
    """positions: int64 [slots, W], the slots a power of two. goals: int8 [slots]. numbers: int32
    [slots, 2], the proof and the disproof number; both 0: nothing is stored here. work: int32
    [slots], the positions that it took to find them."""

    positions: NDArray[np.int64]
    goals: NDArray[np.int8]
    numbers: NDArray[np.int32]
    work: NDArray[np.int32]


class Line(NamedTuple):
    """The positions from the root to where the search is, int64 [D, W]; it looks no further than D.

    thresholds: int64 [D, 2]; once a number reaches its threshold, another line is better.
    children: int32 [D, A, 2], the numbers of the positions after each action, -1 for an illegal
    one. actions: int64 [D]. entered: int64 [D], the positions visited before this one.
    """

    positions: NDArray[np.int64]
    thresholds: NDArray[np.int64]
    children: NDArray[np.int32]
    actions: NDArray[np.int64]
    entered: NDArray[np.int64]


def make_table(slots: int, words: int) -> ProofTable:
    return ProofTable(
        positions=np.zeros((slots, words), np.int64),
        goals=np.zeros(slots, np.int8),
        numbers=np.zeros((slots, 2), np.int32),
        work=np.zeros(slots, np.int32),
    )


def make_line(depth: int, words: int, actions: int) -> Line:
    return Line(
        positions=np.zeros((depth, words), np.int64),
        thresholds=np.zeros((depth, 2), np.int64),
        children=np.zeros((depth, actions, 2), np.int32),
        actions=np.zeros(depth, np.int64),
        entered=np.zeros(depth, np.int64),
    )


@compiled
def prove(
    rules: Any, table: ProofTable, line: Line, goal: int, max_positions: int
) -> tuple[int, int, int]:
    """Search from the position in the first row of the line, until its question is answered or
    this many positions have been visited.

    Returns how many were, and the proof and the disproof number. One of these is 0 if the question
    is answered. If the answer is yes, the winning moves lead to children with a disproof number
    of 0. Another call continues from the table.
    """
    ply, visited = 0, 1
    line.thresholds[0] = NEVER
    expand(rules, table, line, 0, goal)
    while True:
        proof, disproof, action, second = numbers_of(rules, line, ply)
        proof_limit, disproof_limit = line.thresholds[ply]
        is_last = visited >= max_positions or ply + 1 == len(line.actions)
        if is_last or proof >= proof_limit or disproof >= disproof_limit:
            position = canonical(rules, load(rules.start, line.positions, ply))
            work = visited - line.entered[ply]
            put(table, position, goal ^ (ply & 1), proof, disproof, work)
            if ply == 0:
                return visited, proof, disproof
            ply -= 1
            line.children[ply, line.actions[ply], 0] = proof
            line.children[ply, line.actions[ply], 1] = disproof
            continue
        after, _, _ = play(rules, load(rules.start, line.positions, ply), action)
        others = disproof - line.children[ply, action, 0]
        line.actions[ply] = action
        line.entered[ply + 1] = visited
        ply, visited = ply + 1, visited + 1
        store(line.positions, ply, after)
        line.thresholds[ply, 0] = min(disproof_limit - others, NEVER)
        # The search switches to another move only once that move is better by a half.
        line.thresholds[ply, 1] = min(proof_limit, second + 1 + second // 2)
        expand(rules, table, line, ply, goal ^ (ply & 1))


@compiled
def expand(rules: Any, table: ProofTable, line: Line, ply: int, goal: int) -> None:
    """Look up the numbers of all children of the last position of the line."""
    position, is_won = load(rules.start, line.positions, ply), False
    winning, scans = -1, MAX_SCANS  # what the other seat wins by after an earlier action
    for action in range(rules.actions):
        proof, disproof = -1, -1
        if not is_won and is_legal(rules, position, action):
            after, is_over, points = play(rules, position, action)
            if is_over:
                proof, disproof = (NEVER, 0) if points >= goal else (0, NEVER)
            else:
                proof, disproof = get(table, canonical(rules, after), 1 - goal)
            if proof < 0:
                is_lost = wins(rules, after, winning, 1 - goal)
                if scans and not is_lost:
                    found = find_win(rules, after, 1 - goal)
                    is_lost = found >= 0
                    winning = found if is_lost else winning
                    scans -= not is_lost
                proof, disproof = (0, NEVER) if is_lost else (1, max(mobility(rules, after), 1))
            is_won = disproof == 0
        line.children[ply, action, 0] = proof
        line.children[ply, action, 1] = disproof


@compiled
def find_win(rules: Any, position: Position, goal: int) -> int:
    """An action that ends the game with at least the goal, or -1."""
    for action in range(rules.actions):
        if wins(rules, position, action, goal):
            return action
    return -1


@compiled
def wins(rules: Any, position: Position, action: int, goal: int) -> bool:
    """Whether an action, -1 for none, ends the game with at least the goal."""
    if action < 0 or not is_legal(rules, position, action):
        return False
    _, is_over, points = play(rules, position, action)
    return bool(is_over and points >= goal)


@compiled
def numbers_of(rules: Any, line: Line, ply: int) -> tuple[int, int, int, int]:
    """The proof and disproof number of a position, from the numbers of its children; the action
    that is easiest to prove; and the disproof number of the second easiest."""
    proof, second, disproof, best = NEVER, NEVER, 0, 0
    for action in range(rules.actions):
        child_proof, child_disproof = line.children[ply, action]
        if child_proof < 0:
            continue
        disproof += child_proof
        if child_disproof < proof:
            proof, second, best = child_disproof, proof, action
        elif child_disproof < second:
            second = child_disproof
    if proof == 0:
        disproof = NEVER
    elif disproof >= NEVER:
        disproof = NEVER - 1
    return proof, disproof, best, second


@compiled
def get(table: ProofTable, position: Position, goal: int) -> tuple[int, int]:
    """The numbers of a position, -1 and -1 if the table does not have it."""
    bucket = bucket_of(table, position)
    for slot in range(bucket, bucket + BUCKET):
        if holds(table, slot, position, goal):
            return table.numbers[slot, 0], table.numbers[slot, 1]
    return -1, -1


@compiled
def put(
    table: ProofTable, position: Position, goal: int, proof: int, disproof: int, work: int
) -> None:
    """Store the numbers of a position in its bucket, replacing those found with least work."""
    bucket = bucket_of(table, position)
    place = bucket
    for slot in range(bucket, bucket + BUCKET):
        if holds(table, slot, position, goal):
            place, work = slot, work + table.work[slot]
            break
        if table.work[slot] < table.work[place]:
            place = slot
    store(table.positions, place, position)
    table.goals[place] = goal
    table.numbers[place, 0] = proof
    table.numbers[place, 1] = disproof
    table.work[place] = min(work, NEVER)


@compiled
def bucket_of(table: ProofTable, position: Position) -> int:
    """The first slot of the bucket of a position."""
    last = np.uint64(len(table.goals) - BUCKET)
    return int(np.int64(key_of(position) & last))


@compiled
def holds(table: ProofTable, slot: int, position: Position, goal: int) -> bool:
    """Whether a slot has the numbers of this position."""
    is_same = table.goals[slot] == goal and table.numbers[slot, 0] + table.numbers[slot, 1] > 0
    for word in range(len(position)):
        is_same &= table.positions[slot, word] == position[word]
    return bool(is_same)
