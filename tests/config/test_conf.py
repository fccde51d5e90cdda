"""conf/ is the source of values: it has what the schemas ask for, and Hydra alone composes it."""

import sys
from dataclasses import replace
from inspect import signature

import hydra
import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra
from markers import one_in
from omegaconf import OmegaConf

from rlgames.commands.games import list_presets
from rlgames.commands.train import check_sweep
from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.compose import compose_node, hydra_words, load_config, own_hydra, sweep_jobs
from rlgames.config.conf import about, command_file, conf_dir, option_names, option_values
from rlgames.config.hydra_version import VERSION_BASE
from rlgames.config.overrides import read_words
from rlgames.config.registry import REGISTRY, make
from rlgames.config.schema import groups_of, key_fields
from rlgames.config.typed import from_plain, make_option, to_plain, typed
from rlgames.core.errors import ConfigError
from rlgames.training.parts import check_parts

OPTIONS = [(group, name) for group in REGISTRY for name in option_names(group)]
PRESETS, GAMES = option_names("experiment"), option_names("game")


@pytest.mark.parametrize("name", ["othello", "hex", "2048"])
def test_both_ends_of_the_range_of_a_board_are_boards(name):
    option = make_option("game", name)
    field = key_fields(type(option))["board"]
    for end in ("low", "high"):
        make("game", replace(option, board=field.metadata[end]))


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_the_file_of_an_option_has_exactly_the_keys_of_its_schema(group, name):
    values = option_values(group, name)
    schema = REGISTRY[group][values["name"]].schema
    assert values["name"] == name
    assert values.keys() == key_fields(schema).keys()
    for key in {"path", "command"} & values.keys():  # which no file can set
        assert values[key] == "???"
        values[key] = "RUN"
    typed(schema, values)
    assert about(group, name)


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_what_makes_an_option_has_no_second_value_of_a_key(group, name):
    option = REGISTRY[group][name]
    if option.make is None or option.extra or group == "reward":  # users derive from Reward
        return
    parameters = signature(option.load()).parameters
    keys = [parameters[name] for name in key_fields(option.schema) if name in parameters]
    assert all(key.default is key.empty for key in keys if key.name != "name")


@pytest.mark.parametrize("group", REGISTRY)
def test_each_option_has_a_file(group):
    assert option_names(group) == sorted(REGISTRY[group])


@pytest.mark.parametrize("command", COMMAND_SCHEMAS)
def test_the_file_of_a_command_has_exactly_the_keys_of_its_schema(command):
    (choices, values), schema = command_file(command), COMMAND_SCHEMAS[command]
    assert choices.keys() - {"experiment"} == groups_of(schema).keys()
    assert values.keys() == key_fields(schema).keys()


def plain_app(*words):
    """What ten lines with hydra.main compose, with its types."""
    composed = []

    @hydra.main(config_path=str(conf_dir()), config_name="train", **VERSION_BASE)
    def app(cfg):
        composed.append(OmegaConf.to_container(cfg, resolve=True))

    with pytest.MonkeyPatch.context() as patched:
        GlobalHydra.instance().clear()
        patched.setattr(sys, "argv", ["app.py", *words])
        patched.setenv("HYDRA_FULL_ERROR", "1")
        app()
    return typed(TrainConfig, composed[0])


@pytest.mark.parametrize("name", one_in(7, PRESETS))
def test_a_plain_hydra_app_composes_what_train_composes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert plain_app(f"experiment='{name}'") == load_config(TrainConfig, [f"experiment={name}"])


@pytest.mark.parametrize("game", one_in(4, [name for name in GAMES if name in PRESETS]))
def test_rlgames_adds_the_preset_of_the_game(game, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config(TrainConfig, [f"game={game}"])
    assert plain_app(f"experiment='{game}'") == config
    plain = load_config(TrainConfig, ["experiment=null", f"game={game}"])
    assert plain_app(f"game='{game}'") == plain
    # Who changes the policy does not change the game.
    assert plain.game == config.game
    assert plain.reward.scored == "goal"


LEARNERS = {
    "ppo": ("salvo", "mlp", "stochastic", None),
    "dqn": ("connect4", "mlp", "epsilon_greedy", None),
    "alphazero": ("breakthrough", "mlp", "stochastic", "mcts"),
    "td": ("tictactoe", "table", "epsilon_greedy", None),
    "td_ntuple": ("connect4", "ntuple", "epsilon_greedy", None),
    "td_lambda": ("2048", "mlp", "argmax", None),
    "adp": ("2048", "linear", "argmax", None),
}
"""For each learner a game, and what it brings: a policy, a sampling rule and a search."""


def brought(config):
    return config.policy.name, config.sampling.name, config.search and config.search.name


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_learner_brings_what_works_with_it(learner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game, *expected = LEARNERS[learner]
    reward = "score" if game == "2048" else "goal"
    words = ["experiment=null", f"game={game}", f"learner={learner}", f"reward={reward}"]
    config = load_config(TrainConfig, words)
    assert brought(config) == (*expected,)
    check_parts(config)
    assert plain_app(f"game='{game}'", f"learner={learner}", f"reward={reward}") == config


def test_what_is_chosen_is_kept_beside_what_a_learner_brings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, expected in (
        ("learner=dqn sampling=argmax sampling.ties=random", ("mlp", "argmax", None)),
        ("learner=td policy=ntuple", ("ntuple", "epsilon_greedy", None)),
        ("learner=alphazero search=rollout", ("mlp", "stochastic", "rollout")),
        ("learner=alphazero search=null", ("mlp", "stochastic", None)),
        ("learner=dqn sampling.epsilon=0.3", ("mlp", "epsilon_greedy", None)),
    ):
        assert brought(load_config(TrainConfig, ["experiment=null", *words.split()])) == expected
    for words, remedy in (
        ("learner=dqn sampling=stochastic", "use sampling=epsilon_greedy"),
        ("learner=alphazero search=null", "use search=mcts"),
        ("learner=td policy=mlp", "it trains policy=table"),
    ):
        with pytest.raises(ConfigError, match=remedy):
            check_parts(load_config(TrainConfig, ["game=hex", "experiment=null", *words.split()]))


def test_a_sweep_over_learners_gives_each_what_works_with_it():
    words = ["game=tictactoe", "learner=ppo,reinforce,dqn,alphazero,td"]
    with own_hydra():
        jobs = [*sweep_jobs(hydra_words("train", read_words("train", words)))]
    check_sweep(jobs)
    assert {" ".join(varied): brought(config)[1:] for varied, config in jobs} == {
        "learner=ppo": ("stochastic", None),
        "learner=reinforce": ("stochastic", None),
        "learner=dqn": ("epsilon_greedy", None),
        "learner=alphazero": ("stochastic", "mcts"),
        "learner=td": ("epsilon_greedy", None),
    }


@pytest.mark.parametrize("name", one_in(6, PRESETS))
def test_a_stored_config_is_read_as_it_was_written(name):
    config = load_config(TrainConfig, [f"experiment={name}"])
    assert from_plain(yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


@pytest.mark.parametrize("name", one_in(6, PRESETS))
def test_the_table_of_presets_lists_what_hydra_chooses(name):
    (listed,) = (preset for preset in list_presets() if preset["name"] == name)
    with own_hydra():
        node = compose_node("train", [f"experiment='{name}'"])
    chosen = node.hydra.runtime.choices
    assert {
        group: chosen[group] for group in ("game", "learner", "policy")
    }.items() <= listed.items()
