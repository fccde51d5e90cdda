"""TD learning of k in a row: what the kernel learns, and how well."""

import pytest
import torch
from helpers import learn, make_agent, rng
from plain_learning import PlainValues

from rlgames.players.player import Agent
from rlgames.rollouts.play import GamePool
from rlgames.sampling import Argmax
from rlgames.solvers.graph import Graph, exploitability

SMALL = [
    *("game=connect4", "rows=4", "columns=4", "line=3", "experiment=null", "reward=outcome"),
    *("policy=ntuple", "policy.tuples=[[0,1,5,8],[12,13,14,9],[6,7,10]]"),
    *("learner=td_ntuple", "lr=0.5"),
    *("sampling=epsilon_greedy", "sampling.epsilon=0.3", "reward.discount=0.81"),
]


def agent(*overrides):
    return make_agent(*SMALL, *overrides)


class Reference(PlainValues):
    """One game at a time by the batched rules."""

    def __init__(self, game, policy, *, epsilon, **keys):
        super().__init__(**keys)
        self.game, self.policy, self.epsilon = game, policy, epsilon

    def bounded_value(self, indices):
        return min(max(self.value(indices), -0.999), 0.999)

    def moves(self, state):
        """For each legal action its value, the position after it, and the values' indices."""
        options = []
        for action in self.game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
            after = self.game.apply_action(state, torch.tensor([action]))
            indices = self.policy.feature_indices(self.game, after)[0].tolist()
            won = bool((after.score != 0).any())
            value = float(won) if bool(after.done) else self.bounded_value(indices)
            options.append((value, after, indices))
        return options

    def play(self, state, rng):
        """rng: of the game."""
        history = []
        while not bool(state.done):
            options = self.moves(state)
            best = max(option[0] for option in options)
            chosen = next(option for option in options if option[0] == best)
            now = rng.fold_in(state.turn)
            first, second = (int(now.fold_in(number).keys[0]) >> 32 for number in range(2))
            if first < round(self.epsilon * 2**32):
                chosen = options[second * len(options) >> 32]
            history.append((best, *chosen))
            state = chosen[1]
        reply = history[-1][0]
        for best, value, _, indices in reversed(history[:-1]):
            target = -0.9 * reply
            self.learn(indices, target)
            learned = self.bounded_value(indices)
            reply = (1 - self.td_lambda) * learned + self.td_lambda * target
            reply = reply if value >= best - 1e-5 * abs(best) else best
        return state


@pytest.mark.parametrize(
    ("step_size", "td_lambda", "epsilon"),
    [("constant", 0, 0.0), ("constant", 0.8, 0.3), ("temporal_coherence", 0.5, 0.3)],
)
def test_it_learns_what_a_plain_loop_learns(step_size, td_lambda, epsilon):
    """Where a random move is made, the move before it learns from the best one instead."""
    words = [f"learner.step_size={step_size}", f"learner.td_lambda={td_lambda}"]
    game, player, learner = agent(*words, f"sampling.epsilon={epsilon}")
    pool = GamePool(game, [player], 3, rng(2))
    keys = {"coherent": step_size != "constant", "td_lambda": td_lambda, "epsilon": epsilon}
    plain = Reference(game, player.policy, lr=0.5, **keys)
    final, metrics = learn(learner, pool, None)
    for row in range(3):
        last = plain.play(game.example_state(), pool.rng[row : row + 1])
        for name in ("words", "turn", "score", "current_seat", "done"):
            assert getattr(final.state[row : row + 1], name).equal(getattr(last, name))
    assert final.num_moves == int(final.state.turn.sum())
    assert metrics["td_error"] == pytest.approx(plain.total / final.num_moves, rel=1e-4)
    learned = {int(i): float(player.policy.values[i]) for i in player.policy.values.nonzero()}
    expected = {i: v for i, v in plain.values.items() if v}
    assert learned == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_equal_seeds_give_equal_values_and_two_threads_play_all_games():
    values = []
    for seed in (0, 0, 1):
        game, player, learner = agent("learner.step_size=temporal_coherence")
        learn(learner, GamePool(game, [player], 50, rng(seed)), None)
        values.append(player.policy.values)
    assert values[0].equal(values[1])
    assert not values[0].equal(values[2])
    game, player, learner = agent("learner.threads=2")
    final, _ = learn(learner, GamePool(game, [player], 41, rng()), None)
    assert final.state.done.all()
    assert game.is_valid(final.state).all()
    assert final.num_moves == int(final.state.turn.sum())


def test_tic_tac_toe_is_learned_so_that_nobody_can_win():
    words = ["game=tictactoe", "reward=outcome", "experiment=null", "policy=ntuple"]
    words += ["learner=td_ntuple", "sampling=epsilon_greedy", "sampling.epsilon=0.3", "lr=0.5"]
    game, player, learner = make_agent(*words)
    for seed in range(10):
        learn(learner, GamePool(game, [player], 2000, rng(seed)), None)
    greedy = Agent(game, player.policy, Argmax("first"))
    assert exploitability(Graph(game, 60, 1 << 30), greedy.probabilities)[1] == [0.0, 0.0]
