"""The nodes of many search trees, as arrays on the CPU that kernels and torch share.

Letters in shapes: T trees, N nodes of all trees together, A actions, S simulations side by side.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.search.search import SearchResult


class SearchTree:
    """T trees with a fixed capacity of nodes per tree, numbered together; roots are 0 to T - 1.

    prior: float32 [N, A], the policy's probabilities, minus infinity for illegal actions.
    visit_counts: float32 [N, A], how many simulations took each action. value_sums: float32
    [N, A], the sum of their values for seat 0. sign: float32 [N], 1 where seat 0 is to move,
    otherwise -1. depth: int64 [N], plies since the root. is_expanded: bool [N], it has priors, and
    no limit ends simulations here.
    roots: the positions of the roots in a game without chance and hidden information; positions
    then has room for all nodes' positions, which never change. Otherwise it is None. plan: what
    rule=gumbel needs, see search/gumbel.py. arrays: the same and more, as kernels take them.
    """

    def __init__(self, trees: int, capacity: int, actions: int, roots: State | None = None) -> None:
        from rlgames.kernels import gumbel, tree_search

        max_nodes = trees * capacity
        self.num_nodes, self.num_actions = trees, actions
        self.prior = torch.empty(max_nodes, actions)
        self.visit_counts = torch.zeros(max_nodes, actions)
        self.value_sums = torch.zeros(max_nodes, actions)
        self.sign = torch.ones(max_nodes)
        self.depth = torch.zeros(max_nodes, dtype=torch.int64)
        self.is_expanded = torch.zeros(max_nodes, dtype=torch.bool)
        keys, children = make_child_table(max_nodes)
        self.arrays = tree_search.TreeArrays(
            prior=self.prior.numpy(),
            visit_counts=self.visit_counts.numpy(),
            value_sums=self.value_sums.numpy(),
            pending=np.zeros((max_nodes, actions), np.float32),
            sign=self.sign.numpy(),
            parent_edge=np.full(max_nodes, -1, np.int64),
            is_expanded=self.is_expanded.numpy(),
            depth=self.depth.numpy(),
            keys=keys.numpy(),
            children=children.numpy(),
            scratch=np.empty((2, actions), np.float32),
        )
        self.plan = gumbel.GumbelPlan(
            np.empty(0, np.float32),
            np.empty((0, actions), np.float32),
            np.empty((0, 0), np.int64),
            np.empty(0, np.int64),
            0.0,
            0.0,
        )
        self.positions: State | None = None
        if roots is not None:
            device = roots.done.device
            self.positions = roots[torch.zeros(max_nodes, dtype=torch.int64, device=device)]

    def improved_policy(self) -> tuple[Tensor, Tensor]:
        """What rule=gumbel found at the roots: the improved policy, float32 [T, A], softmax(logits
        + sigma of the completed Q), and the actions to take, int64 [T]."""
        from rlgames.kernels import gumbel

        trees = len(self.plan.root_scores)
        logits, action = torch.empty(trees, self.num_actions), torch.empty(trees, dtype=torch.int64)
        gumbel.improve_policy(self.plan, self.arrays, logits.numpy(), action.numpy())
        return logits.softmax(1), action

    def descend(
        self, node: Tensor, bounds: Tensor, c_puct: float, rule: str
    ) -> tuple[Tensor, Tensor]:
        """Let each simulation choose actions from its node, int64 [S], on, in the order of rows:
        one action, or where trees keep positions, all that lead to expanded children and one more.

        bounds: float32 [S, 2], the lowest and the highest value for seat 0. Returns two int64 [S]:
        the nodes where the last actions were chosen, and these.

        The j-th of several simulations at one node chooses as if those before it had visited their
        actions already, each with the mean value of the node where the action's own mean is
        higher. So they spread, and a lucky value in few visits does not attract all of them.
        """
        from rlgames.kernels import tree_search

        edge = torch.empty_like(node)
        tree_search.descend(
            self.arrays,
            node.numpy(),
            bounds.numpy(),
            c_puct,
            tree_search.RULES[rule],
            self.plan,
            self.positions is not None,
            edge.numpy(),
        )
        return edge // self.num_actions, edge % self.num_actions

    def find_or_add_child(
        self, node: Tensor, action: Tensor, outcome: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Int64 [S], the node that an action leads to with this outcome; bool [S], if it is new.

        Equal rows get the same new node, and only the first of them counts as new.
        """
        from rlgames.kernels import tree_search

        child, is_new = torch.empty_like(node), torch.empty_like(node, dtype=torch.bool)
        self.num_nodes = tree_search.find_or_add_children(
            self.arrays,
            (node * self.num_actions + action).numpy(),
            outcome.numpy(),
            self.num_nodes,
            child.numpy(),
            is_new.numpy(),
        )
        return child, is_new

    def back_up(self, node: Tensor, value: Tensor) -> None:
        """Add a visit with its value, float32 [S] for seat 0, from the roots to nodes [S]."""
        from rlgames.kernels import gumbel, tree_search

        if len(self.plan.raw_values):
            gumbel.keep_first_values(
                self.plan.raw_values,
                self.arrays.parent_edge,
                self.num_actions,
                node.numpy(),
                value.numpy(),
            )
        tree_search.back_up(self.arrays, node.numpy(), value.numpy())

    def root_results(self, bounds: Tensor) -> SearchResult:
        """What was found at the first T nodes. bounds: float32 [T, 2], as in descend."""
        from rlgames.kernels import tree_search

        trees = len(bounds)
        by_action = np.empty((3, trees, self.num_actions), np.float32)
        columns = (*by_action, np.empty(trees, np.int64), np.empty(trees, np.float32))
        tree_search.root_results(self.arrays, bounds.numpy(), *columns)
        return SearchResult(*map(torch.from_numpy, columns))


def make_child_table(max_nodes: int) -> tuple[Tensor, Tensor]:
    """An empty hash table from edges with outcomes to nodes: keys, uint64 [slots], and children,
    int64 [slots]."""
    # Open addressing. At least half of the slots stay empty, which keeps the probing short.
    slots = 1 << (2 * max_nodes - 1).bit_length()
    return torch.zeros(slots, dtype=torch.uint64), torch.full((slots,), -1, dtype=torch.int64)
