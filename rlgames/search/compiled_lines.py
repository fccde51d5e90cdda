"""Tree search in k in a row, where a kernel makes the moves and torch only evaluates leaves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import torch

from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow, KInARowState
from rlgames.games.random_play import KInARowRandomPlay
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import Network, Policy
from rlgames.search.tree import SearchTree

if TYPE_CHECKING:
    from rlgames.kernels.line_search import Batch
    from rlgames.search.mcts import MctsSettings


class LineSearch:
    """Simulations from live positions [T], which end at the first new node, valued by the head.

    bounds: the lowest and the highest value for seat 0.
    """

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        settings: MctsSettings,
        tree: SearchTree,
        roots: State,
        bounds: tuple[float, float],
    ) -> None:
        from rlgames.kernels.line_search import Boards
        from rlgames.kernels.tree_search import RULES

        assert isinstance(game, KInARow)
        assert isinstance(player, Agent)
        assert isinstance(roots, KInARowState)
        self._game, self._agent, self._settings = game, player, settings
        self._tree, self._arrays = tree, tree.arrays()
        self._rule, self._rules = RULES[settings.rule], KInARowRandomPlay(game).rules
        self._max_depth = float(math.inf if settings.depth is None else settings.depth)
        self._trees, nodes = len(roots), len(tree.sign)
        self._boards = Boards(
            np.zeros(nodes, np.int64),
            np.zeros(nodes, np.int64),
            np.zeros(nodes, np.bool_),
            np.zeros(nodes, np.float32),
        )
        self._boards.own[: len(roots)] = roots.own.numpy()
        self._boards.occupied[: len(roots)] = roots.occupied.numpy()
        size = len(roots) * settings.num_parallel
        self._bounds = np.tile(np.array(bounds, np.float32), (size, 1))
        self._done, self._score = torch.zeros(size, dtype=torch.bool), torch.zeros(size, 2)
        policy = player.policy
        self._network = policy if observes_alone(policy) else None
        self._batch = _new_batch(size, size if self._network else 0, 2 * game.rows * game.columns)
        self._planes = torch.from_numpy(self._batch.planes).view(-1, *game.spec.observation)
        self._columns = {
            name: torch.from_numpy(getattr(self._batch, name))
            for name in ("own", "occupied", "current_seat", "turn", "end", "value")
        }

    def simulate(self, num_parallel: int) -> None:
        """Run num_parallel simulations side by side in each tree; as Mcts.simulate_batch does."""
        from rlgames.kernels.line_search import expand_leaves, run_round

        settings, tree, batch = self._settings, self._tree, self._batch
        live = size = self._trees * num_parallel
        batch.simulation[:size] = np.arange(size)
        batch.node[:size] = batch.simulation[:size] // num_parallel
        while live:
            live, leaves, tree.num_nodes = run_round(
                self._arrays,
                self._boards,
                batch,
                self._rules,
                tree.plan,
                self._bounds,
                settings.c_puct,
                self._rule,
                self._max_depth,
                live,
                tree.num_nodes,
            )
            if not leaves:
                continue
            if self._network is not None:
                scores, value = self._network(self._planes[:leaves])
            else:
                scores, value = self._agent.policy.scores(self._game, self._leaf_states(leaves))
            assert value is not None
            is_finite = expand_leaves(
                self._arrays,
                batch,
                self._rules,
                scores.numpy(),
                value.numpy(),
                settings.temperature,
                settings.value_scale,
                self._max_depth,
            )
            if not is_finite:  # raises the error that says so
                legal = self._game.legal_action_mask(self._leaf_states(leaves))
                self._agent.sampling.probabilities(scores, legal, 0.0)
        tree.back_up(self._columns["end"][:size], self._columns["value"][:size])

    def _leaf_states(self, count: int) -> KInARowState:
        column = self._columns
        dtype = self._game.layout.cell_bits.dtype
        return KInARowState(
            done=self._done[:count],
            current_seat=column["current_seat"][:count],
            turn=column["turn"][:count],
            score=self._score[:count],
            own=column["own"][:count].to(dtype),
            occupied=column["occupied"][:count].to(dtype),
        )


def observes_alone(policy: Policy) -> TypeGuard[Network]:
    """Whether a policy reads observations and nothing else."""
    if not isinstance(policy, Network):
        return False
    return type(policy).inputs is Network.inputs and type(policy).scores is Network.scores


def _new_batch(size: int, observed: int, inputs: int) -> Batch:
    from rlgames.kernels.line_search import Batch

    types = {"value": np.float32, "is_new": np.bool_}
    columns: dict[str, Any] = {
        name: np.zeros(size, types.get(name, np.int64)) for name in Batch._fields
    }
    return Batch(**columns | {"planes": np.zeros((observed, inputs), np.float32)})
