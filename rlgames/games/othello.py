"""Othello, also called Reversi, on square boards of an even size up to 8×8.

A disc is placed where it brackets a straight run of the other seat's discs, which it flips. Who
has no such cell must pass, and when neither seat has one, the seat with more discs wins.

      A B C D
    1 . . . .
    2 . O X .      X  discs of the first seat
    3 . X O .      O  discs of the second seat
    4 . . . .

Words: the discs of the seat to move and of the other seat, and the cells where the seat to move
may place a disc. Cell c of row r is bit 8 r + c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import Symmetric
from rlgames.games.game import Spec
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries
from rlgames.kernels.rules import Played, Position, implement
from rlgames.kernels.words import Array, compiled, count_bits, write_set

U = np.uint64
PASS = "pass"


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
def end_turn(rules: OthelloRules, own: np.uint64, other: np.uint64) -> Played:
    """The turn of a seat ends with its own discs and the other seat's, which is to move next."""
    moves = legal_cells(rules, other, own)
    is_over = moves == U(0) and legal_cells(rules, own, other) == U(0)
    lead = np.float32(0)
    if is_over:
        lead = np.float32(np.sign(count_bits(own) - count_bits(other)))
    return (np.int64(other), np.int64(own), np.int64(moves)), is_over, lead


@compiled
def play(rules: OthelloRules, position: Position, action: int) -> Played:
    own, other = U(position[0]), U(position[1])
    if action < len(rules.cell_bits):
        disc = rules.cell_bits[action]
        flipped = flips(rules, disc, own, other)
        own, other = own | disc | flipped, other ^ flipped
    return end_turn(rules, own, other)


@compiled
def is_legal(rules: OthelloRules, position: Position, action: int) -> bool:
    if action == len(rules.cell_bits):
        return bool(position[2] == 0)
    return bool(U(position[2]) & rules.cell_bits[action])


@compiled
def mobility(rules: OthelloRules, position: Position) -> int:
    return int(count_bits(U(position[2])))


@compiled
def observe(rules: OthelloRules, position: Position, planes: Array) -> None:
    write_set(U(position[0]), rules.cell_bits, planes)
    write_set(U(position[1]), rules.cell_bits, planes[len(rules.cell_bits) :])


@compiled
def write_cells(rules: OthelloRules, position: Position, open_value: int, values: Array) -> None:
    own, other = U(position[0]), U(position[1])
    for cell in range(len(rules.cell_bits)):
        bit, value = rules.cell_bits[cell], np.float32(0)
        if own & bit:
            value = np.float32(1)
        elif other & bit:
            value = np.float32(2)
        values[cell] = value


@compiled
def set_up(rules: OthelloRules, cells: Array) -> Played:
    own, other = U(0), U(0)
    for cell in range(len(cells)):
        own |= rules.cell_bits[cell] * U(cells[cell] == 1)
        other |= rules.cell_bits[cell] * U(cells[cell] == 2)
    return end_turn(rules, other, own)


implement(OthelloRules, play, is_legal, mobility, observe, write_cells, set_up)


def make_rules(board: int) -> OthelloRules:
    """The rules on a board of this size."""
    row, column = np.divmod(np.arange(board * board), board)
    cell_bits = U(1) << (8 * row + column).astype(U)
    right, left, lower, upper = column > 0, column < board - 1, row > 0, row < board - 1
    masks = (
        (right, lower, right & lower, left & lower),
        (left, upper, left & upper, right & upper),
    )
    forward, backward = (np.array([cell_bits[mask].sum() for mask in each]) for each in masks)
    steps = np.array([1, 8, 9, 7], U)
    rules = OthelloRules((0, 0, 0), board * board + 1, cell_bits, steps, forward, backward)
    cells, middle = np.zeros((board, board), np.int64), board // 2
    cells[middle, middle - 1] = cells[middle - 1, middle] = 1
    cells[middle, middle] = cells[middle - 1, middle - 1] = 2
    return rules._replace(start=set_up(rules, cells.reshape(-1))[0])


class Othello(BoardGame, Symmetric):
    """board × board cells; actions are the cells and, as the last one, passing.

    Raises ValueError for an odd board and for one that is not from 4 to 8.
    """

    how_to_play = (
        "a disc flips the other's discs between it and another of yours, in every direction; "
        "who has most wins"
    )

    def __init__(self, board: int, name: str = "othello") -> None:
        if board % 2 or not 4 <= board <= 8:
            raise ValueError(f"board={board} is not an even number from 4 to 8")
        cells, self.rules = board * board, make_rules(board)
        self.spec = Spec(
            name=name,
            seats=2,
            actions=cells + 1,
            observation=(2, board, board),
            has_cell_actions=True,
            # A disc follows every pass.
            max_plies=2 * (cells - 4),
            max_positions=2 * count_boards(3, cells),
            goal="outcome",
        )

    def turns(self, cells: Tensor, seat: Tensor) -> Tensor:
        placed = (cells > 0).sum(1) - 4
        return placed + ((placed + seat) & 1)

    def depth(self, state: BoardState) -> Tensor:
        # After a pass the same discs lie on the board, and there is a move.
        discs = (self.cells(state) > 0).flatten(1).sum(1)
        return 2 * discs + (state.words[:, 2] != 0)

    def symmetries(self) -> Tensor:
        return board_symmetries(*self.spec.observation[1:])

    def check_parsed(self, cells: Tensor, state: BoardState, other: BoardState) -> None:
        if bool((state.turn < 0).any()):
            raise ValueError("a game starts with four discs")

    def action_to_string(self, state: BoardState, row: int, action: int) -> str:
        is_pass = action == self.spec.actions - 1
        return PASS if is_pass else super().action_to_string(state, row, action)
