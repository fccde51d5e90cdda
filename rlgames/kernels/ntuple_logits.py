"""Policies of packed 2048 boards: logits of the four actions as sums of table entries.

A board looks up every tuple in each of its V views. Numbers 0 to 3 of an entry are logits of the
actions as they are in the view that looked it up. Arguments that many functions share: table,
float32, the entries; entries, uint64, where those of several boards are in the table, ordered by
tuple, then by view; permutations, uint64 [V, 4], the number in an entry of each action of the
board; rows, uint64, the slide_table; legal, the bits of legal actions; logits, probs and gradient,
float32 [4], of the actions of the board.

SQUARES is the number in an entry of the sum of its squared gradients, for Adagrad.
"""

from __future__ import annotations

import numpy as np

from rlgames.kernels.game_2048 import Bits, slide
from rlgames.kernels.jit import jit
from rlgames.kernels.words import Array, next_random

U = np.uint64
STRIDE = 8
"""Numbers of an entry, so that a cache line holds two of them."""
SQUARES = U(7)
NUM_ACTIONS = 4
NONE = U(4)
"""In place of an action where none is legal."""


@jit()
def legal_actions(board: Bits, rows: Array) -> Bits:
    """Bit a is set if action a changes the board."""
    legal = U(0)
    for action in range(U(NUM_ACTIONS)):
        legal |= U(slide(board, rows, action)[0] != board) << action
    return legal


@jit()
def sum_logits(
    table: Array, entries: Array, first: Bits, num: Bits, permutations: Array, logits: Array
) -> None:
    """Write the logits of the board whose `num` entries begin at entries[first]."""
    logits[:] = np.float32(0)
    lookup, stop = first, first + num
    while lookup < stop:
        for view in range(U(len(permutations))):
            entry = entries[lookup]
            for action in range(U(NUM_ACTIONS)):
                logits[action] += table[entry + permutations[view, action]]
            lookup += U(1)


@jit()
def best_action(logits: Array, legal: Bits) -> Bits:
    """The first legal action with the highest logit; NONE if no action is legal."""
    best, highest = NONE, np.float32(0)
    for action in range(U(NUM_ACTIONS)):
        is_higher = best == NONE or logits[action] > highest
        if (legal >> action) & U(1) and is_higher:
            best, highest = U(action), logits[action]
    return best


@jit(error_model="numpy")
def softmax(logits: Array, legal: Bits, probs: Array) -> None:
    """Write the probabilities of the actions; at least one is legal, and others get 0."""
    highest = logits[best_action(logits, legal)]
    total = np.float32(0)
    for action in range(U(NUM_ACTIONS)):
        probs[action] = np.float32(0)
        if (legal >> action) & U(1):
            probs[action] = np.exp(logits[action] - highest)
            total += probs[action]
    for action in range(U(NUM_ACTIONS)):
        probs[action] /= total


@jit()
def sample_action(probs: Array, rng: Array) -> Bits:
    """An action, each with its probability."""
    uniform = np.float32(next_random(rng) >> U(40)) / np.float32(1 << 24)
    chosen = NONE
    for action in range(U(NUM_ACTIONS)):
        if probs[action] > np.float32(0) and (chosen == NONE or uniform >= np.float32(0)):
            chosen = U(action)
            uniform -= probs[action]
    return chosen


@jit(error_model="numpy")
def step_logits(
    table: Array, entry: Bits, view: Bits, permutations: Array, lr: np.float32, gradient: Array
) -> None:
    """Move the logits of an entry along a gradient by a step of Adagrad, with one rate for all."""
    square = np.float32(0)
    for action in range(U(NUM_ACTIONS)):
        square += gradient[action] * gradient[action]
    table[entry + SQUARES] += square
    rate = lr / np.sqrt(np.float32(1) + table[entry + SQUARES])
    for action in range(U(NUM_ACTIONS)):
        table[entry + permutations[view, action]] += rate * gradient[action]
