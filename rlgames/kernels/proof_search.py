"""Depth-first proof-number search (Nagai 2002) for two-player board games.

It answers one question about a position: is it worth at least `goal`, 1 or 0, to the seat to move?
A move does if the position after it is not worth 1 - goal to the other seat. Each position has two
numbers: the least number of positions that must still be decided before the answer is yes (the
proof number) or no (the disproof number). The search always expands where the fewest are left, and
keeps the numbers of all positions in a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgames.kernels.evaluation_cache import key_of
from rlgames.kernels.rules import Position, is_legal, load, play, store
from rlgames.kernels.words import compiled

NEVER = 1 << 30
"""The number of an answer that is impossible; numbers of open questions stay below."""

BUCKET = 4
"""Slots of the table where a position can be."""


class ProofTable(NamedTuple):
    """positions: int64 [slots, W], the slots a power of two. goals: int8 [slots]. numbers: int32
    [slots, 2], the proof and the disproof number; both 0: nothing is stored here."""

    positions: NDArray[np.int64]
    goals: NDArray[np.int8]
    numbers: NDArray[np.int32]


class Line(NamedTuple):
    """The positions from the root to where the search is, int64 [D, W]; it looks no further than D.

    thresholds: int64 [D, 2]; once a number reaches its threshold, another line is better.
    children: int32 [D, A, 2], the numbers of the positions after each action, -1 for an illegal
    one. actions: int64 [D].
    """

    positions: NDArray[np.int64]
    thresholds: NDArray[np.int64]
    children: NDArray[np.int32]
    actions: NDArray[np.int64]


def make_table(slots: int, words: int) -> ProofTable:
    return ProofTable(
        positions=np.zeros((slots, words), np.int64),
        goals=np.zeros(slots, np.int8),
        numbers=np.zeros((slots, 2), np.int32),
    )


def make_line(depth: int, words: int, actions: int) -> Line:
    return Line(
        positions=np.zeros((depth, words), np.int64),
        thresholds=np.zeros((depth, 2), np.int64),
        children=np.zeros((depth, actions, 2), np.int32),
        actions=np.zeros(depth, np.int64),
    )


@compiled
def prove(
    rules: Any, table: ProofTable, line: Line, goal: int, max_positions: int
) -> tuple[int, int, int]:
    """Search from the position in the first row of the line, until its question is answered or
    this many positions have been visited.

    Returns how many were, and the proof and the disproof number, one of which is 0 if the question
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
            put(table, load(rules.start, line.positions, ply), goal ^ (ply & 1), proof, disproof)
            if ply == 0:
                return visited, proof, disproof
            ply -= 1
            line.children[ply, line.actions[ply], 0] = proof
            line.children[ply, line.actions[ply], 1] = disproof
            continue
        after, _, _ = play(rules, load(rules.start, line.positions, ply), action)
        others = disproof - line.children[ply, action, 0]
        line.actions[ply] = action
        ply, visited = ply + 1, visited + 1
        store(line.positions, ply, after)
        line.thresholds[ply, 0] = min(disproof_limit - others, NEVER)
        # The search switches to another move only once that move is better by a quarter.
        line.thresholds[ply, 1] = min(proof_limit, second + 1 + second // 4)
        expand(rules, table, line, ply, goal ^ (ply & 1))


@compiled
def expand(rules: Any, table: ProofTable, line: Line, ply: int, goal: int) -> None:
    """Look up the numbers of all children of the last position of the line."""
    position, is_won = load(rules.start, line.positions, ply), False
    for action in range(rules.actions):
        proof, disproof = -1, -1
        if not is_won and is_legal(rules, position, action):
            after, is_over, points = play(rules, position, action)
            if not is_over:
                proof, disproof = get(table, after, 1 - goal)
            elif points >= goal:
                proof, disproof = NEVER, 0
            else:
                proof, disproof = 0, NEVER
            is_won = disproof == 0
        line.children[ply, action, 0] = proof
        line.children[ply, action, 1] = disproof


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
    """The numbers of a position, 1 and 1 if the table does not have it."""
    bucket = bucket_of(table, position)
    for slot in range(bucket, bucket + BUCKET):
        if holds(table, slot, position, goal):
            return table.numbers[slot, 0], table.numbers[slot, 1]
    return 1, 1


@compiled
def put(table: ProofTable, position: Position, goal: int, proof: int, disproof: int) -> None:
    """Store the numbers of a position in its bucket, replacing the entry with the smallest."""
    bucket = bucket_of(table, position)
    place, least = bucket, np.int64(NEVER) * 4
    for slot in range(bucket, bucket + BUCKET):
        if holds(table, slot, position, goal):
            place = slot
            break
        size = np.int64(table.numbers[slot, 0]) + np.int64(table.numbers[slot, 1])
        if size < least:
            place, least = slot, size
    store(table.positions, place, position)
    table.goals[place] = goal
    table.numbers[place, 0] = proof
    table.numbers[place, 1] = disproof


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
