"""The rules of Othello, see rules.py.

Words: the discs of the seat to move and of the other seat, and the cells where the seat to move
may place a disc. Cell c of row r is bit 8 r + c, as in rlgames.games.othello.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, count_bits

U = np.uint64


class OthelloRules(NamedTuple):
    """cell_bits: uint64 [cells]. steps: uint64 [4], how far neighbors lie apart by direction.
    forward, backward: uint64 [4], the cells that are a neighbor one step on, or back."""

    start: tuple[int, ...]
    actions: int
    cell_bits: Array
    steps: Array
    forward: Array
    backward: Array


@compiled
def run_forward(start: np.uint64, other: np.uint64, step: np.uint64) -> np.uint64:
    """The other discs, at most six, that follow some cell of start towards higher bits."""
    run = (start << step) & other
    run |= (run << step) & other
    pairs = other & (other << step)
    run |= (run << (step + step)) & pairs
    return run | ((run << (step + step)) & pairs)


@compiled
def run_backward(start: np.uint64, other: np.uint64, step: np.uint64) -> np.uint64:
    """The same towards lower bits."""
    run = (start >> step) & other
    run |= (run >> step) & other
    pairs = other & (other >> step)
    run |= (run >> (step + step)) & pairs
    return run | ((run >> (step + step)) & pairs)


@compiled
def legal_cells(rules: OthelloRules, own: np.uint64, other: np.uint64) -> np.uint64:
    """The cells where a disc flips others."""
    cells = U(0)
    for number in range(4):
        step, forward, backward = rules.steps[number], rules.forward[number], rules.backward[number]
        cells |= (run_forward(own, other & forward, step) << step) & forward
        cells |= (run_backward(own, other & backward, step) >> step) & backward
    return cells & ~(own | other)


@compiled
def flips(rules: OthelloRules, disc: np.uint64, own: np.uint64, other: np.uint64) -> np.uint64:
    """The discs of the other seat that a disc flips."""
    flipped = U(0)
    for number in range(4):
        step, forward, backward = rules.steps[number], rules.forward[number], rules.backward[number]
        run = run_forward(disc, other & forward, step)
        if (run << step) & forward & own:
            flipped |= run
        run = run_backward(disc, other & backward, step)
        if (run >> step) & backward & own:
            flipped |= run
    return flipped


@compiled
def play(rules: OthelloRules, position: Position, action: int) -> Played:
    own, other = U(position[0]), U(position[1])
    if action < len(rules.cell_bits):
        disc = rules.cell_bits[action]
        flipped = flips(rules, disc, own, other)
        own, other = own | disc | flipped, other ^ flipped
    moves = legal_cells(rules, other, own)
    is_over = moves == U(0) and legal_cells(rules, own, other) == U(0)
    lead = np.float32(0)
    if is_over:
        lead = np.float32(np.sign(count_bits(own) - count_bits(other)))
    return (np.int64(other), np.int64(own), np.int64(moves)), is_over, lead


@compiled
def is_legal(rules: OthelloRules, position: Position, action: int) -> bool:
    if action == len(rules.cell_bits):
        return bool(position[2] == 0)
    return bool(U(position[2]) & rules.cell_bits[action])


@compiled
def observe(rules: OthelloRules, position: Position, planes: Array) -> None:
    cells, own, other = len(rules.cell_bits), U(position[0]), U(position[1])
    for cell in range(cells):
        bit = rules.cell_bits[cell]
        planes[cell] = np.float32(1) if own & bit else np.float32(0)
        planes[cells + cell] = np.float32(1) if other & bit else np.float32(0)


implement(OthelloRules, play=play, is_legal=is_legal, observe=observe)
