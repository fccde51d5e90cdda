"""rlgames in Python: reports as data frames, errors that say what to do."""

import sys
from pathlib import Path

import pytest
import torch
from helpers import SMALL_TRAINING

import rlgames
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.overrides import words_of
from rlgames.core.errors import ConfigError, own_place, to_user_error
from rlgames.rng import Rng

SMALL = [*SMALL_TRAINING, "solve_seconds=0"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return rlgames.train([*SMALL, f"out={tmp_path_factory.mktemp('runs')}/run"])


def test_keys_are_words(run):
    odd = Path("a b,c'=\"x\\")
    words = {"game": "tictactoe", "seed": 3, "policy": "mlp", "policy.layers": [8, 4], "out": odd}
    words |= {"init_from": None, "holdout": 1e-5, "policy.skip": False, "logger": ["tensorboard"]}
    config = load_config(TrainConfig, words_of(words))
    assert (config.game.name, config.seed, config.out) == ("tictactoe", 3, str(odd))
    assert (config.policy.layers, config.policy.skip) == ([8, 4], False)
    assert (config.init_from, config.holdout, [*config.logger]) == (None, 1e-5, ["tensorboard"])
    assert rlgames.evaluate(run, ["games=5"], games=7, seed=1)["games"] == 5  # words come last
    assert rlgames.evaluate(run, games=7, seed=1)["games"] == 7
    assert rlgames.evaluate(player="random", game="tictactoe", games=6)["games"] == 6
    with pytest.raises(ConfigError, match="'gmaes' here; did you mean games"):
        rlgames.train(game="tictactoe", gmaes=500)


def test_train_takes_keys(tmp_path):
    small = dict(word.split("=") for word in SMALL) | {"games": 20, "out": tmp_path / "run"}
    assert rlgames.train(**small) == tmp_path / "run"


def test_a_game_has_its_name_and_keys():
    game = rlgames.game("connect4", rows=5)
    assert game.initial(2, Rng()).done.tolist() == [False, False]
    assert game.spec.observation[1:] == (5, 7)
    assert rlgames.game("2048").spec.actions == 4
    with pytest.raises(ConfigError, match="did you mean connect4"):
        rlgames.game("conect4")
    with pytest.raises(ConfigError, match="no key is called 'rosw'"):
        rlgames.game("connect4", rosw=5)


def test_a_string_where_a_list_is_due_is_a_type_error(run):
    for call in (
        lambda: rlgames.train("game=salvo"),
        lambda: rlgames.evaluate(run, "games=10"),
        lambda: rlgames.report(run.parent, "by=run"),
    ):
        with pytest.raises(TypeError, match="pass a list of texts, as in"):
            call()
    with pytest.raises(TypeError, match="overrides contains 5, a int"):
        rlgames.train([5])  # type: ignore[list-item]


def test_an_exception_carries_its_hint():
    with pytest.raises(ConfigError, match="did you mean salvo"):
        rlgames.train(["game=slavo"])
    assert str(ConfigError("wrong", "mend")) == "wrong; mend"
    assert str(ConfigError("wrong")) == "wrong"


def test_a_report_is_a_data_frame(run, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = rlgames.report(run.parent)
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "status"] == "done"
    assert frame.loc[0, "run"] == str(run)
    assert 0 <= frame.loc[0, "points"] <= 1
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs pandas; pip install 'rlgames-lab\[pandas\]'"):
        rlgames.report([run], by="run")


def test_what_is_printed_of_agents_and_games_is_short(run):
    agent = rlgames.load(run)
    text = "<Agent for <tictactoe: 2 seats, 9 actions>: Mlp with "
    assert repr(agent).startswith(text)
    assert repr(agent).endswith(" parameters, Argmax>")


def test_what_fails_in_code_of_ones_own_is_named_with_file_and_line(tmp_path, monkeypatch, typed):
    (tmp_path / "greedy.py").write_text(
        "from rlgames import register\n"
        "from rlgames.players.player import Random\n\n\n"
        "class Greedy(Random):\n"
        "    def choose(self, state, rng):\n"
        "        return state.nothing\n\n\n"
        'register("player", "greedy", Greedy)\n'
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["plugins=[greedy]", "player=greedy", "game=tictactoe", "games=2"]
    try:
        done = typed("eval", *words)
    finally:
        from rlgames.config import registry

        registry.REGISTRY["player"].pop("greedy", None)
        sys.modules.pop("greedy", None)
    assert done.returncode == 3
    assert f"it was raised in {tmp_path}/greedy.py, line 7" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_fails_elsewhere_names_no_file():
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2) @ torch.zeros(3)
    assert own_place(caught.value).startswith(f"{__file__}, line ")
    error = caught.value.with_traceback(None)
    assert own_place(error) == ""
    assert "raised" not in to_user_error(error).hint
