"""TD learning of k in a row: what the kernel and the batched learner learn, and how well."""

from dataclasses import replace

import pytest
import torch
from helpers import make_agent, rng
from packed_random import SplitMix64

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.players.player import Agent
from rlgames.rollouts.play import GamePool
from rlgames.sampling import Argmax
from rlgames.solvers.graph import Graph, exploitability
from rlgames.training.components import build_components

SMALL = [
    *("game=connect4", "rows=4", "columns=4", "line=3", "experiment=null", "reward=outcome"),
    *("policy=ntuple", "policy.tuples=[[0,1,5,8],[12,13,14,9],[6,7,10]]", "learner=td", "lr=0.5"),
    *("sampling=epsilon_greedy", "sampling.epsilon=0.3", "reward.discount=0.81"),
]


def agent(*overrides):
    return make_agent(*SMALL, *overrides)


class Reference(SplitMix64):
    """One game at a time by the batched rules, and float64 dictionaries for values."""

    def __init__(self, game, policy, seed, *, coherent, td_lambda, epsilon, lr):
        super().__init__(seed)
        self.game, self.policy = game, policy
        self.coherent, self.td_lambda, self.epsilon, self.lr = coherent, td_lambda, epsilon, lr
        self.values, self.errors, self.sizes = {}, {}, {}
        self.total = 0.0

    def value(self, indices):
        total = sum(self.values.get(index, 0.0) for index in indices)
        return min(max(total, -0.999), 0.999)

    def moves(self, state):
        """For each legal action its value, the position after it, and the values' indices."""
        options = []
        for action in self.game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
            after = self.game.apply_action(state, torch.tensor([action]))
            indices = self.policy.feature_indices(self.game, after)[0].tolist()
            won = bool((after.score != 0).any())
            value = float(won) if bool(after.done) else self.value(indices)
            options.append((value, after, indices))
        return options

    def play(self, state):
        history = []
        while not bool(state.done):
            options = self.moves(state)
            best = max(option[0] for option in options)
            chosen = next(option for option in options if option[0] == best)
            if self.next_random() >> 32 < round(self.epsilon * 2**32):
                chosen = options[(self.next_random() >> 32) * len(options) >> 32]
            history.append((best, *chosen))
            state = chosen[1]
        self.learn(history)
        return state

    def learn(self, history):
        reply = history[-1][0]
        for best, value, _, indices in reversed(history[:-1]):
            target = -0.9 * reply
            error = target - sum(self.values.get(index, 0.0) for index in indices)
            self.total += abs(error)
            for index in set(indices):
                self.correct(index, error / len(indices), indices.count(index))
            learned = self.value(indices)
            reply = (1 - self.td_lambda) * learned + self.td_lambda * target
            reply = reply if value == best else best

    def correct(self, index, part, count):
        errors, sizes = self.errors.get(index, 0.0), self.sizes.get(index, 0.0)
        rate = self.lr * (abs(errors) / sizes if self.coherent and sizes else 1.0)
        step = (1 - (1 - rate) ** count) * part
        self.values[index] = self.values.get(index, 0.0) + step
        self.errors[index], self.sizes[index] = errors + part, sizes + abs(part)


@pytest.mark.parametrize(
    ("step_size", "td_lambda", "epsilon"),
    [("constant", 0, 0.0), ("constant", 0.8, 0.3), ("temporal_coherence", 0.5, 0.3)],
)
def test_it_learns_what_a_plain_loop_learns(step_size, td_lambda, epsilon):
    """Where a random move is made, the move before it learns from the best one instead."""
    words = [f"learner.step_size={step_size}", f"learner.td_lambda={td_lambda}"]
    game, player, learner = agent(*words, f"sampling.epsilon={epsilon}")
    pool = GamePool(game, [player], 3, rng())
    keys = {"coherent": step_size != "constant", "td_lambda": td_lambda, "epsilon": epsilon}
    seed = torch.randint(1 << 62, (1,), generator=rng(0).set_state(pool.rng.get_state()))
    plain = Reference(game, player.policy, int(seed), lr=0.5, **keys)
    final, metrics = learner.play_and_learn(pool, None, 0.0)
    for row in range(3):
        last = plain.play(game.example_state())
        for name in ("own", "occupied", "turn", "score", "current_seat", "done"):
            assert getattr(final.state[row : row + 1], name).equal(getattr(last, name))
    assert final.num_moves == int(final.state.turn.sum())
    assert metrics["td_error"] == pytest.approx(plain.total / final.num_moves, rel=1e-4)
    learned = {int(i): float(player.policy.values[i]) for i in player.policy.values.nonzero()}
    expected = {i: v for i, v in plain.values.items() if v}
    assert learned == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("step_size", ["constant", "temporal_coherence"])
