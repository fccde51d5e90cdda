"""Tree search whose moves are made in torch: for hidden information, policy rollouts, a fixed
depth, and games that are not board games.

Letters in shapes: T trees, W simulations side by side in each tree, S = T · W, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from rlgames.config.options.search import MctsConfig
from rlgames.games.capabilities import Chance, HiddenInformation, find
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Player, Random
from rlgames.rng import Rng
from rlgames.search.search import in_row_order, play_on
from rlgames.search.tree import SearchTree
from rlgames.search.utility import Utility

WORLD, LEAF = -1, -2
"""The parts of a simulation's random numbers for what is hidden, and for play from its leaf; the
others are of its plies."""


class SampledTrees:
    """Searches one after the other: begin, then simulate.

    Chance and hidden information are sampled: each simulation has its own world, sampled from all
    that agree with the visible history. A node is keyed by what the seat to move has seen since the
    root: actions and their outcomes. In games with hidden information the policy plays the other
    seat, because the choices of a tree that does not know what that seat knows would be wrong.

    player: has probabilities. max_nodes: of one tree.
    """

    tree: SearchTree

    def __init__(
        self,
        game: Game[Any],
        player: Any,
        settings: MctsConfig,
        utility: Utility,
        max_nodes: int,
    ) -> None:
        self.game, self.player, self.settings, self.utility = game, player, settings, utility
        plays_by_policy = settings.rollout_policy == "policy"
        self._rollout_player: Player = player if plays_by_policy else Random(game)
        self._max_nodes = max_nodes
        self._max_depth = math.inf if settings.depth is None else settings.depth
        self._max_rollout = math.inf if settings.rollout is None else settings.rollout
        self._sums_gains = settings.leaf == "value" and utility.value == "score"
        self._samples_opponent = game.spec.hidden and game.spec.seats == 2
        # A game with one of them declares it in its spec.
        self._hidden = find(game, HiddenInformation)
        self._outcomes = self._hidden or find(game, Chance)

    def begin(self, roots: State, rng: Rng) -> SearchTree:
        """Trees with expanded roots, at live positions [T]."""
        trees, actions, bounds = len(roots), self.game.spec.actions, self.utility.bounds
        self.tree = SearchTree(trees, self._max_nodes, actions, self.settings, bounds)
        self._roots, self._rng, self._num_batches = roots, rng.rows(trees), 0
        self._root_value = self._expand(torch.arange(trees), roots)
        return self.tree

    def root_values(self) -> Tensor:
        """Float32 [T] for seat 0: roots valued like leaves, by the value head, or by one more
        rollout."""
        start, value = self._roots, self._root_value
        if self.settings.leaf != "value":
            start = self._with_hidden_truth(start, self._rng)
        return self._evaluate(start, start, value, torch.zeros_like(value), self._rng)

    def simulate(self, sizes: Iterable[int]) -> None:
        """Run batches of `sizes` simulations side by side in each tree."""
        for num_parallel in sizes:
            self.simulate_batch(num_parallel)

    def simulate_batch(self, num_parallel: int) -> Tensor:
        """Run num_parallel simulations side by side in each tree; float32 [S], values for seat 0.

        A simulation ends at the node that it adds. Of several at the same new node only the first
        ends there and the others continue, as they would one after the other.
        """
        game, tree, device = self.game, self.tree, self._roots.done.device
        simulation = torch.arange(len(self._roots) * num_parallel)
        node = simulation // num_parallel
        start = self._roots[node.to(device)]
        self._num_batches += 1
        of_batch = self._rng.fold_in(self._num_batches)
        every = rng = of_batch[node].fold_in(simulation % num_parallel)
        state, ply = self._with_hidden_truth(start, every), 0
        leaf_value = torch.zeros(len(simulation), device=device)
        gains, end = torch.zeros_like(leaf_value), torch.empty_like(node)
        finished = []
        while True:
            now, ply = rng.fold_in(ply), ply + 1
            action = tree.choose(node).to(device)
            if self._samples_opponent:
                own_seat = start.current_seat[simulation.to(device)]
                other = (state.current_seat != own_seat).nonzero()[:, 0]
                action[other] = self.player.choose(game.public(state[other]), now[other])
            before, state = state, game.step(state, action, now)
            if self._sums_gains:
                row = simulation.to(device)
                gains[row] += self.utility.discounted_gain(start.turn[row], before, state)
            outcome = torch.zeros_like(action)
            if self._outcomes is not None:
                outcome = self._outcomes.outcome(before, action, state)
            node, is_new = tree.find_or_add_child(node, action.cpu(), outcome.cpu())
            at_limit, is_done = tree.depth[node] >= self._max_depth, state.done.cpu()
            new = (is_new | at_limit) & ~is_done
            if new.any():
                value = self._expand(node[new], state[new.to(device)])
                leaf_value[simulation[new].to(device)] = value
            ended = is_done | at_limit | (is_new & (not self.settings.fixed_depth))
            end[simulation[ended]] = node[ended]
            finished.append((simulation[ended], state[ended.to(device)]))
            if ended.all():
                break
            simulation, node, state = simulation[~ended], node[~ended], state[~ended.to(device)]
            rng = rng[~ended]
        value = self._evaluate(start, in_row_order(finished), leaf_value, gains, every)
        tree.back_up(end, value)
        return value

    def _with_hidden_truth(self, state: State, rng: Rng) -> State:
        """Positions with hidden parts drawn from all that agree with the observations."""
        hidden = self._hidden
        return state if hidden is None else hidden.resample(state, rng.fold_in(WORLD))

    def _expand(self, node: Tensor, state: State) -> Tensor:
        """Store the priors of nodes; the value head's estimate for the seat to move, or 0."""
        tree, public = self.tree, self.game.public(state)
        legal, value = self.game.legal_action_mask(state), None
        if isinstance(self.player, Agent):
            scores, value = self.player.policy.scores(self.game, public)
            prior = self.player.sampling.probabilities(scores, legal, 0.0)
        else:
            prior = self.player.probabilities(public)
        tree.prior[node] = prior.float().masked_fill(~legal, -torch.inf).cpu()
        tree.sign[node] = (1.0 - 2.0 * state.current_seat).cpu()
        tree.is_expanded[node] = tree.depth[node] < self._max_depth
        if value is None:
            return torch.zeros(len(node), device=state.done.device)
        return value * self.utility.value_scale

    def _evaluate(
        self, start: State, leaf: State, leaf_value: Tensor, gains: Tensor, rng: Rng
    ) -> Tensor:
        """Float32 [S], for seat 0: the values of lines from start to leaf; rng: of the lines."""
        if self.settings.leaf == "value":
            return self.utility.bootstrapped(start, leaf, leaf_value, gains).cpu()
        end = play_on(self.game, self._rollout_player, leaf, self._max_rollout, rng.fold_in(LEAF))
        return self.utility.realized(start, end).cpu()
