"""Tree search in kernels does what the rule says, one simulation after the other."""

import math

import numpy as np
import pytest
import torch
from helpers import check_uncompiled

from rlgames.config.typed import make_option
from rlgames.search.tree import SearchTree


class Node:
    def __init__(self, prior, sign):
        self.prior, self.sign, self.children = prior, sign, {}
        self.visits, self.sums = [0] * len(prior), [0.0] * len(prior)

    def q_values(self, low, high):
        def normalized(value):
            q = (value - low) / (high - low)
            return q if self.sign > 0 else 1 - q

        mean = normalized(sum(self.sums) / max(sum(self.visits), 1))
        return [
            normalized(total / count) if count else mean
            for total, count in zip(self.sums, self.visits, strict=True)
        ]

    def best_action(self, low, high, c_puct, is_puct, pending):
        q, total = self.q_values(low, high), sum(self.visits)
        mean = sum(n * value for n, value in zip(self.visits, q, strict=True)) / max(total, 1)
        weight = c_puct * (math.sqrt(max(total, 1)) if is_puct else 1)

        def priority(action):
            count = self.visits[action] + pending[action]
            lowered = max(q[action] - mean, 0) * pending[action] / max(count, 1)
            return q[action] - lowered + weight * self.prior[action] / (1 + count)

        return max(range(len(q)), key=priority)


def grown(seed, actions=4, rounds=60, parallel=3, rule="puct"):
    """Two trees grown by random values, by the kernels and as objects, which choose alike."""
    generator = np.random.default_rng(seed)

    def priors():
        prior = generator.dirichlet(np.ones(actions))
        prior[generator.integers(actions)] = -math.inf  # an illegal action
        return prior

    roots = [Node(priors(), 1), Node(priors(), -1)]
    settings = make_option("search", "mcts", rule=rule, c_puct=1.5)
    tree = SearchTree(2, rounds * parallel + 1, actions, settings, (-1.0, 1.0))
    nodes = dict(enumerate(roots))
    for number, root in enumerate(roots):
        tree.prior[number], tree.sign[number] = torch.tensor(root.prior), root.sign
    for _ in range(rounds):
        start = torch.arange(2).repeat_interleave(parallel)
        end, live = start.clone(), torch.arange(len(start))
        while len(live):
            node = start[live]
            action = tree.choose(node)
            pending = {int(each): [0] * actions for each in node}
            for each, chosen in zip(node.tolist(), action.tolist(), strict=True):
                expected = nodes[each].best_action(-1, 1, 1.5, rule == "puct", pending[each])
                assert chosen == expected
                pending[each][chosen] += 1
            outcome = torch.from_numpy(generator.integers(0, 2, len(live)))
            child, is_new = tree.find_or_add_child(node, action, outcome)
            for row in range(len(live)):
                parent, edge = nodes[int(node[row])], (int(action[row]), int(outcome[row]))
                assert bool(is_new[row]) == (edge not in parent.children)
                if is_new[row]:
                    fresh = nodes[int(child[row])] = Node(priors(), -parent.sign)
                    parent.children[edge] = int(child[row])
                    tree.prior[child[row]] = torch.tensor(fresh.prior)
                    tree.sign[child[row]] = fresh.sign
                assert parent.children[edge] == int(child[row])
                assert tree.depth[child[row]] == tree.depth[node[row]] + 1
            end[live] = start[live] = child
            live = live[~is_new]
        value = torch.from_numpy(generator.uniform(-1, 1, len(end))).float()
        tree.back_up(end, value)
        for leaf, gain in zip(end.tolist(), value.tolist(), strict=True):
            while leaf > 1:
                leaf, action = next(
                    (above, edge[0])
                    for above, node in nodes.items()
                    for edge, below in node.children.items()
                    if below == leaf
                )
                nodes[leaf].visits[action] += 1
                nodes[leaf].sums[action] += gain
    return tree, nodes


@pytest.mark.parametrize("rule", ["puct", "dedieu_amar"])
def test_trees_grow_like_plain_objects(rule):
    tree, nodes = grown(1, rule=rule)
    assert len(nodes) == tree.num_nodes > 100
    found = tree.results(len(nodes))
    assert found.visits.tolist() == tree.arrays.visit_counts[: len(nodes)].tolist()
    for number, node in nodes.items():
        assert tree.arrays.visit_counts[number].tolist() == node.visits
        assert tree.arrays.value_sums[number].tolist() == pytest.approx(node.sums, abs=1e-4)
        counts, means = node.visits, node.q_values(-1, 1)
        expected = [min(mean, 0.999) * (n > 0) for n, mean in zip(counts, means, strict=True)]
        assert found.q[number].tolist() == pytest.approx(expected, abs=1e-4)
        if total := sum(counts):
            mean = node.sign * sum(node.sums) / total
            assert found.value[number].item() == pytest.approx(mean, abs=1e-4)
            assert found.policy[number].tolist() == pytest.approx([n / total for n in counts])
            assert found.action[number] == max(
                range(tree.num_actions),
                key=[n + mean for n, mean in zip(counts, expected, strict=True)].__getitem__,
            )


def test_trees_grow_alike_without_compilation():
    check_uncompiled(
        "from test_tree_search import grown\n"
        "tree, _ = grown(2, rounds=10)\n"
        "print(tree.arrays.visit_counts[: tree.num_nodes].tolist())"
    )
