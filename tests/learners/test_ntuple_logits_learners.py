"""The compiled learners of n-tuple policies: what they learn, and that they repeat themselves."""

import math
from typing import Any

import pytest
import torch
from helpers import make_agent, rng
from packed_random import PackedRandom

from rlgames.players.player import Agent
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.packed_ntuple import PackedLogits
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool
from rlgames.sampling import Argmax

SMALL = [
    *("game=2048", "board=3", "policy=ntuple_logits", "policy.num_cell_values=9"),
    *("policy.tuples=[[0,1,2],[3,4,5],[0,1,3,4]]", "reward=score", "solve_seconds=0"),
    *("reward.scale=1", "reward.discount=0.9", "lr=0.3"),
]
A2C = ["learner=a2c", "learner.entropy_coef=0.1", "learner.entropy_coef_end=0.1"]
DAGGER = ["learner=dagger", "sampling=argmax", "learner.temperature=20"]


def agent(*overrides):
    return make_agent(*SMALL, *overrides)


def teacher_of(game):
    policy = Ntuple(game, 1.0, [[0, 1, 2], [0, 1, 3, 4]], 9, 0.0)
    policy.values.copy_(30 * torch.rand(policy.values.shape, generator=rng(5)))
    return Agent(game, policy, Argmax())


def pool_of(game, player, batch, seed=0):
    return GamePool(game, [player], UNLIMITED_GAMES, rng(seed), batch=batch)


def seed_of(pool):
    """The seed that the kernel will take from the pool."""
    return int(torch.randint(1 << 62, (1,), generator=rng().set_state(pool.rng.get_state())))


class Reference(PackedRandom):
    """One game by the batched rules, and gradients by torch; float64 dictionaries for entries."""

    def __init__(self, game, policy, state, seed, lr):
        super().__init__(game, seed)
        self.policy, self.state, self.lr = policy, state, lr
        # Random logits, as equal ones are ordered by how they are rounded.
        policy.entries[:, :4] = torch.rand(len(policy.entries), 4, generator=rng(6))
        self.logits = dict(enumerate(policy.entries[:, :4].tolist()))
        self.values, self.squares = {}, {}
        self.errors, self.sizes, self.mean_square = {}, {}, 100.0
        packed = PackedLogits(game, policy, 8)
        self.views = list(zip(packed.symmetries, packed.permutations.tolist(), strict=True))

    def lookups(self, state):
        """The entry and the permutation of actions of each lookup, in the kernel's order."""
        indices = self.policy.feature_indices(state)[0].view(-1, len(self.views)).tolist()
        return [(row[symmetry], each) for row in indices for symmetry, each in self.views]

    def log_probs(self, state):
        """The logits, which have a gradient, and the log-probabilities of the actions."""
        logits = torch.zeros(4, dtype=torch.float64)
        for entry, actions in self.lookups(state):
            logits += torch.tensor(self.logits[entry], dtype=torch.float64)[actions]
        logits.requires_grad_()
        legal = self.game.legal_action_mask(state)[0]
        return logits, logits.masked_fill(~legal, -math.inf).log_softmax(0)

    def step(self, state, logits, objective):
        """Ascend the gradient of the objective."""
        objective.backward()
        gradient = logits.grad.tolist()
        for entry, actions in self.lookups(state):
            self.squares[entry] = self.squares.get(entry, 0.0) + sum(g * g for g in gradient)
            rate = self.lr / math.sqrt(1 + self.squares[entry])
            for action, g in zip(actions, gradient, strict=True):
                self.logits[entry][action] += rate * g

    def move(self, action):
        after = self.game.apply_action(self.state, torch.tensor([action]))
        points, self.state = float(after.score - self.state.score), self.spawn(after)
        return points

    def value(self, state):
        return sum(self.values.get(entry, 0.0) for entry, _ in self.lookups(state))

    def sample(self, probs):
        uniform = (self.next_random() >> 40) / (1 << 24)
        for action, probability in enumerate(probs):
            if probability > 0:
                chosen = action
                uniform -= probability
                if uniform < 0:
                    break
        return chosen

    def a2c_window(self, plies, discount, gae_lambda, entropy_coef):
        history: list[tuple[Any, int, float]] = []
        while len(history) < plies and not bool(self.state.done):
            state = self.state
            action = self.sample(self.log_probs(state)[1].exp().tolist())
            history.append((state, action, self.move(action)))
        value = 0.0 if bool(self.state.done) else self.value(self.state)
        advantage = 0.0
        for state, action, points in reversed(history):
            delta = points + discount * value - self.value(state)
            value, advantage = self.value(state), delta + discount * gae_lambda * advantage
            self.mean_square += 1e-4 * (advantage**2 - self.mean_square)
            units = max(min(advantage / math.sqrt(self.mean_square), 5), -5)
            logits, log_probs = self.log_probs(state)
            legal = log_probs[log_probs > -math.inf]
            entropy = -(legal.exp() * legal).sum()
            self.step(state, logits, units * log_probs[action] + entropy_coef * entropy)
            self.correct(state, advantage)

    def correct(self, state, error):
        """Move the values by temporal coherence."""
        lookups = self.lookups(state)
        part = error / len(lookups)
        for entry, _ in lookups:
            errors, sizes = self.errors.get(entry, 0.0), self.sizes.get(entry, 0.0)
            rate = abs(errors) / sizes if sizes else 1.0
            self.values[entry] = self.values.get(entry, 0.0) + rate * part
            self.errors[entry], self.sizes[entry] = errors + part, sizes + abs(part)

    def dagger_window(self, plies, teacher, temperature):
        while plies and not bool(self.state.done):
            plies -= 1
            state = self.state
            scores, _ = teacher.policy.scores(self.game, state)
            legal = self.game.legal_action_mask(state)[0]
            scores = scores[0].double() / (temperature or 1)
            scores = scores.masked_fill(~legal, -math.inf)
            target = scores.softmax(0)
            if not temperature:
                target = torch.nn.functional.one_hot(scores.argmax(), 4).double()
            logits, log_probs = self.log_probs(state)
            chosen = int(log_probs.argmax())
            self.step(state, logits, (target * log_probs.masked_fill(~legal, 0)).sum())
            self.move(chosen)


