"""Resuming an untrusted run: it is refused in one line, or harmless."""

import copy
import json
import math
import random
import shutil
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import resumable
from markers import one_in
from recorded_games import make_game_and_rules
from run_files import flat
from untrusted_files import RUNS, trained

from rlgames.config.conf import option_names
from rlgames.core.errors import ConfigError, NonFiniteError
from rlgames.players.player import Random
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.training.parts import build_training
from rlgames.training.progress import Progress
from rlgames.training.train import restore, resume

GAMES = [[f"game={name}"] for name in option_names("game")]
SMALL_GAMES = [
    ["game=2048", "board=2", "columns=2"],
    ["game=2048", "board=1", "columns=3"],
    ["game=salvo", "board=3", "ships=[2,2]", "shots=2", "aim=sequential", "show=[sunk,first_hit]"],
    ["game=salvo", "board=3", "ships=[1]", "shots=4", "aim=joint"],
    ["game=salvo_duel", "board=2", "ships=[2]"],
    ["game=connect4", "rows=3", "columns=3", "line=3"],
]


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    """A function: name to the directory of a run, its config with more games, its checkpoint."""
    folder, kept = tmp_path_factory.mktemp("runs"), {}

    def run(name):
        if name not in kept:
            path = trained(name, folder / name)
            kept[name] = path, *resumable(path, "games=16")[:2]
        return kept[name]

    return run


def load(make_run, name, state):
    """Restore a state into the run of that name."""
    _, cfg, checkpoint = make_run(name)
    changed = Checkpoint(checkpoint.config, checkpoint.games, checkpoint.policy, state)
    training = build_training(cfg, checkpoint)
    restore(training, Progress(cfg), changed)
    return training


def edited(make_run, name, path, value):
    """A run's state with another value at a path; with ... that path is deleted."""
    state = copy.deepcopy(make_run(name)[2].state)
    *groups, key = path.split("/")
    node = state
    for group in groups:
        node = node[group]
    if value is ...:
        del node[key]
    else:
        node[key] = value(node[key]) if callable(value) else value
    return state


def filled_with(value):
    return lambda tensor: torch.full_like(tensor, value)


def reshaped(tensor):
    return torch.zeros(*tensor.shape, 2, dtype=tensor.dtype)


POOL = "source/pool"


def each(name: str, path: str, *values: Any) -> list[tuple[str, str, Any]]:
    return [(name, path, value) for value in values]


REFUSED = [
    ("plain", "progress", [1, 2]),
    *each("plain", "progress/games", ..., 9, True, 10**30),
    ("plain", "progress/seconds", math.nan),
    ("plain", "progress/line/sums", {"loss": 1.0}),
    *each("plain", "learner/optimizer", [], {"99": {}}),
    *each("plain", "learner/optimizer/0/exp_avg", ..., reshaped, filled_with(math.nan), 3.0),
    *each("plain", "source", ..., []),
    *each("past", "source/players/1/copies", [1, 2], {str(number): {} for number in range(11)}),
    ("past", "source/players/1/copies/0/policy/logits.bias", filled_with(math.nan)),
    *each("dqn", "learner/buffer/num_added", -1, 10**6),
    *[("dqn", f"learner/buffer/columns/{n}", reshaped) for n in (0, 8)],
    *[("dqn", f"learner/buffer/columns/{n}", filled_with(-1)) for n in (1, 4, 5)],
    ("dqn", "learner/target", {}),
    ("behavior_cloning", "learner/lowest_loss", math.nan),
    ("open", "learner/values/errors", reshaped),
    *each("open", f"{POOL}/state/words", *map(filled_with, (1 << 40, -1)), torch.Tensor.int),
    ("open", f"{POOL}/state/current_seat", filled_with(7)),
    ("open", f"{POOL}/state/turn", filled_with(-(10**15))),
    ("open", f"{POOL}/batch", 10**12),
    ("open", f"{POOL}/game_index", filled_with(-1)),
    ("sea", f"{POOL}/state/ships", filled_with(9)),
    ("sea", f"{POOL}/state/aimed", filled_with(True)),
]


@pytest.mark.parametrize(("name", "path", "value"), one_in(2, REFUSED))
def test_an_impossible_state_is_refused_in_one_line(name, path, value, make_run):
    with pytest.raises(BadCheckpoint) as error:
        load(make_run, name, edited(make_run, name, path, value))
    assert error.value.error.isprintable()
    assert len(error.value.error) < 500


