"""Players as kernels: each is a named tuple of arrays and numbers that implements `decide`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.mlp import PLANES, CompiledPolicy, forward
from rlgames.kernels.nibbles import Bits
from rlgames.kernels.ntuple import Memory, enter, score_moves
from rlgames.kernels.rules import (
    Position,
    found_by_type,
    implement,
    is_legal,
    observe,
    play,
    store,
    write_cells,
)
from rlgames.kernels.simulations import BATCHES, Simulations, begin, simulate, write_prior
from rlgames.kernels.tree_search import root_results
from rlgames.kernels.value_search import search_positions
from rlgames.kernels.words import Floats, Integers, Words, compiled, next_random
from rlgames.search.ntuple_expectimax import SearchSettings, search

U = np.uint64


class Opinion(NamedTuple):
    """What a player writes about a position. scores: float32 [A], probabilities, shares of visits
    or values, -inf for illegal actions. value: float32 [1], the return that the seat to move can
    expect, NaN if the player does not tell. rng: uint64 [1], the state of next_random."""

    scores: Floats
    value: Floats
    rng: Words


@found_by_type
def decide(player: Any, rules: Any, position: Position, seat: int, opinion: Opinion) -> int:
    """The action of a player whose seat is to move, whose opinion is written."""
    raise NotImplementedError


@found_by_type
def value_after(values: Any, rules: Any, after: Position, seat: int) -> np.float32:
    """The value of a position for the seat whose move led to it, before chance."""
    raise NotImplementedError


@compiled
def write_opinion(values: Floats, rules: Any, position: Position, opinion: Opinion) -> int:
    """The first legal action with the highest value. Writes the values of legal actions as scores,
    and the highest as value."""
    best = -1
    for action in range(len(opinion.scores)):
        opinion.scores[action] = -np.inf
        if is_legal(rules, position, action):
            opinion.scores[action] = values[action]
            if best < 0 or values[action] > values[best]:
                best = action
    opinion.value[0] = values[best]
    return best


class MovePlayer(NamedTuple):
    """Makes the move with the highest points · scale + value_after."""

    values: Any
    scale: np.float32


@jit()
def decide_by_moves(
    player: MovePlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    best = -1
    for action in range(len(opinion.scores)):
        opinion.scores[action] = -np.inf
        if is_legal(rules, position, action):
            after, _, points = play(rules, position, action)
            value = value_after(player.values, rules, after, seat)
            opinion.scores[action] = player.scale * points + value
            if best < 0 or opinion.scores[action] > opinion.scores[best]:
                best = action
    opinion.value[0] = opinion.scores[best]
    return best


class BoardTable(NamedTuple):
    """A value for every board, whose cells are the digits of its place. digits: int64 [2, base],
    for each seat to move the digit of each value that it sees. cells: float32 [N], which are
    overwritten."""

    values: Floats
    digits: Integers
    cells: Floats


@compiled
def value_in_table(table: BoardTable, rules: Any, after: Position, seat: int) -> np.float32:
    write_cells(rules, after, 0, table.cells)
    index, mover = 0, 1 - seat
    for cell in range(len(table.cells) - 1, -1, -1):
        digit = table.digits[mover, int(table.cells[cell])]
        index = index * table.digits.shape[1] + digit
    return table.values[index]


class Symmetries(NamedTuple):
    """Of a network on canonical boards, see policies.canonical: weights, float32 [I, G], of the
    projection of the inputs by each symmetry; inputs, int64 [G, I], where each of its inputs is on
    the board; actions, int64 [G, A], the output of each action."""

    weights: Floats
    inputs: Integers
    actions: Integers


class NetworkPlayer(NamedTuple):
    """A network. symmetries: without any, it reads boards as they are. are_logits: its scores are
    logits, not values. board, inputs, outputs, scores: float32 [I], [1, I], [1, O] and [A], which
    are overwritten."""

    policy: CompiledPolicy
    symmetries: Symmetries
    are_logits: bool
    board: Floats
    inputs: Floats
    outputs: Floats
    scores: Floats


@compiled
def canonical_symmetry(symmetries: Symmetries, board: Floats) -> int:
    """The symmetry with the largest projection."""
    best, highest = 0, np.float32(-np.inf)
    for symmetry in range(symmetries.weights.shape[1]):
        total = np.float32(0)
        for each in range(len(board)):
            total += board[each] * symmetries.weights[each, symmetry]
        if total > highest:
            best, highest = symmetry, total
    return best


@jit()
def run_network(player: NetworkPlayer, rules: Any, position: Position, scores: Floats) -> None:
    """Write the outputs for a position, and its actions' outputs as scores."""
    symmetries, outputs, symmetry = player.symmetries, player.outputs[0], 0
    if player.policy.open_value == PLANES:
        observe(rules, position, player.board)
    else:
        write_cells(rules, position, player.policy.open_value, player.board)
    has_symmetries = len(symmetries.inputs) > 0
    if has_symmetries:
        symmetry = canonical_symmetry(symmetries, player.board)
    for each in range(len(player.board)):
        at = symmetries.inputs[symmetry, each] if has_symmetries else each
        player.inputs[0, each] = player.board[at]
    forward(player.policy.network, player.inputs, player.outputs)
    for action in range(len(scores)):
        scores[action] = outputs[symmetries.actions[symmetry, action] if has_symmetries else action]


