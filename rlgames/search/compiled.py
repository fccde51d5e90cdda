"""Tree search by compiled rules: a kernel does everything but large batches of evaluations."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.games.capabilities import CellBoard
from rlgames.games.compiled import CompiledRules
from rlgames.games.game import Game, State
from rlgames.players.player import Agent
from rlgames.policies.embedding import Embedding
from rlgames.policies.mlp import Mlp
from rlgames.policies.policy import Network, Policy
from rlgames.search.settings import MctsSettings
from rlgames.search.tree import SearchTree, make_child_table

if TYPE_CHECKING:
    from rlgames.kernels.evaluation_cache import EvaluationCache
    from rlgames.kernels.gumbel import GumbelPlan
    from rlgames.kernels.mlp import MlpWeights
    from rlgames.kernels.tree_nodes import Batch, Evaluator, Nodes
    from rlgames.kernels.tree_search import TreeArrays

MAX_COMPILED_ROWS = 32
"""The kernel evaluates at most as many leaves at once by an mlp; torch is faster with more."""

MAX_CACHE_BYTES = 1 << 25


class LeafEvaluator:
    """Evaluates leaves: by the cache, a kernel, or the policy itself.

    The cache is emptied when the policy's weights have changed. network: the policy if a kernel
    writes what it reads, float32 [B, *input_shape]; otherwise None.
    """

    def __init__(
        self,
        game: Game[Any],
        compiled: CompiledRules[Any],
        agent: Agent,
        settings: MctsSettings,
    ) -> None:
        self.game, self.compiled, self.agent, self._settings = game, compiled, agent, settings
        self.network: Network | None = None
        policy, self.input_shape = agent.policy, game.spec.observation
        if isinstance(policy, Embedding):
            values = (
                policy.open_value + 1
                if policy.open_value
                else cast(CellBoard, game).num_cell_values
            )
            self.input_shape = (1, *game.spec.observation[1:])
            self.network = policy if policy.num_cell_values == values else None
        elif observes_alone(policy):
            self.network = policy
        self._modules = list(policy.modules())
        self._caches: list[EvaluationCache] = []
        self._weights: MlpWeights | None = None
        self._versions: list[tuple[int, int]] = []

    def prepare(self, nodes: int, parts: int) -> list[Evaluator]:
        """The evaluators of the parts of a search, with at most as many nodes each, as kernels take
        them. Each has its own cache, because several threads must not write the same one."""
        from rlgames.kernels.evaluation_cache import make_cache
        from rlgames.kernels.tree_nodes import PLANES, Evaluator

        words, actions = len(self.compiled.rules.start), self.game.spec.actions
        versions = self._versions_now()
        max_slots = _power_of_two(MAX_CACHE_BYTES // (parts * actions * 4))
        slots = min(1 << (2 * nodes).bit_length(), max_slots)
        has_room = len(self._caches) >= parts and len(self._caches[0].value) >= slots
        # With new weights the sizes are also new: a resumed run has to forget what this one would.
        if not has_room or versions != self._versions:
            self._caches = [make_cache(slots, words, actions) for _ in range(parts)]
        if self._weights is None or versions != self._versions:
            self._weights = self._pack()
        self._versions = versions
        max_rows = MAX_COMPILED_ROWS if len(self._weights.widths) else 0
        network, weights = self.network, self._weights
        return [
            Evaluator(
                cache=cache,
                network=weights,
                max_rows=sys.maxsize if len(weights.lines) else max_rows,
                temperature=self._settings.temperature,
                value_scale=self._settings.value_scale,
                open_value=network.open_value if isinstance(network, Embedding) else PLANES,
            )
            for cache in self._caches[:parts]
        ]

    def _pack(self) -> MlpWeights:
        """The network as a kernel takes it; one without layers if it cannot."""
        from rlgames.kernels.mlp import NO_NETWORK

        network = self.network
        # A class derived from one of these may compute something else.
        if type(network) is Mlp or (type(network) is Embedding and network.adds):
            return network.packed()
        return NO_NETWORK

    def _versions_now(self) -> list[tuple[int, int]]:
        """What changes with any weight."""
        return [
            (tensor.data_ptr(), tensor._version)
            for module in self._modules
            for tensor in (*module._parameters.values(), *module._buffers.values())
            if tensor is not None
        ]


class CompiledSearch:
    """Simulations from live positions [T], which end at the first new node, valued by the head.

    Settings.threads threads search as many parts of the trees; their number changes the result by
    rounding at most. tree: with roots that are expanded. root_value: float32 [T], estimates of them
    for the seats to move. bounds: the lowest and the highest value for seat 0.
    """

    def __init__(
        self,
        evaluator: LeafEvaluator,
        settings: MctsSettings,
        tree: SearchTree,
        roots: State,
        bounds: tuple[float, float],
    ) -> None:
        self.tree, trees, nodes = tree, len(roots), len(tree.sign)
        tree.sign[:trees] = 1.0 - 2.0 * roots.current_seat
        positions, num_parts = (
            _positions_of(evaluator.compiled, roots, nodes),
            min(settings.threads, trees),
        )
        capacity, max_trees = nodes // trees, -(-trees // num_parts)
        self._parts = []
        for part, compiled in enumerate(evaluator.prepare(capacity * max_trees, num_parts)):
            first, stop = trees * part // num_parts, trees * (part + 1) // num_parts
            arrays, num_nodes = tree.arrays, trees + first * (capacity - 1)
            if num_parts > 1:
                keys, children = make_child_table(capacity * max_trees)
                arrays = arrays._replace(
                    keys=keys.numpy(),
                    children=children.numpy(),
                    scratch=np.empty_like(arrays.scratch),
                )
            where = (arrays, positions, bounds, first, stop, num_nodes)
            self._parts.append(_Part(evaluator, compiled, settings, *where))
        self.simulate([])
        values = np.concatenate([part.batch.value[: part.trees] for part in self._parts])
        self.root_value = torch.from_numpy(values) * tree.sign[:trees]

    def simulate(self, sizes: Iterable[int]) -> None:
        """Run batches of `sizes` simulations in each tree, like Mcts.simulate_batch."""
        batches, plan = np.array(list(sizes), np.int64), self.tree.plan
        if len(self._parts) == 1:
            self._parts[0].simulate(batches, plan)
            return
        with ThreadPoolExecutor(len(self._parts)) as pool:
            list(pool.map(lambda part: part.simulate(batches, plan), self._parts))


class _Part:
    """The search of the trees from first to stop, by one thread.

    arrays, nodes: of all trees, where the nodes from num_nodes on are its own, and so is the hash
    table.
    """

    def __init__(
        self,
        evaluator: LeafEvaluator,
        compiled: Evaluator,
        settings: MctsSettings,
        arrays: TreeArrays,
        nodes: Nodes,
        bounds: tuple[float, float],
        first: int,
        stop: int,
        num_nodes: int,
    ) -> None:
        from rlgames.kernels.simulations import NODES, add_roots

        self._evaluator, self._compiled, self._settings = evaluator, compiled, settings
        self._arrays, self._nodes = arrays, nodes
        self._first, self.trees = first, stop - first
        size = self.trees * settings.num_parallel
        self._bounds = np.tile(np.array(bounds, np.float32), (size, 1))
        self._rules = evaluator.compiled.rules
        self._max_depth = float(math.inf if settings.depth is None else settings.depth)
        self.batch = _new_batch(size, evaluator.game, evaluator)
        self._at = np.zeros(NODES + 1, np.int64)
        where = (arrays, nodes, self.batch, self._rules, compiled, self._max_depth)
        add_roots(*where, first, self.trees, num_nodes, self._at)

    def simulate(self, batches: NDArray[np.int64], plan: GumbelPlan) -> None:
        """Like CompiledSearch.simulate."""
        from rlgames.kernels.simulations import BATCHES, IS_EVALUATED, LEAVES, Selection, advance
        from rlgames.kernels.tree_search import RULES

        rule = RULES[self._settings.rule]
        selection = Selection(self._bounds, self._settings.c_puct, rule, plan, self._max_depth)
        self._at[BATCHES] = 0
        while leaves := advance(
            self._arrays,
            self._nodes,
            self.batch,
            self._rules,
            self._compiled,
            selection,
            self._first,
            self.trees,
            batches,
            self._at,
        ):
            if leaves < 0:
                self._raise_non_finite(int(self._at[LEAVES]))
            self._evaluate(leaves)
            self._at[IS_EVALUATED] = 1

    @torch.no_grad()
    def _evaluate(self, leaves: int) -> None:
        """Let torch write the outputs of leaves. Gradients are off by thread."""
        if self._evaluator.network is not None:
            inputs = torch.from_numpy(self.batch.inputs[:leaves])
            scores, value = self._evaluator.network(inputs.view(-1, *self._evaluator.input_shape))
        else:
            states = self._leaf_states(leaves)
            scores, value = self._evaluator.agent.policy.scores(self._evaluator.game, states)
        assert value is not None
        self.batch.outputs[:leaves, :-1] = scores.numpy()
        self.batch.outputs[:leaves, -1] = value.numpy()

    def _raise_non_finite(self, leaves: int) -> None:
        """Raise the error that says so."""
        scores = torch.from_numpy(self.batch.outputs[:leaves, :-1])
        legal = self._evaluator.game.legal_action_mask(self._leaf_states(leaves))
        self._evaluator.agent.sampling.probabilities(scores, legal, 0.0)

    def _leaf_states(self, count: int) -> State:
        node = self.batch.end[self.batch.leaf[:count]]
        words = torch.from_numpy(self._nodes.positions[node])
        fields = {
            "done": torch.zeros(count, dtype=torch.bool),
            "current_seat": torch.from_numpy(self._arrays.sign[node] < 0).long(),
            "turn": torch.from_numpy(self._nodes.turn[node]),
            "score": torch.zeros(count, 2),
        }
        state: State = self._evaluator.compiled.unpack(words, fields)
        return state


def observes_alone(policy: Policy) -> TypeGuard[Network]:
    """Whether a policy reads observations and nothing else."""
    if not isinstance(policy, Network):
        return False
    return type(policy).inputs is Network.inputs and type(policy).scores is Network.scores


def _positions_of(compiled: CompiledRules[Any], roots: State, nodes: int) -> Nodes:
    """Room for the positions of nodes, the first of which are the roots."""
    from rlgames.kernels.tree_nodes import Nodes

    words = compiled.pack(roots).numpy()
    positions, turn = np.zeros((nodes, words.shape[1]), np.int64), np.zeros(nodes, np.int64)
    positions[: len(roots)], turn[: len(roots)] = words, roots.turn.numpy()
    return Nodes(positions, turn, np.zeros(nodes, np.bool_), np.zeros(nodes, np.float32))


def _new_batch(size: int, game: Game[Any], evaluator: LeafEvaluator) -> Batch:
    """For simulations side by side, with room for what a network reads."""
    from rlgames.kernels.tree_nodes import Batch

    types = {"value": np.float32, "is_new": np.bool_}
    columns: dict[str, Any] = {
        name: np.zeros(size, types.get(name, np.int64)) for name in Batch._fields
    }
    rows = 0 if evaluator.network is None else size
    columns["inputs"] = np.zeros((rows, math.prod(evaluator.input_shape)), np.float32)
    columns["outputs"] = np.zeros((size, game.spec.actions + 1), np.float32)
    return Batch(**columns)


def _power_of_two(limit: int) -> int:
    """The greatest one that is not above the limit."""
    return 1 << (limit.bit_length() - 1)
