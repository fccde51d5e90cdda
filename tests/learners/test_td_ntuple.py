"""The compiled TD learner: what it learns, that it repeats itself, and where it cannot be used."""

import pytest
import torch
from helpers import learn, make_agent, rng
from markers import one_in
from plain_learning import PlainValues

from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool

SMALL = [
    *("experiment=null", "game=2048", "board=3", "reward=score", "policy=ntuple"),
    *("sampling=argmax", "learner=td_ntuple"),
    *("policy.tuples=[[0,1,2],[3,4,5],[0,1,3,4]]", "policy.num_cell_values=9"),
    *("reward.scale=1", "reward.discount=1", "lr=0.5", "solve_seconds=0"),
]


def agent(*overrides):
    return make_agent(*SMALL, *overrides)


def pool_of(game, player, batch, seed=0):
    return GamePool(game, [player], UNLIMITED_GAMES, rng(seed), batch=batch)


class Reference(PlainValues):
    """One game at a time by the batched rules."""

    def __init__(self, game, policy, state, rng, *, discount, **keys):
        super().__init__(**keys)
        self.game, self.policy, self.state, self.discount = game, policy, state, discount
        self.rng = rng

    def indices(self, after):
        return self.policy.feature_indices(self.game, after)[0].tolist()

    def best(self, state):
        """The first best action's score, points, afterstate and number."""
        options = []
        for action in self.game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
            after = self.game.apply_action(state, torch.tensor([action]))
            points = float(after.score - state.score)
            options.append((points + self.value(self.indices(after)), points, after, action))
        return max(options, key=lambda option: option[0])

    def window(self, plies):
        history: list[tuple[float, list[int]]] = []
        while len(history) < plies and not bool(self.state.done):
            _, points, after, action = self.best(self.state)
            history.append((points, self.indices(after)))
            now = self.rng.fold_in(self.state.turn)
            self.state = self.game.step(self.state, torch.tensor([action]), now)
        next_value = 0.0 if bool(self.state.done) else self.best(self.state)[0]
        next_reward = 0.0
        for points, indices in reversed(history):
            target = self.discount * (next_reward + next_value)
            self.learn(indices, target)
            next_reward = points
            next_value = (1 - self.td_lambda) * self.value(indices) + self.td_lambda * target


@pytest.mark.parametrize(
    ("step_size", "td_lambda", "discount"),
    one_in(
        3,
        [
            ("temporal_coherence", 0.5, 0.9),
            ("temporal_coherence", 0, 1.0),
            ("constant", 0, 1.0),
        ],
    ),
)
def test_it_learns_what_a_plain_loop_learns(step_size, td_lambda, discount):
    words = [f"learner.step_size={step_size}", f"learner.td_lambda={td_lambda}"]
    game, player, learner = agent(*words, f"reward.discount={discount}")
    pool = pool_of(game, player, 1)
    keys = {"coherent": step_size != "constant", "td_lambda": td_lambda, "discount": discount}
    plain = Reference(game, player.policy, pool.state, pool.rng[:1], lr=0.5, **keys)
    final, metrics = learn(learner, pool, 25)
    plain.window(25)
    assert final.state.words.equal(plain.state.words)
    assert final.num_moves == int(final.state.turn) == 25
    assert metrics["td_error"] == pytest.approx(plain.total / 25, rel=1e-5)
    learned = {i: float(player.policy.values[i]) for i in player.policy.values.nonzero()[:, 0]}
    assert {int(i): v for i, v in learned.items()} == pytest.approx(
        {i: v for i, v in plain.values.items() if v}, rel=1e-4
    )
    if step_size != "constant":
        sizes = learner.values.sizes
        assert {i: float(sizes[i]) for i in plain.sizes} == pytest.approx(plain.sizes, rel=1e-4)


def test_statistics_lie_beside_their_values_and_are_saved():
    _, player, learner = agent("learner.step_size=temporal_coherence")
    _, other_player, other = agent("learner.step_size=temporal_coherence")
    assert player.policy.values.stride() == (3,)
    assert learner.values.errors.data_ptr() == player.policy.values.data_ptr() + 4
    learn(learner, pool_of(player.game, player, 4), 50)
    other_player.policy.load_state_dict(player.policy.state_dict())
    other.load_state_dict(learner.state_dict())
    assert other.values.table.equal(learner.values.table)
    assert other.values.errors.stride() == (3,)


def test_equal_seeds_give_equal_values_and_exploration_counts():
    runs = []
    for epsilon in (0.0, 0.0, 0.5):
        words = ["sampling=epsilon_greedy", f"sampling.epsilon={epsilon}"]
        game, player, learner = agent(*words, f"sampling.epsilon_end={epsilon}")
        pool = pool_of(game, player, 8)
        for _ in range(5):
            learn(learner, pool, 30)
        runs.append(player.policy.values)
    assert runs[0].equal(runs[1])
    assert not runs[0].equal(runs[2])