def check_entries(policy, plain):
    logits = torch.tensor(list(plain.logits.values()))
    assert torch.allclose(policy.entries[:, :4], logits, rtol=1e-3, atol=1e-5)
    assert len(plain.squares) > 10  # entries that were trained
    for entry, value in plain.values.items():
        assert float(policy.entries[entry, 4]) == pytest.approx(value, rel=1e-3, abs=1e-3)


def test_a2c_learns_what_a_plain_loop_learns():
    game, player, learner = agent(*A2C)
    pool = pool_of(game, player, 1)
    plain = Reference(game, player.policy, pool.state, seed_of(pool), 0.3)
    final, metrics = learner.play_and_learn(pool, 12, 0.0)
    plain.a2c_window(12, 0.9, 0.5, 0.1)
    assert final.state.tiles.equal(plain.state.tiles)
    assert final.num_moves == int(final.state.turn)
    check_entries(player.policy, plain)
    mean_square = learner.state_dict()["statistics"]["mean_square"]
    assert float(mean_square) == pytest.approx(plain.mean_square, rel=1e-5)
    assert 0 < metrics["entropy"] <= math.log(4)


@pytest.mark.parametrize("temperature", [0, 20])
def test_dagger_learns_what_a_plain_loop_learns(temperature):
    game, player, learner = agent(*DAGGER, f"learner.temperature={temperature}")
    teacher = teacher_of(game)
    pool = pool_of(game, teacher, 1)
    # No symmetric board, on which actions are equally good.
    pool.state = game.from_exponents(torch.tensor([[[1, 2, 3], [0, 0, 4], [5, 0, 0]]]))
    plain = Reference(game, player.policy, pool.state, seed_of(pool), 0.3)
    final, metrics = learner.play_and_learn(pool, 12, 0.0)
    plain.dagger_window(12, teacher, temperature)
    assert final.state.tiles.equal(plain.state.tiles)
    check_entries(player.policy, plain)
    assert 0 <= metrics["agreement"] <= 1


@pytest.mark.parametrize("words", [A2C, DAGGER])
def test_equal_seeds_give_equal_entries_and_a_learner_resumes_from_its_state(words):
    entries = []
    for resumes in (False, True):
        game, player, learner = agent(*words)
        pool = pool_of(game, player if words == A2C else teacher_of(game), 20)
        for _ in range(3):
            learner.play_and_learn(pool, 30, 0.0)
            if resumes:
                policy, state = player.policy.state_dict(), learner.state_dict()
                _, player, learner = agent(*words)
                player.policy.load_state_dict(policy)
                learner.load_state_dict(state)
        entries.append(player.policy.entries)
    assert entries[0].any()
    assert entries[0].equal(entries[1])


@pytest.mark.parametrize("words", [A2C, DAGGER])
def test_threads_share_the_games_and_the_entries(words):
    game, player, learner = agent(*words, "learner.threads=2")
    teacher = teacher_of(game)
    pool = GamePool(game, [player if words == A2C else teacher], 50, rng())
    final, _ = learner.play_and_learn(pool, None, 0.0)
    assert bool(final.state.done.all())
    assert len(final.state) == 50
    assert final.num_moves == int(final.state.turn.sum())
    assert bool(game.is_valid(final.state).all())


def test_a2c_learns_to_play_better():
    game, player, learner = agent("learner=a2c", "reward.discount=1")
    scores = []
    for seed in range(6):
        final, _ = learner.play_and_learn(GamePool(game, [player], 300, rng(seed)), None, 0.0)
        scores.append(float(final.score.mean()))
    assert scores[-1] > 2 * 180  # twice random play


def test_dagger_comes_to_agree_with_its_teacher():
    game, _, learner = agent("learner=dagger", "sampling=argmax")
    agreement = []
    for seed in range(6):
        pool = GamePool(game, [teacher_of(game)], 300, rng(seed))
        agreement.append(learner.play_and_learn(pool, None, 0.0)[1]["agreement"])
    assert agreement[-1] > agreement[0] + 0.05