@pytest.mark.parametrize("words", one_in(2, [*GAMES, *SMALL_GAMES]), ids=str)
def test_every_position_that_is_reached_is_valid(words):
    game, _ = make_game_and_rules(*words)
    rng = Rng(0)
    games = GamePool(game, [Random(game) for _ in range(game.spec.seats)], 10_000, rng, batch=20)
    for _ in range(20):
        moves, results = games.collect(7)
        for state in (moves.state, results.state, games.state, game.initial(20, rng)):
            assert game.is_valid(state).all()


ODD = [-1, 0, 10**6, 1.5, math.nan, "x", None, True, [], [1], {}, {"a": 1}, ..., torch.zeros(2)]
ODD += [reshaped, *map(filled_with, (0, 1, 100)), lambda tensor: tensor[:1], torch.Tensor.double]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_part_of_a_state_changed_is_refused_or_harmless(name, make_run, tmp_path):
    """Each part replaced by some odd values; what is not refused is resumed to its end.

    Of the other runs, only the parts that the plain one lacks.
    """
    path, cfg, checkpoint = make_run(name)
    shutil.copytree(path, tmp_path / "run")
    usual = set() if name == "plain" else places(make_run("plain")[2].state)
    for place in sorted(places(checkpoint.state) - usual):
        for value in random.Random(place).sample(ODD, 6):
            try:
                state = edited(make_run, name, place, value)
            except (AttributeError, TypeError, RuntimeError, IndexError):
                continue  # a change for tensors only
            changed = Checkpoint(checkpoint.config, checkpoint.games, checkpoint.policy, state)
            try:
                resume(tmp_path / "run", cfg, changed)
            except (BadCheckpoint, NonFiniteError):
                continue


def places(state):
    """The paths of all leaves of a state and of the trees that contain them."""
    parts = [path.split("/") for path in flat(state)]
    return {"/".join(path[: count + 1]) for path in parts for count in range(len(path))}


# ---------------------------------------------------------------- files beside the checkpoint


@pytest.fixture
def run(make_run, tmp_path):
    shutil.copytree(make_run("plain")[0], tmp_path / "run")
    return tmp_path / "run"


DEEP = "[" * 100_000 + "]" * 100_000
LINES = ["[]", DEEP, '{"games": -1}', '{"games": 8, "x": "y"}', '{"games": 8, "x": 1' + "0" * 400]


@pytest.mark.parametrize("text", LINES, ids=lambda text: text[:12])
def test_odd_metrics_are_cut_off(text, run, typed):
    first = (run / "metrics.jsonl").read_text().splitlines()[0]
    (run / "metrics.jsonl").write_text(f"{first}\n{text}\n")
    result = typed("resume", "run", "games=16")
    assert result.returncode == 0, result.stderr
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert lines[0] == first
    assert all(json.loads(line)["games"] > 8 for line in lines[1:])


PROVENANCE = ["", "[]", DEEP, '{"resumed": 5}', '{"status": ["done"]}', '{"pid": "\\u001b[31m"}']


@pytest.mark.parametrize("text", PROVENANCE, ids=lambda text: text[:12])
def test_odd_provenance_does_not_matter(text, run, typed):
    (run / "run.json").write_text(text)
    result = typed("resume", "run", "games=16")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout + result.stderr


def test_configs_and_reports_of_a_run_are_not_read(run, typed):
    (run / "reports").mkdir(exist_ok=True)
    for name in ("config.yaml", "reports/eval.json"):
        (run / name).write_text("${oc.env:HOME}: !!python/object/apply:os.mkdir [marker]\n" + DEEP)
    assert typed("resume", "run", "games=16").returncode == 0
    assert typed("eval", "run", "games=4").returncode == 0
    assert not (run.parent / "marker").exists()


@pytest.mark.parametrize("part", ["buffer_size", "minibatch_size", "eval_games", "batch"])
def test_more_memory_than_available_is_refused(part, make_run, monkeypatch):
    """games= may ask for 10^12 games; the memory for them is counted first."""
    _, cfg, checkpoint = make_run("dqn")
    changed = {part: {"buffer_size": 10**12, "minibatch_size": 10**10}.get(part, 10**11)}
    if not hasattr(cfg, part):
        changed = {"learner": replace(cfg.learner, **changed)}
    cfg = replace(cfg, games=10**12, **changed)
    with pytest.raises(ConfigError, match=f"{part}=.* GiB"):
        build_training(cfg, checkpoint)
