"""Monte Carlo tree search guided by a policy, in many trees side by side.

Dedieu and Amar search 2048 as follows: descend by argmax_a Q(s, a) + c·P(s, a) / (1 + N(s, a)),
with the policy's probabilities P and sampled tiles; play on from the leaf with the policy; make
the move with the most visits. Here the same search plays every game, also by the rules of AlphaZero
and of Gumbel AlphaZero.

A kernel makes the moves of a BoardGame, and evaluates leaves by small networks and by random play;
torch evaluates the others in batches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlgames.config.options.search import MctsConfig
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import Game, State
from rlgames.kernels.evaluation_cache import EvaluationCache, make_cache
from rlgames.kernels.mlp import NO_NETWORK, NO_POLICY, PLANES, RELU, CompiledPolicy
from rlgames.kernels.simulations import (
    BATCHES,
    LEAVES,
    Batch,
    Evaluator,
    Nodes,
    Simulations,
    begin,
    simulate,
    value_by_play,
)
from rlgames.kernels.value_search import CompiledNtuples
from rlgames.players.player import Agent, HasProbabilities, Player, Random
from rlgames.policies.embedding import Embedding
from rlgames.policies.policy import Network, Policy, ValueFunction
from rlgames.rng import Rng
from rlgames.sampling import Stochastic, check_finite
from rlgames.search.gumbel import batch_sizes, plan_roots
from rlgames.search.search import Search, SearchResult
from rlgames.search.torch_mcts import SampledTrees
from rlgames.search.tree import SearchTree
from rlgames.search.utility import Utility

MAX_NODE_ACTIONS = 1 << 24
"""The limit of nodes × actions in memory; larger batches are searched in parts."""

NODE_OVERHEAD = 8
"""The memory of a node besides its actions, in units of actions."""

MAX_COMPILED_ROWS = 32
"""The most leaves that the kernel evaluates at once by an mlp without ReLU, whose activations are
never 0; torch is faster with more."""

MAX_CACHE_BYTES = 1 << 25

ROOTS = -1
"""The part of a tree's random numbers that the noise at its root is drawn from."""

NO_BATCHES = np.empty(0, np.int64)


