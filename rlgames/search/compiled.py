"""Tree search by compiled rules: a kernel does everything but large batches of evaluations."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
    from rlgames.kernels.mlp import MlpWeights
    from rlgames.kernels.simulations import Selection
    from rlgames.kernels.tree_nodes import Batch, Evaluator, Nodes
    from rlgames.kernels.tree_search import TreeArrays

N = TypeVar("N", bound=Network)

MAX_COMPILED_ROWS = 32
"""The kernel evaluates at most as many leaves at once by an mlp without ReLU, of which no numbers
are 0; torch is faster with more."""

MAX_CACHE_BYTES = 1 << 25

MAX_SEED = (1 << 63) - 1


class LeafEvaluator:
    """Evaluates leaves: by the cache, a kernel, or the policy itself.

    agent: None if all legal actions have the same prior, and random play values leaves. The cache
    is emptied when the policy's weights have changed. network: the policy if a kernel writes its
    inputs, float32 [B, *input_shape]; otherwise None.
    """

    def __init__(
        self,
        game: Game[Any],
        compiled: CompiledRules[Any],
        agent: Agent | None,
        settings: MctsSettings,
    ) -> None:
        self.game, self.compiled, self.agent, self._settings = game, compiled, agent, settings
        self.network: Network | None = None
        policy = None if agent is None else agent.policy
        self.input_shape = game.spec.observation
        if isinstance(policy, Embedding):
            self.input_shape = (1, *game.spec.observation[1:])
            if reads_as(policy, Embedding) and _writes_cells_of(policy, game):
                self.network = policy
        elif reads_as(policy, Network):
            self.network = policy
        modules = () if policy is None else policy.modules()
        tables = (table for module in modules for table in (module._parameters, module._buffers))
        self._tensors = [table for table in tables if table]
        self._caches: list[EvaluationCache] = []
        self._weights: MlpWeights | None = None
        self._versions: list[tuple[int, int]] = []

    def prepare(self, nodes: int, parts: int) -> list[Evaluator]:
        """The evaluators of the parts of a search, with at most as many nodes each, as kernels take
        them. Each has its own cache, because several threads must not write the same one."""
        from rlgames.kernels.evaluation_cache import make_cache
        from rlgames.kernels.mlp import RELU
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
        network, weights = self.network, self._weights
        max_rows = MAX_COMPILED_ROWS if len(weights.widths) else 0
        is_uniform = self.agent is None
        if is_uniform or len(weights.lines) or (max_rows and weights.activation == RELU):
            max_rows = sys.maxsize
        is_discounted = self.game.spec.seats == 1 and self._settings.leaf == "value"
        return [
            Evaluator(
                cache=cache,
                network=weights,
                max_rows=max_rows,
                is_uniform=is_uniform,
                temperature=self._settings.temperature,
                value_scale=self._settings.value_scale,
                discount=self._settings.discount if is_discounted else 1.0,
                max_value=1.0 if self.game.spec.seats == 2 else math.inf,
                open_value=network.open_value if isinstance(network, Embedding) else PLANES,
            )
            for cache in self._caches[:parts]
        ]

    def _pack(self) -> MlpWeights:
        """The network as a kernel takes it; one without layers if it cannot."""
        from rlgames.kernels.mlp import NO_NETWORK

        network = self.network
        if network is None or not network.has_value:
            return NO_NETWORK
        # A class derived from one of these may compute something else.
        if type(network) is Mlp or (type(network) is Embedding and network.adds):
            return network.packed()
        return NO_NETWORK

    def _versions_now(self) -> list[tuple[int, int]]:
        """What changes with any weight."""
        return [
            (tensor.data_ptr(), tensor._version)
            for table in self._tensors
            for tensor in table.values()
            if tensor is not None
        ]


class CompiledSearch:
    """Searches one after the other, whose arrays are kept: begin, then simulate.

    Settings.threads threads search as many parts of the trees; their number changes the result by
    rounding at most. max_nodes: of one tree.
    """

    def __init__(self, evaluator: LeafEvaluator, settings: MctsSettings, max_nodes: int) -> None:
        self._evaluator, self._settings, self._max_nodes = evaluator, settings, max_nodes
        self._tree: SearchTree | None = None
        self._nodes: Nodes | None = None
        self._parts: list[_Part] = []
        self._selection: Selection

    def begin(self, roots: State, bounds: Tensor, rng: torch.Generator) -> SearchTree:
        """Trees with expanded roots, at live positions [T], whose simulations end at the first new
        node, valued by the head.

        bounds: float32 [T, 2], the lowest and the highest value for seat 0; a game of points
        widens them. rng: seeds the chance of each tree. The tree is overwritten by the next search.
        """
        from rlgames.kernels.simulations import Selection
        from rlgames.kernels.tree_search import RULES

        trees, num_parts = len(roots), min(self._settings.threads, len(roots))
        capacity = self._max_nodes * -(-trees // num_parts)
        evaluators = self._evaluator.prepare(capacity, num_parts)
        tree, nodes = self._reserve(trees, num_parts)
        tree.arrays.sign[:trees] = 1 - 2 * roots.current_seat.numpy()
        nodes.positions[:trees] = self._evaluator.compiled.pack(roots).numpy()
        nodes.turn[:trees] = roots.turn.numpy()
        if self._evaluator.game.spec.num_chance_inputs or self._settings.leaf == "rollout":
            seeds = torch.randint(MAX_SEED, (trees, 1), generator=rng, device=rng.device)
            nodes.rng[:trees] = seeds.cpu().numpy().view(np.uint64)
        for part, each in zip(self._parts, evaluators, strict=True):
            part.begin(each)
        spec, settings = self._evaluator.game.spec, self._settings
        self._selection = Selection(
            bounds=bounds.numpy(),
            widens_bounds=spec.seats == 1 and not settings.q_scale,
            c_puct=settings.c_puct,
            rule=RULES[settings.rule],
            plan=tree.plan,
            max_depth=float(math.inf if settings.depth is None else settings.depth),
            has_chance=spec.num_chance_inputs > 0,
            rolls_out=settings.leaf == "rollout",
            sign_factor=-1.0 if spec.seats == 2 else 1.0,
        )
        self.simulate([])
        return tree

    def root_value(self) -> Tensor:
        """Float32 [T] for seat 0: estimates of the roots, before anything else."""
        return torch.from_numpy(
            np.concatenate([part.batch.value[: part.trees] for part in self._parts])
        )

    def fits(self, roots: State) -> bool:
        """Whether these positions can be searched."""
        return self._evaluator.compiled.fits(roots)

    def simulate(self, sizes: Iterable[int]) -> None:
        """Run batches of `sizes` simulations in each tree, like Mcts.simulate_batch."""
        assert self._tree is not None
        batches = np.array(list(sizes), np.int64)
        selection = self._selection._replace(plan=self._tree.plan)
        if len(self._parts) == 1:
            self._parts[0].simulate(batches, selection)
            return
        with ThreadPoolExecutor(len(self._parts)) as pool:
            list(pool.map(lambda part: part.simulate(batches, selection), self._parts))

    def _reserve(self, trees: int, num_parts: int) -> tuple[SearchTree, Nodes]:
        """Make what a search of so many trees needs, unless the last one had as many."""
        tree, nodes = self._tree, self._nodes
        if (
            tree is not None
            and nodes is not None
            and sum(part.trees for part in self._parts) == trees
        ):
            return tree, nodes
        evaluator, settings, max_nodes = self._evaluator, self._settings, self._max_nodes
        if (
            tree is None
            or nodes is None
            or not len(tree.sign) // 4 <= trees * max_nodes <= len(tree.sign)
        ):
            tree = SearchTree(trees, max_nodes, evaluator.game.spec.actions)
            nodes = _make_nodes(trees, max_nodes, len(evaluator.compiled.rules.start))
            self._tree, self._nodes = tree, nodes
        self._parts = []
        for part in range(num_parts):
            first, stop = trees * part // num_parts, trees * (part + 1) // num_parts
            arrays = tree.arrays
            if num_parts > 1:
                keys, children = make_child_table(max_nodes * -(-trees // num_parts))
                arrays = arrays._replace(
                    keys=keys.numpy(),
                    children=children.numpy(),
                    scratch=np.empty_like(arrays.scratch),
                )
            num_nodes = trees + first * (max_nodes - 1)
            self._parts.append(_Part(evaluator, settings, arrays, nodes, first, stop, num_nodes))
        return tree, nodes


class _Part:
    """The search of the trees from first to stop, by one thread.

    arrays, nodes: of all trees, where the nodes from num_nodes on are its own, and so is the hash
    table.
    """

    def __init__(
        self,
        evaluator: LeafEvaluator,
        settings: MctsSettings,
        arrays: TreeArrays,
        nodes: Nodes,
        first: int,
        stop: int,
        num_nodes: int,
    ) -> None:
        from rlgames.kernels.simulations import NODES

        self._evaluator = evaluator
        self._compiled: Evaluator
        self._arrays, self._nodes, self._num_nodes = arrays, nodes, num_nodes
        self._first, self.trees = first, stop - first
        self._rules = evaluator.compiled.rules
        self.batch = _new_batch(self.trees * settings.num_parallel, evaluator)
        self._at = np.zeros(NODES + 1, np.int64)

    def begin(self, evaluator: Evaluator) -> None:
        """The next simulations begin a new search."""
        from rlgames.kernels.simulations import NEW

        self._compiled = evaluator
        self._at[:] = 0, 0, NEW, 0, self._num_nodes

    def simulate(self, batches: NDArray[np.int64], selection: Selection) -> None:
        """Like CompiledSearch.simulate."""
        from rlgames.kernels.simulations import BATCHES, IS_EVALUATED, LEAVES, advance

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
        evaluator, batch = self._evaluator, self.batch
        if evaluator.network is not None:
            inputs = torch.from_numpy(batch.inputs[:leaves])
            scores, value = evaluator.network(inputs.view(-1, *evaluator.input_shape))
        else:
            assert evaluator.agent is not None
            states = self._leaf_states(leaves)
            scores, value = evaluator.agent.policy.scores(evaluator.game, states)
        batch.outputs[:leaves, :-1] = scores.numpy()
        batch.outputs[:leaves, -1] = 0.0 if value is None else value.numpy()

    def _raise_non_finite(self, leaves: int) -> None:
        """Raise the error that says so."""
        assert self._evaluator.agent is not None
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
            "score": torch.zeros(count, self._evaluator.game.spec.seats),
        }
        state: State = self._evaluator.compiled.unpack(words, fields)
        return state


def reads_as(policy: Policy | None, base: type[N]) -> TypeGuard[N]:
    """Whether a policy is a network that makes its inputs and scores as this class does."""
    if not isinstance(policy, base):
        return False
    return type(policy).inputs is base.inputs and type(policy).scores is base.scores


def _writes_cells_of(policy: Embedding, game: Game[Any]) -> bool:
    """Whether a kernel writes the values of cells that a policy reads, all of them distinct."""
    board = cast(CellBoard, game)
    values = policy.open_value + 1 if policy.open_value else board.num_cell_values
    return policy.num_cell_values == values


def _make_nodes(trees: int, max_nodes: int, words: int) -> Nodes:
    """Room for the positions of nodes."""
    from rlgames.kernels.tree_nodes import Nodes

    nodes = trees * max_nodes
    return Nodes(
        positions=np.zeros((nodes, words), np.int64),
        turn=np.zeros(nodes, np.int64),
        is_over=np.zeros(nodes, np.bool_),
        gain=np.zeros(nodes, np.float32),
        rng=np.zeros((trees, 1), np.uint64),
    )


def _new_batch(size: int, evaluator: LeafEvaluator) -> Batch:
    """For simulations side by side, with room for what a network reads."""
    from rlgames.kernels.tree_nodes import Batch

    floats, bools = ("value", "points"), ("is_new", "is_over")
    columns: dict[str, Any] = {name: np.zeros(size, np.int64) for name in Batch._fields}
    columns |= {name: np.zeros(size, np.float32) for name in floats}
    columns |= {name: np.zeros(size, np.bool_) for name in bools}
    rows = 0 if evaluator.network is None else size
    columns["inputs"] = np.zeros((rows, math.prod(evaluator.input_shape)), np.float32)
    columns["outputs"] = np.zeros((size, evaluator.game.spec.actions + 1), np.float32)
    columns["bounds"] = np.zeros((size, 2), np.float32)
    columns["positions"] = np.zeros((size, len(evaluator.compiled.rules.start)), np.int64)
    return Batch(**columns)


def _power_of_two(limit: int) -> int:
    """The greatest one that is not above the limit."""
    return 1 << (limit.bit_length() - 1)
