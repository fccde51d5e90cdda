"""Networks and learners of users: what a checkpoint cannot hold is refused before the first game,
layers with two modes learn and play as they should, and a seed repeats a run."""

import json
import math
from pathlib import Path

import pytest
import torch
from helpers import generator
from markers import slow
from run_files import metrics_without_times
from torch import nn

import rlgames
from rlgames.config import registry
from rlgames.core.callbacks import ADDED, Callback
from rlgames.games.k_in_a_row import KInARow
from rlgames.learners.dqn import Dqn
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import LearnerContext
from rlgames.policies.policy import Network
from rlgames.rewards import Reward
from rlgames.rng import Rng, torch_seeded
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics
from rlgames.sampling import EpsilonGreedy

WORDS = ["game=tictactoe", "experiment=null", "reward=outcome", "games=40", "batch=10"]
WORDS += ["eval_games=8", "eval_every=20", "log_every=10", "solve_seconds=0", "save_every=10"]


class Layers(Network):
    """A network of torch's own initial weights, with one layer of a kind."""

    def __init__(self, game, kind, value, generator):
        super().__init__()
        self.first = nn.Linear(math.prod(game.spec.observation), 8)
        self.last = nn.Linear(8, game.spec.actions)
        self.has_value = value
        self.between = {"dropout": nn.Dropout(0.5), "batch_norm": nn.BatchNorm1d(8)}.get(kind)
        if kind == "slash":
            self.named = nn.ModuleDict({"a/b": nn.Linear(1, 1), "~1": nn.Linear(1, 1)})
        if kind == "mask":
            self.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))
        if kind == "infinite":
            self.weights = nn.Parameter(torch.full((2,), torch.inf))
        if kind == "complex":
            self.register_buffer("phase", torch.zeros(2, dtype=torch.complex64))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, inputs):
        hidden = self.first(inputs.flatten(1))
        hidden = hidden if self.between is None else self.between(hidden)
        scores = self.last(hidden.relu()) * self.scale
        return scores, scores.mean(1) if self.has_value else None


class Stateful(GradientLearner):
    """A learner with a state of its own."""

    trains = frozenset({"logits"})

    def __init__(self, context, *, kind, lr):
        super().__init__(context, lr=lr)
        self.kind, self.counts = kind, torch.zeros(2)

    def update(self, trajectories, final_states, progress):
        self.counts += 1
        scores, _ = self.policy.scores(self.game, trajectories.state)
        self.descend(scores.square().mean(), self.lr.at(progress))
        return {"count": self.counts[:1]}

    def state_dict(self):
        own = {"listed": [self.counts], "slash": {"a/b": {"~0/": self.counts}}}
        return super().state_dict() | {"own": own.get(self.kind, {"counts": self.counts})}

    def load_state_dict(self, state):
        own = state.pop("own")
        super().load_state_dict(state)
        self.counts = own["a/b"]["~0/"] if self.kind == "slash" else own["missing"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for group, name, part in (("policy", "layers", Layers), ("learner", "stateful", Stateful)):
        before = dict(registry.REGISTRY[group])
        rlgames.register(group, name, part, kind="none")
        added = registry.REGISTRY[group].pop(name)
        assert registry.REGISTRY[group] == before
        monkeypatch.setitem(registry.REGISTRY[group], name, added)


def trained(out, *words):
    return rlgames.train([*WORDS, "policy=layers", *words, f"out={out}"])


@pytest.mark.parametrize(
    ("kind", "learner"),
    [
        ("dropout", "learner=ppo"),
        ("batch_norm", "learner=ppo"),
        ("dropout", "learner=dqn sampling=epsilon_greedy learner.minibatch_size=8"),
        slow(("batch_norm", "learner=dqn sampling=epsilon_greedy learner.minibatch_size=8")),
        slow(("dropout", "learner=reinforce learner.step_per=move learner.baseline=mean")),
        slow(("batch_norm", "learner=reinforce learner.step_per=move learner.baseline=mean")),
    ],
)
def test_a_seed_repeats_a_run_and_a_resumed_one_is_equal(kind, learner, typed):
    words = [f"policy.kind={kind}", *learner.split()]
    before = torch.get_rng_state()
    runs = [trained(out, *words) for out in ("one", "two")]
    assert torch.equal(torch.get_rng_state(), before)
    runs.append(trained("three", *words, "games=20", "schedule_games=40"))
    assert typed("resume", "three", "games=40").returncode == 0
    first, *others = (metrics_without_times(run) for run in runs)
    assert others == [first, first]
    weights = [Checkpoint.read(run / "checkpoints/latest.safetensors").policy for run in runs]
    for other in weights[1:]:
        assert all(torch.equal(other[name], weight) for name, weight in weights[0].items())
    assert rlgames.evaluate(runs[0], games=8)["games"] == 8


def test_a_network_learns_in_training_mode_and_plays_in_evaluation_mode(monkeypatch):
    modes, forward = [], Layers.forward

    def told(self, inputs):
        modes.append((self.training, torch.is_grad_enabled()))
        return forward(self, inputs)

    monkeypatch.setattr(registry.REGISTRY["policy"]["layers"].make, "forward", told)
    trained("run", "learner=ppo")
    assert {*modes} == {(True, True), (False, False)}


def test_buffers_reach_the_target_of_dqn():
    game = KInARow(3, 3, 3, gravity=False)
    policy = Layers(game, "batch_norm", False, generator()).eval()
    reward = Reward(game, "outcome")
    learner = Dqn(
        LearnerContext(game, policy, EpsilonGreedy(0.1, None, "first"), reward, generator()),
        buffer_size=10, updates_per_batch=1, minibatch_size=4, n_step=1, target_every=2,
        polyak_tau=0.5, lr=0.1,
    )  # fmt: skip
    policy.get_buffer("between.running_mean").add_(1)
    for expected in (0, 1):
        learner._update_target_network()
        mean = learner.target_network.get_buffer("between.running_mean")
        assert mean.tolist() == [expected] * 8
    assert not learner.target_network.training


@pytest.mark.parametrize("kind", ["slash", "mask", "none"])
def test_names_with_slashes_masks_and_weights_without_dimension_are_read_back(kind, typed):
    run = trained("run", f"policy.kind={kind}", "learner=ppo")
    assert rlgames.evaluate(run, games=8)["games"] == 8
    assert typed("resume", "run", "games=60").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("policy.kind=infinite learner=ppo", "policy=layers cannot be read back from a checkpoint"),
        ("policy.kind=complex learner=ppo", "cannot hold policy/phase, which is torch.complex64"),
        ("learner=stateful learner.kind=listed", "cannot hold state/learner/own, a Tensor"),
        ("learner=stateful learner.kind=none", "learner=stateful cannot be read back"),
    ],
)
def test_what_cannot_be_read_back_is_refused_before_the_first_game(words, message, typed):
    done = typed("train", *WORDS, "policy=layers", *words.split(), "out=run")
    assert done.returncode == 2
    assert message in done.stderr
    assert json.loads(Path("run/run.json").read_text())["games"] == 0
    assert not any(Path("run/checkpoints").iterdir())


