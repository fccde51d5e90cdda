"""eval compile=true: the same games and results with compiled code."""

import copy
import shutil
from functools import wraps
from multiprocessing import get_context

import pytest
import torch

from rlgames import evaluate
from rlgames.core.errors import ConfigError
from rlgames.evaluation import compile
from rlgames.evaluation.compile import with_compiled_observe
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow

compiled = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


def in_a_fork(test):
    """Run the test in a process of its own: forks of one whose compiler has threads stand still."""

    @wraps(test)
    def run(**values):
        process = get_context("fork").Process(target=test, kwargs=values)
        process.start()
        process.join(300)
        process.kill()
        process.join()
        assert process.exitcode == 0

    return run


@pytest.mark.slow  # compiling takes tens of seconds
@compiled
@pytest.mark.parametrize("threads", [1, 2])
@in_a_fork
def test_compiled_code_plays_the_same_games(threads):
    words = ["player=random", "player.observe=true", "game=connect4", "solve_seconds=0"]
    words += ["batch=512", "games=9000", f"threads={threads}"]
    plain, fast = (evaluate(None, [*words, f"compile={how}"]) for how in ("false", "true"))
    for found in (plain, fast):
        assert found.pop("moves_per_s") > 0
        found.pop("seconds")
    assert plain == fast


@pytest.mark.slow
@compiled
@pytest.mark.parametrize(
    "game", [KInARow(6, 7, 4, True), KInARow(3, 3, 3, False), Battleship(4, 4, [4])]
)
@in_a_fork
def test_compiled_observations_are_the_same(game):
    compile.MIN_COMPILED_BATCH = 8
    rng = torch.Generator().manual_seed(0)
    fast = with_compiled_observe(game, rng)
    assert isinstance(fast, type(game))
    state = game.initial(100, rng)
    for rows in (100, 50, 8, 3):  # small batches are not compiled
        state = state[:rows]
        for _ in range(3):
            action = game.sample_legal_action(state, torch.rand(len(state), generator=rng))
            state = game.step(state, action, rng)
        public = game.public(state)
        assert torch.equal(fast.observe(public), game.observe(public))


def test_a_missing_compiler_is_reported_in_one_line(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ConfigError, match="no no-such-compiler"):
        with_compiled_observe(KInARow(3, 3, 3, False), torch.Generator())


def test_a_game_with_another_observe_is_a_copy_of_the_same_kind():
    game, rng = Battleship(4, 4, [4]), torch.Generator().manual_seed(0)
    state = game.initial(3, rng)
    changed = compile._with_observe(game, lambda state: 2 * game.observe(state))
    assert isinstance(changed, Battleship)
    for each in (changed, copy.deepcopy(changed)):
        assert torch.equal(each.observe(state), 2 * game.observe(state))
    assert game.observe(state).max() == 1
