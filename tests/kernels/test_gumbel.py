"""Kernels of rule=gumbel against plain formulas of the paper, equation by equation."""

import math

import numpy as np
import pytest

from rlgames.kernels import gumbel

ACTIONS = 6


def random_node(seed, num_unvisited=2):
    """Priors, visits and sums of one node, the last action illegal."""
    generator = np.random.default_rng(seed)
    prior = generator.dirichlet(np.ones(ACTIONS)).astype(np.float32)
    prior[-1] = -np.inf
    visits = generator.integers(1, 9, ACTIONS).astype(np.float32)
    visits[ACTIONS - 1 - num_unvisited :] = 0
    sums = (visits * generator.uniform(-1, 1, ACTIONS)).astype(np.float32)
    return prior, visits, sums, float(generator.uniform(-1, 1))


def plan(**fields):
    empty = gumbel.GumbelPlan(
        np.empty(0, np.float32),
        np.empty((0, ACTIONS), np.float32),
        np.empty((0, 0), np.int64),
        np.empty(0, np.int64),
        50.0,
        0.1,
    )
    return empty._replace(**fields)


def plain_sigma(node, sign):
    """σ of the completed Q of legal actions."""
    prior, visits, sums, raw_value = node
    legal = [a for a in range(ACTIONS) if prior[a] >= 0]
    visited = [a for a in legal if visits[a] > 0]
    mixed = raw_value
    if visited:
        mean = sum(prior[a] * sums[a] / visits[a] for a in visited) / sum(prior[a] for a in visited)
        total = sum(visits)
        mixed = (raw_value + total * mean) / (1 + total)
    q = {a: sign * (sums[a] / visits[a] if a in visited else mixed) for a in legal}
    low, high = min(q.values()), max(q.values())
    scale = (50 + max(visits)) * 0.1
    return [
        scale * (q[a] - low) / (high - low) if a in legal and high > low else 0
        for a in range(ACTIONS)
    ]


def sigma_of(node, sign):
    sigma = np.empty(ACTIONS, np.float32)
    prior, visits, sums, raw_value = node
    gumbel.transform_completed_q(plan(), prior, visits, sums, raw_value, sign, sigma)
    assert sigma[-1] == -np.inf
    return sigma[:-1].tolist()


@pytest.mark.parametrize("num_unvisited", [0, 2, 5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_completed_q_values_are_those_of_the_paper(num_unvisited, sign):
    for seed in range(20):
        node = random_node(seed, num_unvisited)
        expected = plain_sigma(node, sign)[:-1]
        assert sigma_of(node, sign) == pytest.approx(expected, abs=1e-4)


def test_equal_values_give_no_preference_whatever_their_rounding():
    prior, visits, _, _ = random_node(1, 0)
    sums = np.float32(0.3) * visits
    sums[0] = np.float32(sums[0] * (1 + 1e-7))
    assert max(sigma_of((prior, visits, sums, 0.3), 1.0)) < 0.2


def test_a_node_of_which_nothing_is_known_has_no_preference():
    prior, visits, sums, _ = random_node(1, 5)
    assert sigma_of((prior, visits, sums, math.nan), 1.0) == [0.0] * 5


def test_interior_actions_follow_the_improved_policy():
    """argmax of softmax(logits + σ) - N / (1 + Σ N)."""
    for seed in range(20):
        prior, visits, sums, raw_value = random_node(seed)
        sigma = np.empty(ACTIONS, np.float32)
        gumbel.transform_completed_q(plan(), prior, visits, sums, raw_value, 1.0, sigma)
        pending = np.zeros(ACTIONS, np.float32)
        pending[seed % 5] = 2
        weights = [math.log(prior[a]) + sigma[a] for a in range(ACTIONS - 1)]
        weights = [math.exp(weight - max(weights)) for weight in weights]
        taken = visits + pending
        shares = [weight / sum(weights) for weight in weights]
        priority = [shares[a] - taken[a] / (1 + sum(taken)) for a in range(ACTIONS - 1)]
        expected = max(range(ACTIONS - 1), key=priority.__getitem__)
        assert gumbel.deterministic_action(prior, sigma, visits, pending) == expected


def test_a_legal_action_of_probability_0_can_be_the_best():
    prior = np.array([1, 0, 0, 0, 0, -np.inf], np.float32)
    visits = np.ones(ACTIONS, np.float32)
    visits[-1] = 0
    sigma = np.array([0, 0, 200, 0, 0, -np.inf], np.float32)
    assert gumbel.deterministic_action(prior, sigma, visits, np.zeros_like(visits)) == 2