@jit()
def value_by_network(player: NetworkPlayer, rules: Any, after: Position, seat: int) -> np.float32:
    run_network(player, rules, after, player.scores)
    return player.outputs[0, player.outputs.shape[1] - 1]


@jit()
def decide_by_network(
    player: NetworkPlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    scores, last = player.scores, player.outputs.shape[1] - 1
    run_network(player, rules, position, scores)
    best = write_opinion(scores, rules, position, opinion)
    if player.are_logits:
        opinion.value[0] = np.nan
        write_prior(scores, rules, position, 1.0, opinion.scores)
    if player.policy.has_value:
        opinion.value[0] = player.outputs[0, last]
    return best


class TreePlayer(NamedTuple):
    """Monte Carlo tree search in one tree. sizes: int64, of its batches. The other arrays are
    overwritten as by root_results."""

    run: Simulations
    sizes: Integers
    visits: Floats
    q: Floats
    policy: Floats
    action: Integers


@jit()
def decide_by_tree(
    player: TreePlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    run = player.run
    store(run.nodes.positions, 0, position)
    run.tree.sign[0], run.nodes.rng[0, 0] = 1 - 2 * seat, next_random(opinion.rng)
    if run.selection.widens_bounds:
        run.tree.bounds[0, 0], run.tree.bounds[0, 1] = np.inf, -np.inf
    begin(run, rules)
    run.progress[BATCHES] = 0
    simulate(run, rules, player.sizes)
    root_results(run.tree, player.visits, player.q, player.policy, player.action, opinion.value)
    for action in range(len(opinion.scores)):
        is_open = run.tree.prior[0, action] >= 0
        opinion.scores[action] = player.policy[0, action] if is_open else -np.inf
    return player.action[0]


class NtuplePlayer(NamedTuple):
    """Makes the move that n-tuples score highest. scale: the reward of a point."""

    network: Any
    table: Floats
    scale: np.float32
    memory: Memory


@compiled
def decide_by_ntuples(
    player: NtuplePlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    network, memory = player.network, player.memory
    enter(network, rules, position, seat, memory)
    score_moves(network, rules, position, seat, player.table, player.scale, memory)
    return write_opinion(memory.scores, rules, position, opinion)


class AlphaBetaPlayer(NamedTuple):
    """Alpha-beta search on n-tuples, whose scores are those of a single ply."""

    ntuples: NtuplePlayer
    plies: int


@jit(_nrt=True)  # otherwise it would have the option of the kernel that calls it
def decide_by_alpha_beta(
    player: AlphaBetaPlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    decide_by_ntuples(player.ntuples, rules, position, seat, opinion)
    positions, seats = np.empty((1, len(position)), np.int64), np.full(1, seat)
    store(positions, 0, position)
    table, network = player.ntuples.table, player.ntuples.network
    actions, values = search_positions(positions, seats, player.plies, table, network, rules)
    opinion.value[0] = values[0]
    return actions[0]


class ExpectimaxPlayer(NamedTuple):
    """Expectimax on the n-tuples of 2048. lowest: the largest exponent of a board that is searched
    as it is; 0: all are."""

    ntuples: NtuplePlayer
    plies: np.uint64
    lowest: np.uint64
    settings: SearchSettings


@compiled
def downgraded(board: Bits, lowest: Bits) -> Bits:
    """As search.expectimax.downgrade_tiles, for a packed board."""
    while True:
        present = largest = U(0)
        for shift in range(U(0), U(64), U(4)):
            exponent = (board >> shift) & U(15)
            present, largest = present | U(1) << exponent, max(largest, exponent)
        missing = largest
        while present >> missing & U(1):
            missing -= U(1)
        if largest < lowest or missing == U(0):
            return board
        for shift in range(U(0), U(64), U(4)):
            if (board >> shift) & U(15) > missing:
                board -= U(1) << shift


@jit(_nrt=True)  # otherwise it would have the option of the kernel that calls it
def decide_by_expectimax(
    player: ExpectimaxPlayer, rules: Any, position: Position, seat: int, opinion: Opinion
) -> int:
    board = U(position[0])
    if player.lowest:
        board = downgraded(board, player.lowest)
    table, network = player.ntuples.table, player.ntuples.network
    boards = np.full(1, board)
    scores = search(boards, player.plies, table, network, rules, player.settings)
    return write_opinion(scores[0], rules, position, opinion)


implement(MovePlayer, decide=decide_by_moves)
implement(BoardTable, value_after=value_in_table)
implement(NetworkPlayer, decide=decide_by_network, value_after=value_by_network)
implement(TreePlayer, decide=decide_by_tree)
implement(NtuplePlayer, decide=decide_by_ntuples)
implement(AlphaBetaPlayer, decide=decide_by_alpha_beta)
implement(ExpectimaxPlayer, decide=decide_by_expectimax)
