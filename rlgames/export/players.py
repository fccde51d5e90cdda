"""Players as kernels: functions of a desk, the seat to move, and what else a player consists of."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from rlgames.core.errors import ConfigError
from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game
from rlgames.kernels.choice import best_action
from rlgames.kernels.jit import jit
from rlgames.kernels.mlp import GELU, CompiledPolicy
from rlgames.kernels.policy import compute_outputs, read_position
from rlgames.kernels.rules import (
    Position,
    found_by_type,
    implement,
    is_legal,
    load,
    play,
    store,
    write_cells,
)
from rlgames.kernels.simulations import BATCHES, Simulations, begin, simulate, write_prior
from rlgames.kernels.tree_search import root_results
from rlgames.kernels.value_search import CompiledNtuples, search_positions
from rlgames.kernels.words import Array, Floats, Integers, compiled, next_random
from rlgames.players.player import Agent, Player
from rlgames.policies.canonical import Canonical
from rlgames.policies.ntuple import Ntuple, reason_not_compiled
from rlgames.policies.policy import AfterstateNetwork, Policy, ValueFunction
from rlgames.policies.table import Table
from rlgames.sampling import Argmax
from rlgames.search.alphabeta import AlphaBetaSearch
from rlgames.search.expectimax import Expectimax
from rlgames.search.gumbel import batch_sizes
from rlgames.search.mcts import Mcts
from rlgames.search.ntuple_expectimax import SearchSettings, search

PAGE_POLICIES = "a page plays policy=mlp, table and ntuple, and policy=embedding with line_length="

KEPT_BITS = 9
"""Of the mantissa of each number in a table of n-tuples: all 24 would make a page twice as long."""


class Desk(NamedTuple):
    """What a page and kernels share: the rules of a game, and arrays for one position.

    words: int64 [1, W], the position. legal: bool [A]. cells: float32 [N], as in write_cells.
    points: float32 [1], of the last action. scores: float32 [1, A], probabilities, shares of visits
    or values of the legal actions. value: float32 [1], the return that the seat to move can expect,
    NaN if the player does not tell. rng: uint64 [1], the state of next_random.
    """

    rules: Any
    words: Array
    legal: Array
    cells: Array
    points: Array
    scores: Array
    value: Array
    rng: Array


class Frozen(NamedTuple):
    """A player as kernels take it.

    Args:
        kernel: a function of a desk, the seat to move and the arguments. It returns the action, and
            writes scores and their value.
        arguments: arrays and numbers, which may be in named tuples.
        are_shares: whether the scores are shares or probabilities rather than values; None if it
            writes no scores.
    """

    kernel: Any
    arguments: tuple[Any, ...]
    are_shares: bool | None


allocating = jit(_nrt=True)
"""A function without this option would have the one of the kernel that calls it."""


@compiled
def mark_legal(desk: Desk) -> None:
    """Write which actions are legal."""
    position = load(desk.rules.start, desk.words, 0)
    for action in range(desk.rules.actions):
        desk.legal[action] = is_legal(desk.rules, position, action)


@compiled
def choose(desk: Desk) -> int:
    """The legal action with the highest score, which is written as the value."""
    mark_legal(desk)
    best = best_action(desk.scores[0], desk.legal)
    desk.value[0] = desk.scores[0, best]
    return best


@found_by_type
def value_after(values: Any, rules: Any, after: Position, seat: int) -> np.float32:
    """The value of a position for the seat whose move led to it, before chance."""
    raise NotImplementedError


@allocating
def ask_values(desk: Desk, seat: int, values: Any, scale: np.float32) -> int:
    """Scores moves by points · scale + value_after."""
    rules, position = desk.rules, load(desk.rules.start, desk.words, 0)
    for action in range(rules.actions):
        if is_legal(rules, position, action):
            after, _, points = play(rules, position, action)
            desk.scores[0, action] = scale * points + value_after(values, rules, after, seat)
    return choose(desk)


class BoardTable(NamedTuple):
    """A value for every board, whose cells are the digits of its place. digits: int64 [2, base],
    for each seat to move the digit of each value that it sees."""

    values: Floats
    digits: Integers
    cells: Floats


@compiled
def value_in_table(table: BoardTable, rules: Any, after: Position, seat: int) -> np.float32:
    write_cells(rules, after, 0, table.cells)
    index, digits = 0, table.digits[1 - seat]
    for cell in range(len(table.cells) - 1, -1, -1):
        index = index * len(digits) + digits[int(table.cells[cell])]
    return table.values[index]


class PolicyNetwork(NamedTuple):
    """A network on canonical boards, see policies.canonical. weights: float32 [I, G], of the
    projection of its inputs by each symmetry. inputs: int64 [G, I], where each of them is on the
    board. actions: int64 [G, A], the output of each action. Others have a single symmetry."""

    policy: CompiledPolicy
    weights: Floats
    inputs: Integers
    actions: Integers


@allocating
def evaluate(network: PolicyNetwork, rules: Any, position: Position, scores: Floats) -> np.float32:
    """Write the scores of all actions; the value of the position, NaN if there is none."""
    policy, actions = network.policy, len(scores)
    board = np.empty(policy.num_inputs, np.float32)
    inputs = np.empty((1, policy.num_inputs), np.float32)
    outputs = np.empty((1, actions + policy.has_value), np.float32)
    read_position(policy, rules, position, 0, board, outputs[0])
    best, highest = 0, np.float32(-np.inf)
    for symmetry in range(network.weights.shape[1]):
        total = np.float32(0)
        for each in range(len(board)):
            total += board[each] * network.weights[each, symmetry]
        if total > highest:
            best, highest = symmetry, total
    for each in range(len(board)):
        inputs[0, each] = board[network.inputs[best, each]]
    compute_outputs(policy, inputs, outputs)
    for action in range(actions):
        scores[action] = outputs[0, network.actions[best, action]]
    return outputs[0, actions] if policy.has_value else np.float32(np.nan)


@allocating
def value_by_network(network: PolicyNetwork, rules: Any, after: Position, seat: int) -> np.float32:
    return evaluate(network, rules, after, np.empty(rules.actions, np.float32))


implement(BoardTable, value_after=value_in_table)
implement(PolicyNetwork, value_after=value_by_network)


@allocating
def ask_network(desk: Desk, seat: int, network: PolicyNetwork, are_logits: bool) -> int:
    """Scores moves by a network."""
    position, scores = load(desk.rules.start, desk.words, 0), desk.scores[0]
    value = evaluate(network, desk.rules, position, scores)
    best = choose(desk)
    if are_logits:
        write_prior(scores, desk.rules, position, 1.0, scores)
    if are_logits or not np.isnan(value):
        desk.value[0] = value
    return best


@allocating
def ask_tree(desk: Desk, seat: int, run: Simulations, sizes: Integers) -> int:
    """Searches one tree. sizes: int64, of its batches of simulations."""
    store(run.nodes.positions, 0, load(desk.rules.start, desk.words, 0))
    run.tree.sign[0], run.nodes.rng[0, 0] = 1 - 2 * seat, next_random(desk.rng)
    if run.selection.widens_bounds:
        run.tree.bounds[0, 0], run.tree.bounds[0, 1] = np.inf, -np.inf
    begin(run, desk.rules)
    run.progress[BATCHES] = 0
    simulate(run, desk.rules, sizes)
    action, others = np.empty(1, np.int64), np.empty((2, 1, desk.rules.actions), np.float32)
    root_results(run.tree, others[0], others[1], desk.scores, action, desk.value)
    return action[0]


@allocating
def ask_ntuples(desk: Desk, seat: int, policy: CompiledNtuples) -> int:
    """Scores moves by n-tuples."""
    position, scores = load(desk.rules.start, desk.words, 0), desk.scores[0]
    read_position(policy, desk.rules, position, seat, scores, scores)
    return choose(desk)


@allocating
def ask_alpha_beta(desk: Desk, seat: int, policy: CompiledNtuples, plies: int) -> int:
    """Searches with n-tuples, and tells no scores."""
    seats, shared = np.full(1, seat), (policy.table, policy.network, desk.rules)
    actions, values = search_positions(desk.words, seats, plies, *shared)
    desk.value[0] = values[0]
    return actions[0]


@allocating
def ask_expectimax(
    desk: Desk, seat: int, policy: CompiledNtuples, plies: np.uint64, settings: SearchSettings
) -> int:
    """Searches 2048 boards with n-tuples."""
    boards, shared = np.full(1, np.uint64(desk.words[0, 0])), (policy.table, policy.network)
    scores = search(boards, plies, *shared, desk.rules, settings)
    for action in range(desk.rules.actions):
        desk.scores[0, action] = scores[0, action]
    return choose(desk)


def frozen_player(game: Game[Any], player: Player) -> tuple[Frozen, Frozen | None]:
    """A player without its search, and its search. Raises ConfigError for a player that kernels
    cannot compute without torch."""
    if isinstance(player, Mcts) and isinstance(game, BoardGame):
        return _mcts(game, player)
    if isinstance(player, AlphaBetaSearch | Expectimax) and isinstance(game, BoardGame):
        policy = _ntuples(game, player.policy)
        ntuples = policy.arguments[0]
        if isinstance(player, AlphaBetaSearch):
            return policy, Frozen(ask_alpha_beta, (ntuples, player.plies), None)
        arguments = ntuples, np.uint64(player.plies), player.settings
        return policy, Frozen(ask_expectimax, arguments, False)
    if not isinstance(player, Agent):
        name = type(player).__name__
        raise ConfigError(
            f"a page cannot search with {name}",
            "use search=mcts, alphabeta or expectimax, with search.solve_positions=0",
        )
    if not (isinstance(player.sampling, Argmax) and not player.sampling.is_random):
        raise ConfigError(
            "an agent on a page makes its best move", "use sampling=argmax sampling.ties=first"
        )
    return _policy(game, player.policy), None


def _policy(game: Game[Any], policy: Policy) -> Frozen:
    """A policy, which makes the move that it scores highest."""
    if isinstance(policy, Ntuple) and isinstance(game, BoardGame):
        return _ntuples(game, policy)
    if isinstance(policy, AfterstateNetwork):
        values: Any = _network(game, policy.network)
    elif type(policy) is Table and isinstance(game, BoardGame):
        values = _table(game, policy)
    else:
        are_logits = policy.scores_are_logits
        return Frozen(ask_network, (_network(game, policy), are_logits), are_logits)
    return Frozen(ask_values, (values, np.float32(policy.score_scale)), False)


def _table(game: BoardGame, policy: Table) -> BoardTable:
    if game.second_view is not None:
        raise ConfigError(f"only torch reads a table of {game.spec.name}", PAGE_POLICIES)
    digits = np.tile(np.arange(game.num_cell_values), (2, 1))
    if game.spec.seats == 2:
        digits[1] = 0, 2, 1
    cells = np.zeros(math.prod(game.spec.observation[1:]), np.float32)
    return BoardTable(policy.values.cpu().contiguous().numpy(), digits, cells)


def _ntuples(game: BoardGame, policy: Ntuple) -> Frozen:
    if reason := reason_not_compiled(game, policy):
        raise ConfigError(f"a page cannot play these n-tuples: {reason}")
    compiled = policy.compiled(game)
    assert compiled is not None
    return Frozen(ask_ntuples, (compiled._replace(table=rounded(compiled.table)),), False)


def rounded(numbers: Floats) -> Floats:
    """The nearest numbers whose mantissas have KEPT_BITS bits."""
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(mantissa, KEPT_BITS)), exponent - KEPT_BITS)


def _network(game: Game[Any], policy: Policy) -> PolicyNetwork:
    """A network that a kernel computes."""
    compiled = (policy.network if isinstance(policy, Canonical) else policy).compiled(game)
    if compiled is None:
        raise ConfigError(f"only torch computes {type(policy).__name__}", PAGE_POLICIES)
    if compiled.network.activation == GELU:
        raise ConfigError("browsers cannot compute policy.activation=gelu", "train with relu")
    if not isinstance(policy, Canonical):
        weights = np.zeros((compiled.num_inputs, 1), np.float32)
        return PolicyNetwork(
            compiled, weights, *(np.arange(n)[None] for n in (len(weights), game.spec.actions))
        )
    found, weights = policy.symmetries, policy._weights.numpy()
    num_cells = found.cells.shape[1]
    planes = found.plane_order(len(weights) // num_cells)
    inputs = (planes[:, :, None] * num_cells + found.cells[:, None]).flatten(1)
    return PolicyNetwork(compiled, weights, inputs.numpy(), found.inverse_actions.numpy())


def _mcts(game: BoardGame, search: Mcts) -> tuple[Frozen, Frozen]:
    settings, trees, agent = search.settings, search.board_trees, search.player
    if not isinstance(agent, Agent):
        raise ConfigError("on a page, search=mcts needs a policy", "train one")
    if isinstance(agent.policy, ValueFunction) and not isinstance(agent.policy, Ntuple):
        raise ConfigError("only torch searches with these values", "use no search")
    policy = _policy(game, agent.policy)
    if trees is None:
        leaf = "leaf=value" if agent.policy.has_value else "rollout_policy=uniform"
        raise ConfigError("only torch computes rollouts of a policy", f"use search.{leaf}")
    if settings.rule == "gumbel" or settings.dirichlet_fraction:
        raise ConfigError(
            "only torch adds noise to a search",
            "use search.rule=puct search.dirichlet_fraction=0",
        )
    run = trees.prepare(1)
    run = run._replace(evaluator=run.evaluator._replace(max_rows=sys.maxsize))
    run.evaluator.cache.value.fill(np.nan)  # nothing is known yet
    sizes = np.array([*batch_sizes([settings.simulations], settings.num_parallel)], np.int64)
    network, shared = policy.arguments[0], run.evaluator.policy  # its numbers are stored once
    if isinstance(network, CompiledNtuples):
        run = run._replace(evaluator=run.evaluator._replace(policy=network))
    else:
        arguments = network._replace(policy=shared), *policy.arguments[1:]
        policy = policy._replace(arguments=arguments)
    return policy, Frozen(ask_tree, (run, sizes), True)