class Mcts(Search):
    """Searches from public positions; player: the source of the prior probabilities.

    rule: "dedieu_amar" is the rule above; "puct" multiplies its bonus by √Σ_b N(s, b), so that
        every action is visited again and again; "gumbel" is the rule of Danihelka et al. 2022, with
        the weights of mctx's qtransform_completed_by_mix_value.
    num_parallel: these simulations are kept apart by pending visits; a twentieth of the simulations
        costs little strength.
    discount, value_scale: of the value head, see Utility.
    Raises ValueError if player, game and settings cannot be combined.

    bytes_per_simulation: of a tree, without positions.
    """

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        settings: MctsConfig,
        discount: float = 1.0,
        value_scale: float = 1.0,
    ) -> None:
        _check(player, settings)
        if isinstance(player, Agent):
            player = Agent(game, player.policy, Stochastic(settings.temperature))
        self.game, self.player, self.settings = game, player, settings
        self.utility = Utility(game, settings.value, discount, value_scale)
        self.explores = settings.rule == "gumbel"
        has_chance = game.spec.hidden or game.spec.num_chance_inputs > 0
        has_noise = settings.dirichlet_fraction or (self.explores and settings.gumbel_scale)
        self.is_deterministic = settings.leaf == "value" and not (has_chance or has_noise)
        plies = settings.depth if settings.fixed_depth and settings.depth else 1
        self._max_nodes = 1 + settings.simulations * plies
        # Four floats per action, what else a node has, and its slots in the table of children.
        self.bytes_per_simulation = plies * (16 * game.spec.actions + 40 + 64)
        self._trees: BoardTrees | SampledTrees
        if self._is_compiled():
            agent = player if isinstance(player, Agent) else None
            board_game = cast("BoardGame", game)
            self._trees = BoardTrees(board_game, agent, settings, self.utility, self._max_nodes)
            return
        self._trees = SampledTrees(game, player, settings, self.utility, self._max_nodes)

    def _is_compiled(self) -> bool:
        """Whether a kernel knows the rules and the goal of the game, and how leaves are valued."""
        spec, player, settings = self.game.spec, self.player, self.settings
        is_random = type(player) is Random
        plays_at_random = is_random or settings.rollout_policy == "uniform"
        is_valued = settings.leaf == "value" or (plays_at_random and settings.rollout is None)
        goal = (spec.goal, spec.seats, self.utility.value)
        return (
            isinstance(self.game, BoardGame)
            and (is_random or isinstance(player, Agent))
            and is_valued
            and not settings.fixed_depth
            and goal in (("outcome", 2, "outcome"), ("score", 1, "score"))
        )

    @property
    def board_trees(self) -> BoardTrees | None:
        """The trees if kernels search in them; None if torch does."""
        return self._trees if isinstance(self._trees, BoardTrees) else None

    @torch.no_grad()
    def search(self, state: State, rng: Rng) -> SearchResult:
        """The result at live positions [T]."""
        nodes, rng = self._max_nodes, rng.rows(len(state))
        size = max(1, MAX_NODE_ACTIONS // (nodes * (self.game.spec.actions + NODE_OVERHEAD)))
        if len(state) <= size:
            return self._search(state, rng)
        starts = range(0, len(state), size)
        return SearchResult.cat(
            [self._search(state[n : n + size], rng[n : n + size]) for n in starts]
        )

    def _search(self, roots: State, rng: Rng) -> SearchResult:
        settings, trees = self.settings, len(roots)
        tree = self._trees.begin(roots, rng)
        if settings.dirichlet_fraction:
            total = settings.dirichlet_total
            tree.add_noise(trees, settings.dirichlet_fraction, total, rng.fold_in(ROOTS))
        phase_ends = [settings.simulations]
        if settings.rule == "gumbel":
            phase_ends = plan_roots(tree, self._trees.root_values(), settings, rng.fold_in(ROOTS))
        self._trees.simulate(batch_sizes(phase_ends, settings.num_parallel))
        result = tree.results(trees)
        if settings.rule == "gumbel":
            policy, action = tree.improved_policy(trees)
            result = replace(result, policy=policy, action=action)
        return result.to(roots.done.device)


def _check(player: Player, settings: MctsConfig) -> None:
    """Raises ValueError if player and settings cannot be combined."""
    if not isinstance(player, HasProbabilities):
        raise ValueError(
            f"search=mcts needs a player with probabilities; {type(player).__name__} has none"
        )
    policy = player.policy if isinstance(player, Agent) else None
    has_value = policy is not None and (policy.has_value or isinstance(policy, ValueFunction))
    if settings.leaf == "value" and not has_value:
        raise ValueError("search.leaf=value needs a policy with values; use rollout")
    if settings.fixed_depth and settings.depth is None:
        raise ValueError("search.fixed_depth=true needs search.depth=N")
    if settings.rule == "gumbel" and settings.dirichlet_fraction:
        raise ValueError(
            "search.rule=gumbel has its own noise, search.gumbel_scale; "
            "use search.dirichlet_fraction=0"
        )


def make_mcts(
    game: Game[Any],
    player: Player,
    *,
    discount: float = 1.0,
    value_scale: float = 1.0,
    **keys: Any,
) -> Mcts:
    """The search of a config; keys: of MctsConfig, without endgames."""
    settings = MctsConfig(name="mcts", solve_positions=0, **keys)
    return Mcts(game, player, settings, discount, value_scale)


class BoardTrees:
    """Searches of a BoardGame one after the other, whose arrays are kept: begin, then simulate.

    agent: None if all legal actions have the same prior, and random play values leaves.
    max_nodes: of one tree.
    """

    def __init__(
        self,
        game: BoardGame,
        agent: Agent | None,
        settings: MctsConfig,
        utility: Utility,
        max_nodes: int,
    ) -> None:
        self.game, self._settings, self._utility = game, settings, utility
        self.evaluator = LeafEvaluator(
            game, None if agent is None else agent.policy, settings, utility
        )
        self._max_nodes = max_nodes
        self._tree: SearchTree | None = None
        self._run: Simulations | None = None

    def begin(self, roots: State, rng: Rng) -> SearchTree:
        """Trees with expanded roots, at live positions [T], whose simulations end at the first new
        node. rng: of the chance of each tree. The tree is overwritten by the next search."""
        trees, settings = len(roots), self._settings
        run = self.prepare(trees)
        tree, nodes = self._tree, run.nodes
        assert tree is not None
        tree.arrays.sign[:trees] = 1 - 2 * roots.current_seat.numpy()
        nodes.positions[:trees] = cast("BoardState", roots).words.numpy()
        nodes.turn[:trees] = roots.turn.numpy()
        if self.game.spec.num_chance_inputs or settings.leaf != "value":
            nodes.rng[:trees, 0] = rng.rows(trees).keys
        self._run = run
        self._advance(run, NO_BATCHES, begin(run, self.game.rules))
        return tree

    def prepare(self, trees: int) -> Simulations:
        """What kernels take to search in so many trees, whose roots are not set yet."""
        run, tree = self._reserve(trees), self._tree
        assert tree is not None
        tree.begin(self._settings, self._utility.bounds)
        evaluator = self.evaluator.prepare(self._max_nodes * trees)
        return run._replace(selection=tree.selection, evaluator=evaluator)

    def root_values(self) -> Tensor:
        """Float32 [T] for seat 0: roots valued like leaves, before any simulation."""
        run = self._run
        assert run is not None
        if run.evaluator.rolls_out:
            value_by_play(run, self.game.rules, run.trees)
        return torch.from_numpy(run.batch.value[: run.trees].copy())

    def simulate(self, sizes: Iterable[int]) -> None:
        """Run batches of `sizes` simulations side by side in each tree."""
        assert self._tree is not None
        assert self._run is not None
        batches = np.array(list(sizes), np.int64)
        run = self._run._replace(selection=self._tree.selection)
        run.progress[BATCHES] = 0
        self._advance(run, batches, simulate(run, self.game.rules, batches))

    def _advance(self, run: Simulations, sizes: NDArray[np.int64], leaves: int) -> None:
        """Evaluate as many leaves, and go on. Raises NonFiniteError."""
        while leaves:
            if leaves < 0:
                check_finite(torch.from_numpy(run.batch.outputs[: run.progress[LEAVES], :-1]))
            self.evaluator.evaluate(run, leaves)
            leaves = simulate(run, self.game.rules, sizes)

    def _reserve(self, trees: int) -> Simulations:
        """What a search of so many trees needs. Each search sets selection and evaluator."""
        run, tree, spec, settings = self._run, self._tree, self.game.spec, self._settings
        if run is not None and run.trees == trees:
            return run
        size, depth = trees * self._max_nodes, settings.depth
        nodes = None if run is None else run.nodes
        if tree is None or nodes is None or not len(tree.sign) // 4 <= size <= len(tree.sign):
            bounds = self._utility.bounds
            self._tree = tree = SearchTree(trees, self._max_nodes, spec.actions, settings, bounds)
            nodes = Nodes(
                positions=np.zeros((size, len(self.game.rules.start)), np.int64),
                turn=np.zeros(size, np.int64),
                is_over=np.zeros(size, np.bool_),
                gain=np.zeros(size, np.float32),
                rng=np.zeros((trees, 1), np.uint64),
            )
        unset: Any = None
        return Simulations(
            tree=tree.arrays,
            selection=unset,
            nodes=nodes,
            batch=self.evaluator.new_batch(trees * settings.num_parallel),
            evaluator=unset,
            trees=trees,
            max_depth=math.inf if depth is None else float(depth),
            has_chance=spec.num_chance_inputs > 0,
            sign_factor=-1.0 if spec.seats == 2 else 1.0,
            progress=np.zeros(4, np.int64),
        )


class LeafEvaluator:
    """Evaluates leaves: by the cache, a kernel, or the policy itself.

    policy: None if all legal actions have the same prior, and random play values leaves. The cache
    is emptied when its weights have changed. network: the policy if a kernel writes its inputs,
    float32 [B, *input_shape]; otherwise None.
    """

    def __init__(
        self, game: BoardGame, policy: Policy | None, settings: MctsConfig, utility: Utility
    ) -> None:
        self.game, self.policy, self._settings, self._utility = game, policy, settings, utility
        base: type[Network] = Network
        self.input_shape, is_read = game.spec.observation, isinstance(policy, Network)
        if isinstance(policy, Embedding):
            base, self.input_shape = Embedding, (1, *game.spec.observation[1:])
            # A kernel writes the values of cells that it reads, if all of them are distinct.
            values = policy.open_value + 1 if policy.open_value else game.num_cell_values
            is_read = policy.num_cell_values == values
        # A class derived from these may make its inputs or scores in another way.
        kind: Any = type(policy)
        is_read = is_read and (kind.inputs, kind.scores) == (base.inputs, base.scores)
        self.network = cast(Network, policy) if is_read else None
        modules = () if policy is None else policy.modules()
        tables = (table for module in modules for table in (module._parameters, module._buffers))
        self._tables = [table for table in tables if table]
        self._cache: EvaluationCache | None = None
        self._compiled: Any = None
        self._versions: list[tuple[int, int]] = []

    def prepare(self, nodes: int) -> Evaluator:
        """The evaluator of a search with at most so many nodes, as kernels take it."""
        words, actions = len(self.game.rules.start), self.game.spec.actions
        # What changes with any weight.
        versions = [(tensor.data_ptr(), tensor._version) for tensor in self._tensors()]
        max_bits = (MAX_CACHE_BYTES // (actions * 4)).bit_length() - 1
        slots = 1 << min((2 * nodes).bit_length(), max_bits)
        cache = self._cache
        # With new weights the sizes are also new: a resumed run has to forget what this one would.
        if cache is None or len(cache.value) < slots or versions != self._versions:
            self._cache = cache = make_cache(slots, words, actions)
        if self._compiled is None or versions != self._versions:
            self._compiled = self._compile()
        self._versions = versions
        settings = self._settings
        rolls_out, has_points = settings.leaf != "value", self.game.spec.seats == 1
        return Evaluator(
            cache=cache,
            policy=self._compiled,
            max_rows=self._max_rows(),
            is_uniform=self.policy is None,
            rolls_out=rolls_out,
            temperature=settings.temperature,
            value_scale=self._utility.value_scale,
            discount=self._utility.discount if has_points and not rolls_out else 1.0,
            max_value=math.inf if has_points else 1.0,
            max_plies=self.game.spec.max_plies,
        )

    def evaluate(self, run: Simulations, leaves: int) -> None:
        """Let torch write the outputs of leaves."""
        batch = run.batch
        assert self.policy is not None
        if self.network is None:
            scores, value = self.policy.scores(self.game, self._leaf_states(run, leaves))
        else:
            inputs = torch.from_numpy(batch.inputs[:leaves]).view(-1, *self.input_shape)
            scores, value = self.network(inputs.to(next(self._tensors()).device))
        batch.outputs[:leaves, :-1] = scores.cpu().numpy()
        batch.outputs[:leaves, -1] = 0.0 if value is None else value.cpu().numpy()
        if isinstance(self.policy, ValueFunction) and self._settings.leaf == "value":
            # A position is worth what its best move is.
            legal = self.game.legal_action_mask(self._leaf_states(run, leaves))
            best = scores.masked_fill(~legal, -torch.inf).amax(1)
            batch.outputs[:leaves, -1] = best.cpu().numpy()

    def _leaf_states(self, run: Simulations, leaves: int) -> BoardState:
        node = run.batch.end[run.batch.leaf[:leaves]]
        return BoardState(
            done=torch.zeros(leaves, dtype=torch.bool),
            current_seat=torch.from_numpy(run.tree.sign[node] < 0).long(),
            turn=torch.from_numpy(run.nodes.turn[node]),
            score=torch.zeros(leaves, self.game.spec.seats),
            words=torch.from_numpy(run.nodes.positions[node]),
        )

    def new_batch(self, size: int) -> Batch:
        """For simulations side by side, with room for what a network reads."""
        floats, bools = ("value", "points"), ("is_new", "is_over")
        columns: dict[str, Any] = {name: np.zeros(size, np.int64) for name in Batch._fields}
        columns |= {name: np.zeros(size, np.float32) for name in floats}
        columns |= {name: np.zeros(size, np.bool_) for name in bools}
        num_inputs = 0 if self.network is None else math.prod(self.input_shape)
        columns["inputs"] = np.zeros((size, num_inputs), np.float32)
        columns["outputs"] = np.zeros((size, self.game.spec.actions + 1), np.float32)
        columns["positions"] = np.zeros((size, len(self.game.rules.start)), np.int64)
        return Batch(**columns)

    def _compile(self) -> Any:
        """The policy as a kernel takes it; without layers if torch has to compute them."""
        compiled = None if self.policy is None else self.policy.compiled(self.game)
        network = self.network
        if isinstance(compiled, CompiledNtuples) or network is None:
            return compiled if isinstance(compiled, CompiledNtuples) else NO_POLICY
        if compiled is not None and compiled.has_value:
            return compiled
        open_value = network.open_value if isinstance(network, Embedding) else PLANES
        return CompiledPolicy(NO_NETWORK, open_value, math.prod(self.input_shape), False)

    def _max_rows(self) -> int:
        """The most leaves that a kernel evaluates at once."""
        if self.policy is None or isinstance(self._compiled, CompiledNtuples):
            return sys.maxsize
        weights = self._compiled.network
        if not len(weights.widths):
            return 0
        is_fast = weights.lines is not None or weights.activation == RELU
        return sys.maxsize if is_fast else MAX_COMPILED_ROWS

    def _tensors(self) -> Iterator[Tensor]:
        tensors = (tensor for table in self._tables for tensor in table.values())
        return (tensor for tensor in tensors if tensor is not None)
