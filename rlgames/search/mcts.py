"""Monte Carlo tree search guided by a policy, in many trees side by side.

Dedieu and Amar search 2048 as follows: descend by argmax_a Q(s, a) + c·P(s, a) / (1 + N(s, a)),
with the policy's probabilities P and sampled tiles; play on from the leaf with the policy; make
the move with the most visits. Here the same search plays every game, also by the rules of AlphaZero
and of Gumbel AlphaZero.

Letters in shapes: T trees, W simulations side by side in each tree, S = T · W, A actions.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.rng import cpu_generator
from rlgames.games.capabilities import Chance, HiddenInformation, find, find_compiled_rules
from rlgames.games.compiled import CompiledRules
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, HasProbabilities, Player, Random
from rlgames.sampling import Stochastic
from rlgames.search.compiled import CompiledSearch, LeafEvaluator
from rlgames.search.exploration import add_dirichlet_noise
from rlgames.search.gumbel import batch_sizes, plan_roots
from rlgames.search.playout import in_row_order, play_on
from rlgames.search.search import Search, SearchResult
from rlgames.search.settings import MctsSettings
from rlgames.search.tree import SearchTree
from rlgames.search.utility import Utility

MAX_NODE_ACTIONS = 1 << 24
"""The limit of nodes × actions in memory; larger batches are searched in parts."""

NODE_OVERHEAD = 8
"""The memory of a node besides its actions, in units of actions."""


class Mcts(Search):
    """Searches from public positions; player: the source of the prior probabilities.

    Chance and hidden information are sampled: each simulation has its own world, sampled from all
    that agree with the visible history. A node is keyed by what the seat to move has seen since the
    root: actions and their outcomes. In games with hidden information the policy plays the other
    seat, because the choices of a tree that does not know what that seat knows would be wrong.
    Raises ValueError if player, game and settings do not fit together.

    bytes_per_simulation: of a tree, without positions.
    """

    def __init__(self, game: Game[Any], player: Player, settings: MctsSettings) -> None:
        if not isinstance(player, HasProbabilities):
            raise ValueError(
                f"search=mcts needs a player with probabilities; {type(player).__name__} has none"
            )
        has_value = isinstance(player, Agent) and player.policy.has_value
        if settings.leaf == "value" and not has_value:
            raise ValueError("search.leaf=value needs a policy with a value head; use rollout")
        if settings.fixed_depth and settings.depth is None:
            raise ValueError("search.fixed_depth=true needs search.depth=N")
        if settings.rule == "gumbel" and settings.dirichlet_fraction:
            raise ValueError(
                "search.rule=gumbel has its own noise, search.gumbel_scale; "
                "use search.dirichlet_fraction=0"
            )
        if isinstance(player, Agent):
            player = Agent(game, player.policy, Stochastic(settings.temperature))
        self.game, self.player, self.settings = game, player, settings
        self._probabilities = player.probabilities
        self.utility = Utility(game, settings.value, settings.discount)
        self.explores = settings.rule == "gumbel"
        has_chance = game.spec.hidden or game.spec.num_chance_inputs > 0
        has_noise = settings.dirichlet_fraction or (self.explores and settings.gumbel_scale)
        self.is_deterministic = settings.leaf == "value" and not (has_chance or has_noise)
        self._rollout_player = player if settings.rollout_policy == "policy" else Random(game)
        self._max_depth = math.inf if settings.depth is None else settings.depth
        self._max_rollout = math.inf if settings.rollout is None else settings.rollout
        plies = settings.depth if settings.fixed_depth and settings.depth else 1
        self._max_nodes = 1 + settings.simulations * plies
        # Four floats per action, what else a node has, and its slots in the table of children.
        self.bytes_per_simulation = plies * (16 * game.spec.actions + 32 + 64)
        self._sums_gains = settings.leaf == "value" and self.utility.value == "score"
        self._samples_opponent = game.spec.hidden and game.spec.seats == 2
        self._keeps_positions = not has_chance and not self._sums_gains
        # A game with one of them declares it in its spec.
        self._hidden = find(game, HiddenInformation)
        self._outcomes = self._hidden or find(game, Chance)
        self._compiled: CompiledSearch | None = None
        compiled = find_compiled_rules(game)
        if compiled is not None and self._is_compiled(compiled):
            agent = player if isinstance(player, Agent) else None
            evaluator = LeafEvaluator(game, compiled, agent, settings)
            self._compiled = CompiledSearch(evaluator, settings, self._max_nodes)
        if settings.threads > 1 and (self._compiled is None or not _is_on_cpu(player)):
            raise ValueError(
                f"search.threads={settings.threads} needs a game with compiled rules on the CPU, "
                "search.fixed_depth=false, and search.leaf=value or "
                "search.rollout_policy=uniform to the end; use search.threads=1"
            )

    def _is_compiled(self, compiled: CompiledRules[Any]) -> bool:
        """Whether a kernel knows the goal and the chance of the game, and how leaves are valued."""
        spec, value, settings = self.game.spec, self.utility.value, self.settings
        plays_at_random = type(self._rollout_player) is Random and settings.rollout is None
        if settings.fixed_depth or not (settings.leaf == "value" or plays_at_random):
            return False
        player: Player = self.player
        if not isinstance(player, Agent) and type(player) is not Random:
            return False
        if spec.hidden or (spec.num_chance_inputs > 0 and not compiled.has_chance):
            return False
        return (spec.goal, spec.seats, value) in (("outcome", 2, "outcome"), ("score", 1, "score"))

    @torch.no_grad()
    def search(self, state: State, rng: torch.Generator) -> SearchResult:
        """The result at live positions [T]."""
        nodes = self._max_nodes
        size = max(1, MAX_NODE_ACTIONS // (nodes * (self.game.spec.actions + NODE_OVERHEAD)))
        if len(state) <= size:
            return self._search(state, rng)
        parts = [self._search(state[n : n + size], rng) for n in range(0, len(state), size)]
        return SearchResult.cat(parts)

    def _search(self, roots: State, rng: torch.Generator) -> SearchResult:
        settings, trees, device = self.settings, len(roots), roots.done.device
        low_high = (0.0, settings.q_scale) if settings.q_scale else self.utility.bounds
        bounds = torch.from_numpy(np.full((trees, 2), low_high, np.float32))
        compiled = self._compiled if device.type == "cpu" else None
        if compiled is not None and not compiled.fits(roots):
            compiled = None
        if compiled is None:
            tree, root_value = self.new_tree(roots)
        else:
            tree = compiled.begin(roots, bounds, rng)
        if settings.dirichlet_fraction:
            fraction, total = settings.dirichlet_fraction, settings.dirichlet_total
            add_dirichlet_noise(tree.prior[:trees], fraction, total, rng)
        phase_ends = [settings.simulations]
        if settings.rule == "gumbel":
            value = compiled.root_value() if compiled else self._value(roots, root_value, rng)
            phase_ends = plan_roots(tree, value, settings, rng)
        sizes = list(batch_sizes(phase_ends, settings.num_parallel))
        if compiled is not None:
            compiled.simulate(sizes)
            sizes = []
        for num_parallel in sizes:
            value = self.simulate_batch(tree, roots, num_parallel, bounds, rng)
            if settings.q_scale or self.utility.value == "outcome":
                continue
            value = value.view(trees, num_parallel)
            low, high = bounds[:, 0].minimum(value.amin(1)), bounds[:, 1].maximum(value.amax(1))
            bounds = torch.stack([low, high], 1)
        result = tree.root_results(bounds)
        if settings.rule == "gumbel":
            policy, action = tree.improved_policy()
            result = replace(result, policy=policy, action=action)
        return result.to(device)

    def new_tree(self, roots: State) -> tuple[SearchTree, Tensor]:
        """Trees with expanded roots, at live positions [T]; float32 [T], the value head's estimates
        of these for the seats to move, or 0."""
        stored = roots if self._keeps_positions else None
        tree = SearchTree(len(roots), self._max_nodes, self.game.spec.actions, stored)
        return tree, self._expand(tree, torch.arange(len(roots)), roots)

    def _value(self, roots: State, root_value: Tensor, rng: torch.Generator) -> Tensor:
        """Float32 [T] for seat 0: roots valued like leaves, by the value head, or by one more
        rollout."""
        is_sampled = self.game.spec.hidden and self.settings.leaf == "rollout"
        start = self._with_hidden_truth(roots, rng) if is_sampled else roots
        return self._evaluate(start, start, root_value, torch.zeros_like(root_value), rng).cpu()

    def simulate_batch(
        self,
        tree: SearchTree,
        roots: State,
        num_parallel: int,
        bounds: Tensor,
        rng: torch.Generator,
    ) -> Tensor:
        """Run num_parallel simulations side by side in each tree; float32 [S], values for seat 0.

        A simulation ends at the node that it adds. Of several at the same new node only the first
        ends there and the others continue, as they would one after the other.
        """
        game, settings, device = self.game, self.settings, roots.done.device
        simulation = torch.arange(len(roots) * num_parallel)
        root = node = simulation // num_parallel
        start = roots if num_parallel == 1 else roots[root.to(device)]
        state = self._with_hidden_truth(start, rng)
        leaf_value = torch.zeros(len(simulation), device=device)
        gains, end = torch.zeros_like(leaf_value), torch.empty_like(node)
        finished = []
        while True:
            low_high = bounds[root[simulation]]
            node, choice = tree.descend(node, low_high, settings.c_puct, settings.rule)
            action = choice.to(device)
            state = state if tree.positions is None else tree.positions[node.to(device)]
            if self._samples_opponent:
                own_seat = start.current_seat[simulation.to(device)]
                self._sample_opponents(state, own_seat, action, rng)
            before, state = state, game.step(state, action, rng)
            if self._sums_gains:
                row = simulation.to(device)
                gains[row] += self.utility.discounted_gain(start.turn[row], before, state)
            outcome = self._outcome(before, action, state)
            node, is_new = tree.find_or_add_child(node, action.cpu(), outcome.cpu())
            at_limit, is_done = tree.depth[node] >= self._max_depth, state.done.cpu()
            new = (is_new | at_limit) & ~is_done
            if new.any():
                value = self._expand(tree, node[new], state[new.to(device)])
                leaf_value[simulation[new].to(device)] = value
            ended = is_done | at_limit | (is_new & (not settings.fixed_depth))
            end[simulation[ended]] = node[ended]
            finished.append((simulation[ended], state[ended.to(device)]))
            if ended.all():
                break
            simulation, node, state = simulation[~ended], node[~ended], state[~ended.to(device)]
        value = self._evaluate(start, in_row_order(finished), leaf_value, gains, rng)
        tree.back_up(end, value.cpu())
        return value.cpu()

    def _with_hidden_truth(self, state: State, rng: torch.Generator) -> State:
        """Positions with hidden parts drawn from all that agree with the observations."""
        hidden = self._hidden
        return state if hidden is None else hidden.resample(state, cpu_generator(rng))

    def _outcome(self, before: State, action: Tensor, after: State) -> Tensor:
        """Int64 [S]: what moves made visible; an edge of a tree."""
        outcomes = self._outcomes
        return (
            torch.zeros_like(action)
            if outcomes is None
            else outcomes.outcome(before, action, after)
        )

    def _sample_opponents(
        self, state: State, own_seat: Tensor, action: Tensor, rng: torch.Generator
    ) -> None:
        """Let the policy choose the actions of the other seat, instead of the tree."""
        other = (state.current_seat != own_seat).nonzero()[:, 0]
        action[other] = self.player.choose(self.game.public(state[other]), rng)

    def _expand(self, tree: SearchTree, node: Tensor, state: State) -> Tensor:
        """Store the priors of nodes; the value head's estimate for the seat to move, or 0."""
        public = self.game.public(state)
        legal, value = self.game.legal_action_mask(state), None
        if isinstance(self.player, Agent):
            scores, value = self.player.policy.scores(self.game, public)
            prior = self.player.sampling.probabilities(scores, legal, 0.0)
        else:
            prior = self._probabilities(public)
        tree.prior[node] = prior.float().masked_fill(~legal, -torch.inf).cpu()
        tree.sign[node] = (1.0 - 2.0 * state.current_seat).cpu()
        tree.is_expanded[node] = tree.depth[node] < self._max_depth
        if tree.positions is not None:
            tree.positions.overwrite(node.to(state.done.device), state)
        if value is None:
            return torch.zeros(len(node), device=state.done.device)
        return value * self.settings.value_scale

    def _evaluate(
        self, start: State, leaf: State, leaf_value: Tensor, gains: Tensor, rng: torch.Generator
    ) -> Tensor:
        """Float32 [S], for seat 0: the values of lines from start to leaf."""
        if self.settings.leaf == "value":
            return self.utility.bootstrapped(start, leaf, leaf_value, gains)
        return self.utility.realized(
            start, play_on(self.game, self._rollout_player, leaf, self._max_rollout, rng)
        )


def _is_on_cpu(player: Player) -> bool:
    """Whether it has no policy elsewhere."""
    tensors = player.policy.state_dict().values() if isinstance(player, Agent) else ()
    return all(tensor.device.type == "cpu" for tensor in tensors)


def make_mcts(game: Game[Any], player: Player, **keys: Any) -> Mcts:
    """The search of a config; keys: the fields of MctsSettings."""
    return Mcts(game, player, MctsSettings(**keys))