def test_the_state_of_a_learner_may_have_slashes_and_its_metrics_tensors(typed):
    run = trained("run", "learner=stateful", "learner.kind=slash")
    assert typed("resume", "run", "games=60").returncode == 0
    counts = [line.get("train/count") for line in read_metrics(run / "metrics.jsonl")]
    assert [count for count in counts if count] == [1, 2, 3, 4, 5, 6]


class Longest(Callback):
    def on_update(self, games, metrics, moves, final_states):
        assert len(moves) == final_states.num_moves
        return {"longest": final_states.turns.max()}


def test_what_an_added_callback_returns_is_logged():
    before = list(ADDED)
    rlgames.add_callback(Longest())
    rlgames.add_callback(Longest())  # of a module that was loaded again
    try:
        assert len(ADDED) == len(before) + 1
        run = trained("run", "learner=ppo")
    finally:
        ADDED[:] = before
    longest = [line.get("train/longest") for line in read_metrics(run / "metrics.jsonl")]
    assert all(5 <= each <= 9 for each in longest if each is not None)
    assert any(longest)
    with pytest.raises(TypeError, match="is not a Callback"):
        rlgames.add_callback(Longest)


def test_torch_goes_on_after_a_seeded_block_as_before():
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    with torch_seeded(Rng(1, "x")):
        assert torch.equal(torch.rand(3), torch.rand(3, generator=Rng(1, "x").generator()))
    assert torch.equal(torch.rand(4), expected)


def test_a_reward_of_the_wrong_length_ends_a_training_in_one_line(typed):
    class PerGame(Reward):
        def rewards(self, trajectories, final_states):
            return torch.ones(trajectories.num_games)

    before = dict(registry.REGISTRY["reward"])
    rlgames.register("reward", "pergame", PerGame)
    try:
        words = [word for word in WORDS if not word.startswith("reward")]
        for learner in ("ppo", "reinforce"):
            done = typed("train", *words, "reward=pergame", "policy=layers", f"learner={learner}")
            assert done.returncode == 2
            assert "reward=pergame returned 10 numbers for " in done.stderr
    finally:
        registry.REGISTRY["reward"].clear()
        registry.REGISTRY["reward"].update(before)
