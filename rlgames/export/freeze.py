"""Turns players of Python into players of kernels, or says in one line why it cannot."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from rlgames.core.errors import ConfigError
from rlgames.export.fleets import fleet_rules
from rlgames.export.players import (
    AlphaBetaPlayer,
    BoardTable,
    ExpectimaxPlayer,
    MovePlayer,
    NetworkPlayer,
    NtuplePlayer,
    Symmetries,
    TreePlayer,
)
from rlgames.games.battleship import Battleship
from rlgames.games.board_game import BoardGame
from rlgames.games.game import Game
from rlgames.kernels.mlp import GELU
from rlgames.kernels.ntuple import make_memory
from rlgames.players.player import Agent, Player
from rlgames.policies.canonical import Canonical
from rlgames.policies.ntuple import Ntuple, reason_not_packed
from rlgames.policies.policy import AfterstateNetwork, Policy, ValueFunction
from rlgames.policies.table import Table
from rlgames.sampling import Argmax
from rlgames.search.alphabeta import AlphaBetaSearch
from rlgames.search.expectimax import Expectimax, least_exponent
from rlgames.search.gumbel import batch_sizes
from rlgames.search.mcts import Mcts
from rlgames.search.ntuple_expectimax import SearchSettings

PAGE_POLICIES = "a page plays policy=mlp, table and ntuple, and policy=embedding with line_length="


class Frozen(NamedTuple):
    """A player as kernels take it.

    Args:
        policy: it without its search.
        search: None without one.
        hints: by the kinds of hints of a page, whether scores are probabilities rather than values.
    """

    policy: Any
    search: Any
    hints: dict[str, bool]


def compiled_rules(game: Game[Any]) -> Any:
    """The rules of a game as kernels take them. Raises ConfigError if there are none."""
    if isinstance(game, BoardGame):
        return game.rules
    if type(game) is Battleship:
        return fleet_rules(game)
    text = f"the rules of {game.spec.name} are not compiled, so no page can play it"
    raise ConfigError(text, "use rlgames serve")


def frozen_player(game: Game[Any], player: Player) -> Frozen:
    """Raises ConfigError for a player that kernels cannot compute without torch."""
    if isinstance(player, Mcts) and isinstance(game, BoardGame):
        return _frozen_mcts(game, player)
    if isinstance(player, AlphaBetaSearch) and isinstance(game, BoardGame):
        ntuples = _ntuples(game, player.policy)
        return Frozen(ntuples, AlphaBetaPlayer(ntuples, player.plies), {"policy": False})
    if isinstance(player, Expectimax) and isinstance(game, BoardGame):
        return _frozen_expectimax(game, player)
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
    policy, are_logits = _policy(game, player.policy), player.policy.scores_are_logits
    return Frozen(policy, None, {"policy": are_logits})


def _policy(game: Game[Any], policy: Policy) -> Any:
    """A policy, which makes the move that it scores highest."""
    if isinstance(policy, AfterstateNetwork):
        return MovePlayer(_network(game, policy.network), np.float32(policy.score_scale))
    if not isinstance(game, BoardGame):
        return _network(game, policy)
    if isinstance(policy, Ntuple):
        return _ntuples(game, policy)
    if type(policy) is Table:
        return MovePlayer(_table(game, policy), np.float32(policy.score_scale))
    return _network(game, policy)


def _table(game: BoardGame, policy: Table) -> BoardTable:
    if game.second_view is not None:
        raise ConfigError(f"only torch reads a table of {game.spec.name}", PAGE_POLICIES)
    digits = np.tile(np.arange(game.num_cell_values), (2, 1))
    if game.spec.seats == 2:
        digits[1] = 0, 2, 1
    cells = np.zeros(math.prod(game.spec.observation[1:]), np.float32)
    return BoardTable(policy.values.cpu().contiguous().numpy(), digits, cells)


def _ntuples(game: BoardGame, policy: Ntuple) -> NtuplePlayer:
    if reason := reason_not_packed(game, policy):
        raise ConfigError(f"a page cannot play these n-tuples: {reason}")
    table, network = policy.packed(game)
    memory = make_memory(network, game.spec.actions)
    return NtuplePlayer(network, table, np.float32(policy.score_scale), memory)


def _network(game: Game[Any], policy: Policy) -> NetworkPlayer:
    """A network that a kernel computes."""
    symmetries = Symmetries(*(np.zeros((0, 0), kind) for kind in (np.float32, np.int64, np.int64)))
    if type(policy) is Canonical:
        symmetries, policy = _symmetries(policy), policy.network
    compiled = policy.compiled(game)
    if compiled is None:
        raise ConfigError(f"only torch computes {type(policy).__name__}", PAGE_POLICIES)
    if compiled.network.activation == GELU:
        raise ConfigError("browsers cannot compute policy.activation=gelu", "train with relu")
    num_inputs, actions = compiled.num_inputs, game.spec.actions
    sizes = (num_inputs, (1, num_inputs), (1, actions + compiled.has_value), actions)
    arrays = (np.zeros(size, np.float32) for size in sizes)
    return NetworkPlayer(compiled, symmetries, policy.scores_are_logits, *arrays)


def _symmetries(policy: Canonical) -> Symmetries:
    found = policy.symmetries
    num_cells, weights = found.cells.shape[1], policy._weights.numpy()
    planes = found.plane_order(len(weights) // num_cells)
    inputs = (planes[:, :, None] * num_cells + found.cells[:, None]).flatten(1)
    return Symmetries(weights, inputs.numpy(), found.inverse_actions.numpy())


def _frozen_mcts(game: BoardGame, search: Mcts) -> Frozen:
    settings, trees, agent = search.settings, search.board_trees, search.player
    if not isinstance(agent, Agent) or isinstance(agent.policy, ValueFunction):
        text = "on a page, search=mcts needs a policy with probabilities"
        raise ConfigError(text, "use search=alphabeta or expectimax, or none")
    policy = _network(game, agent.policy)
    if trees is None:
        leaf = "leaf=value" if agent.policy.has_value else "rollout_policy=uniform"
        raise ConfigError("only torch computes rollouts of a policy", f"use search.{leaf}")
    if settings.rule == "gumbel" or settings.dirichlet_fraction:
        raise ConfigError(
            "only torch adds noise to a search",
            "use search.rule=puct search.dirichlet_fraction=0",
        )
    run, actions = trees.prepare(1), game.spec.actions
    run = run._replace(evaluator=run.evaluator._replace(max_rows=sys.maxsize))
    cache = run.evaluator.cache
    cache.value.fill(np.nan)  # nothing is known yet
    for array in (run.tree.prior, run.tree.scratch, cache.prior, cache.positions):
        array.fill(0)  # it was not set, and would make each page another one
    sizes = np.array([*batch_sizes([settings.simulations], settings.num_parallel)], np.int64)
    visits, q, shares = np.zeros((3, 1, actions), np.float32)
    tree = TreePlayer(run, sizes, visits, q, shares, np.zeros(1, np.int64))
    network = run.evaluator.network  # which is stored once
    policy = policy._replace(policy=policy.policy._replace(network=network))
    return Frozen(policy, tree, {"policy": policy.are_logits, "search": True})


def _frozen_expectimax(game: BoardGame, search: Expectimax) -> Frozen:
    ntuples = _ntuples(game, search.policy)
    settings = SearchSettings(float(search.discount), float(search.policy.score_scale))
    lowest = 0
    if search.tile_downgrading is not None:
        lowest = least_exponent(min(search.tile_downgrading, 1 << search.policy.num_cell_values))
    player = ExpectimaxPlayer(ntuples, np.uint64(search.plies), np.uint64(lowest), settings)
    return Frozen(ntuples, player, {"policy": False, "search": False})
