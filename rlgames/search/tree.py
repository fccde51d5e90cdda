"""The nodes of many search trees, as arrays on the CPU that kernels and torch share.

Letters in shapes: T trees, N nodes of all trees together, A actions, S simulations side by side.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlgames.config.options.search import MctsConfig
from rlgames.kernels import gumbel
from rlgames.kernels import tree_search as kernel
from rlgames.rng import Rng
from rlgames.search.search import SearchResult


class SearchTree:
    """T trees with a fixed capacity of nodes per tree, numbered together; roots are 0 to T - 1.

    arrays: as kernels take them; prior, sign, is_expanded and depth are tensors that share their
    memory. selection: how simulations choose.

    settings, bounds: see begin.
    """

    selection: kernel.Selection

    def __init__(
        self,
        trees: int,
        capacity: int,
        actions: int,
        settings: MctsConfig,
        bounds: tuple[float, float],
    ) -> None:
        max_nodes = trees * capacity
        self.num_nodes, self.num_actions = trees, actions
        # A hash table from edges with outcomes to nodes. Half of the slots stay empty, or more.
        slots = 1 << (2 * max_nodes - 1).bit_length()
        self.arrays = kernel.TreeArrays(
            prior=np.zeros((max_nodes, actions), np.float32),
            visit_counts=np.zeros((max_nodes, actions), np.float32),
            value_sums=np.zeros((max_nodes, actions), np.float32),
            pending=np.zeros((max_nodes, actions), np.float32),
            sign=np.ones(max_nodes, np.float32),
            parent_edge=np.full(max_nodes, -1, np.int64),
            is_expanded=np.zeros(max_nodes, np.bool_),
            depth=np.zeros(max_nodes, np.int64),
            keys=np.zeros(slots, np.uint64),
            children=np.full(slots, -1, np.int64),
            root=np.arange(max_nodes),
            bounds=np.zeros((trees, 2), np.float32),
            scratch=np.zeros((2, actions), np.float32),
        )
        self.prior, self.sign = map(torch.from_numpy, (self.arrays.prior, self.arrays.sign))
        self.is_expanded = torch.from_numpy(self.arrays.is_expanded)
        self.depth = torch.from_numpy(self.arrays.depth)
        self.begin(settings, bounds)

    def begin(self, settings: MctsConfig, bounds: tuple[float, float]) -> None:
        """Forget the values and the plan of the search before. bounds: of all values for seat 0; if
        the lower one is above the other, the bounds of the values so far are used."""
        low, high = (0.0, settings.q_scale) if settings.q_scale else bounds
        self.arrays.bounds[:] = low, high
        self.selection = kernel.Selection(
            kernel.RULES[settings.rule], settings.c_puct, gumbel.NO_PLAN, low > high
        )

    def add_noise(self, trees: int, fraction: float, total: float, rng: Rng) -> None:
        """Mix the priors of the first T roots with noise, for exploration in training.

        fraction: the share of the noise. total: the sum of the parameters of its symmetric
        Dirichlet distribution (Silver et al. 2018).
        """
        prior = self.prior[:trees]
        parameter = torch.empty_like(prior)
        kernel.noise_parameters(prior.numpy(), total, parameter.numpy())
        gamma = rng.gamma(parameter).cpu()
        kernel.mix_noise(prior.numpy(), fraction, gamma.numpy())

    def choose(self, node: Tensor) -> Tensor:
        """Let each simulation choose an action at its node, both int64 [S], in the order of rows.

        The j-th of several simulations at one node chooses as if those before it had visited their
        actions already, each with the mean value of the node where the action's own mean is
        higher. So they spread, and a lucky value in few visits does not attract all of them.
        """
        edge = torch.empty_like(node)
        kernel.descend(self.arrays, self.selection, node.numpy(), False, edge.numpy())
        return edge % self.num_actions

    def find_or_add_child(
        self, node: Tensor, action: Tensor, outcome: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Int64 [S], the node that an action leads to with this outcome; bool [S], if it is new.

        Equal rows get the same new node, and only the first of them counts as new.
        """
        child, is_new = torch.empty_like(node), torch.empty_like(node, dtype=torch.bool)
        edge = (node * self.num_actions + action).numpy()
        self.num_nodes = kernel.find_or_add_children(
            self.arrays, edge, outcome.numpy(), self.num_nodes, child.numpy(), is_new.numpy()
        )
        return child, is_new

    def back_up(self, node: Tensor, value: Tensor) -> None:
        """Add a visit with its value, float32 [S] for seat 0, from the roots to nodes [S]."""
        kernel.back_up(self.arrays, self.selection, node.numpy(), value.numpy())

    def results(self, trees: int) -> SearchResult:
        """What was found at the first T nodes."""
        by_action = np.empty((3, trees, self.num_actions), np.float32)
        columns = (*by_action, np.empty(trees, np.int64), np.empty(trees, np.float32))
        kernel.root_results(self.arrays, *columns)
        return SearchResult(*map(torch.from_numpy, columns))

    def improved_policy(self, trees: int) -> tuple[Tensor, Tensor]:
        """What rule=gumbel found at the roots: the improved policy, float32 [T, A], softmax(logits
        + sigma of the completed Q), and the actions to take, int64 [T]."""
        logits, action = torch.empty(trees, self.num_actions), torch.empty(trees, dtype=torch.int64)
        gumbel.improve_policy(self.selection.plan, self.arrays, logits.numpy(), action.numpy())
        return logits.softmax(1), action