def test_one_game_at_a_time_teaches_the_batched_learner_the_same(step_size):
    """Some boards read a value twice. None is its own mirror image, where two moves are equal."""
    values = {}
    for backend in ("numba", "torch"):
        words = [f"learner.step_size={step_size}", "learner.td_lambda=0.7", "sampling.epsilon=0"]
        game, player, learner = agent(*words, f"learner.backend={backend}")
        player.policy.values.copy_(torch.rand(len(player.policy.values), generator=rng(4)) - 0.5)
        start = game.parse_all([". . . .\n. . . .\n. . . .\nX . . O"])
        for _ in range(3):
            pool = GamePool(game, [player], 1, rng())
            pool.state = start
            if backend == "numba":
                learner.play_and_learn(pool, None, 0.0)
            else:
                learner.update(*pool.collect(), 0.0)
        values[backend] = player.policy.values
    assert torch.allclose(values["numba"], values["torch"], atol=1e-5)
    assert not torch.allclose(
        values["numba"], torch.rand(len(values["numba"]), generator=rng(4)) - 0.5
    )


def test_the_batched_learner_takes_the_best_reply_where_the_made_one_is_absent_or_worse():
    game, player, learner = agent("learner.backend=torch", "lr=1", "sampling.epsilon=1")
    policy = player.policy
    policy.values.copy_(0.1 * torch.randn(len(policy.values), generator=rng(3)))
    moves, final = GamePool(game, [player], 1, rng(7)).collect()
    afterstate = game.apply_action(moves.state, moves.action)
    own = replace(moves, player=moves.seat).by_player(0)
    value = policy.value(game, afterstate).clone()
    best = policy.best(game, afterstate).clone()
    learner.update(own, final, 0.0)
    last = len(own) - (1 if bool(afterstate.done[2 * len(own) - 2]) else 0) - 1
    learned = policy.value(game, afterstate[2 * last : 2 * last + 1])
    if not bool(afterstate.done[2 * last]):
        assert float(learned) != float(value[2 * last])
        assert abs(float(learned) + 0.9 * float(best[2 * last])) < 0.2


def test_equal_seeds_give_equal_values_and_two_threads_play_all_games():
    values = []
    for seed in (0, 0, 1):
        game, player, learner = agent("learner.step_size=temporal_coherence")
        learner.play_and_learn(GamePool(game, [player], 50, rng(seed)), None, 0.0)
        values.append(player.policy.values)
    assert values[0].equal(values[1])
    assert not values[0].equal(values[2])
    game, player, learner = agent("learner.threads=2")
    final, _ = learner.play_and_learn(GamePool(game, [player], 41, rng()), None, 0.0)
    assert final.state.done.all()
    assert game.is_valid(final.state).all()
    assert final.num_moves == int(final.state.turn.sum())


def test_tic_tac_toe_is_learned_so_that_nobody_can_win():
    words = ["game=tictactoe", "reward=outcome", "experiment=null", "policy=ntuple", "learner=td"]
    words += ["sampling=epsilon_greedy", "sampling.epsilon=0.3", "lr=0.5"]
    game, player, learner = make_agent(*words)
    assert learner.learns_while_playing
    for seed in range(10):
        learner.play_and_learn(GamePool(game, [player], 2000, rng(seed)), None, 0.0)
    greedy = Agent(game, player.policy, Argmax())
    assert exploitability(Graph(game, 60, 1 << 30), greedy.probabilities)[1] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("learner.step_size=counts", "no learner.step_size=counts"),
        ("learner.frozen_tuples=[0]", "no learner.frozen_tuples"),
        ("sampling.ties=random", "ties=first"),
    ],
)
def test_what_the_kernel_cannot_do_goes_to_torch_or_is_refused_with_the_reason(word, reason):
    assert not agent(word)[2].learns_while_playing
    with pytest.raises(ConfigError, match=reason):
        agent(word, "learner.backend=numba")


def test_games_against_others_are_learned_from_in_batches():
    collector = build_components(load_config(TrainConfig, [*SMALL, "opponent=random"])).collector
    assert not collector.learner_plays
    for demand in ("learner.backend=numba", "learner.threads=2"):
        with pytest.raises(ConfigError, match="needs the batched learner"):
            build_components(load_config(TrainConfig, [*SMALL, "opponent=random", demand]))


def test_large_boards_are_learned_without_the_kernel():
    words = ["game=gomoku", "board=9", "reward=outcome", "policy=ntuple", "learner=td", "lr=0.5"]
    words += ["policy.tuples=[[0,1,2,3,4]]", "sampling=epsilon_greedy", "experiment=null"]
    game, player, learner = make_agent(*words)
    pool = GamePool(game, [player], 4, rng(), batch=4)
    assert not learner.learns_while_playing
    assert learner.update(*pool.collect(), 0.0)
    with pytest.raises(ConfigError, match="does not fit in 62 bits"):
        make_agent(*words, "learner.backend=numba")
