"""The words of a command line: short ones, and mistyped ones."""

import pytest
from helpers import check_refused

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.compose import hydra_words, load_config, own_hydra
from rlgames.config.overrides import quoted, read_words, split_flags
from rlgames.core.errors import ConfigError


def words_for_hydra(command, *words):
    """What Hydra is told."""
    flags = split_flags(command, words)
    with own_hydra(flags.folders):
        return hydra_words(command, read_words(command, flags.words, flags.is_sweep), flags)


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        ("train", "board=5", "game.board=5 experiment=salvo"),
        ("train", "game=2048 board=3", "game='2048' game.board=3 experiment='2048'"),
        ("train", "game=hex policy=conv", "game=hex policy=conv"),
        ("train", "game=hex experiment=null", "game=hex"),
        ("train", "game=connect4 policy=mlp", "game=connect4 policy=mlp experiment=connect4_mlp"),
        (
            "train",
            "game=tictactoe learner=dqn",
            "game=tictactoe learner=dqn experiment=tictactoe_dqn",
        ),
        ("train", "opponent=random search=null", "player@opponent=random ~search experiment=salvo"),
        (
            "train",
            "opponent=runs/a lr=1e-3",
            "opponent.path='runs/a' player@opponent=run lr=1e-3 experiment=salvo",
        ),
        ("train", "experiment=hex player@opponent=past opponent.keep=3", None),
        ("train", "experiment=hex logger=[wandb,tensorboard] logger.wandb.mode=offline", None),
        ("train", "experiment=hex hydra.run.dir=x ++lr=0.5", None),
        ("train", "experiment=hex learner=glob(*a*) learner.lr_end=0", None),
        ("eval", "runs/a games=all", "run='runs/a' games=all"),
        ("eval", "s/lr=0.1,seed=0 games=5", "run='s/lr=0.1,seed=0' games=5"),
        ("arena", "game=hex a random+mcts", "players=['a','random+mcts'] game=hex"),
        ("games", "2048", "game='2048'"),
        ("report", "a b where=lr<1,seed=0", "runs=['a','b'] where='lr<1,seed=0'"),
        ("show", "state=a,b|'", r"state='a,b|\''"),
    ],
)
def test_rules_for_words(command, words, expected):
    assert words_for_hydra(command, *words.split()) == (expected or words).split()


def test_a_sweep_has_the_preset_of_each_game_and_names_what_differs():
    words = words_for_hydra("train", "-m", "game=hex,othello", "seed=0,1", "lr=1", "out=o")
    assert words[:3] == ["seed=0,1", "lr=1", "hydra.sweep.dir='o'"]
    assert words[3] == "experiment=hex,othello"
    assert words[4].endswith("exclude_keys=[hydra.sweep.dir,lr]")


@pytest.mark.parametrize("text", ["a b", "it's", "back\\", "\\'", "{a}", "a,b", "${x"])
def test_quoted_text_is_read_back(text):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert OverridesParser.create().parse_override(f"key={quoted(text)}").value() == text


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("train", "bord=4", "no key is called 'bord' here; did you mean board?"),
        ("train", "game=hex swop=true", "did you mean swap?"),
        ("train", "epochs=3", "did you mean learner.epochs?"),
        ("train", "learner.lr=3", "use lr="),
        ("train", "learning_rate=3", "did you mean lr?"),
        ("train", "game=salvoo", "no game is called 'salvoo'; did you mean salvo?"),
        ("train", "experiment=slavo", "no experiment is called 'slavo'; did you mean salvo?"),
        ("train", "game=hex rows=3", "it is a key of game=connect4 or game=breakthrough"),
        ("train", "learner.n_step=2", "it is a key of learner=dqn"),
        (
            "train",
            "experiment=connect4 learner=dqn",
            "which the chosen options do not have; to leave them out, add ~learner.td_lambda",
        ),
        ("train", "somewhere", "somewhere is not key=value"),
        ("eval", "a b", "eval takes one run, and b is another"),
        ("eval", "a lr=2", "a run keeps its training settings"),
        ("eval", "a board=2", "a run keeps its training settings"),
    ],
)
def test_mistyped_words(command, words, message):
    with pytest.raises(ConfigError) as error:
        load_config(COMMAND_SCHEMAS[command], words.split())
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("list", "did you mean games?"),
        ("tune", "did you mean train -m?"),
        ("sweep", "did you mean train -m?"),
        ("Evaluate", "did you mean eval?"),
        ("repotr", "did you mean report?"),
        ("new", "no command is called 'new'; available: "),
        ("train game=chess", "no game is called 'chess'; available: 2048, "),
        ("train --env hex", "use game=VALUE"),
        ("train --learning-rate 0.1", "use lr=VALUE"),
        ("train --lr-end=0", "use learner.lr_end=VALUE"),
        ("train --board=3", "use board=VALUE"),
        ("train --sweep", "did you mean -m?"),
        ("train --dry-run", "did you mean --cfg job?"),
        ("study --dry-run", "use dry_run=VALUE"),
        ("eval --multirnu", "did you mean --multirun?"),
        ("eval --config-dir", "nothing is not a folder"),
        ("train --quick", "--quick is not a flag; --help lists the keys, as in key=value"),
    ],
)
def test_a_suggestion_is_close_or_means_the_same(words, message, typed):
    check_refused(typed(*words.split()), message)


def test_flags_may_stand_anywhere():
    flags = split_flags("train", ["a=1", "-m", "--cfg", "job", "b=2", "-p", "game", "--resolve"])
    assert flags.words == ["a=1", "b=2"]
    assert flags.hydra == ["-m", "--cfg", "job", "-p", "game", "--resolve"]
    assert flags.is_sweep
    assert split_flags("eval", ["--help"]).is_help
