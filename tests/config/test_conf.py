"""conf/ is the source of values: it has what the schemas ask for, and Hydra alone composes it."""

import sys

import hydra
import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra
from markers import one_in
from omegaconf import OmegaConf

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.files import Files, conf_dir
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, key_fields
from rlgames.config.typed import from_plain, to_plain, typed

FILES = Files()
OPTIONS = [(group, name) for group in REGISTRY for name in FILES.names(group)]
PRESETS, GAMES = FILES.names("experiment"), FILES.names("game")


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_the_file_of_an_option_has_exactly_the_keys_of_its_schema(group, name):
    values = FILES.option_values(group, name)
    schema = REGISTRY[group][values["name"]].schema
    assert values["name"] == name
    assert values.keys() == key_fields(schema).keys()
    if values.get("path") == "???":
        values["path"] = "RUN"
    typed(schema, values)
    assert FILES.about(group, name)


@pytest.mark.parametrize("group", REGISTRY)
def test_each_option_has_a_file(group):
    assert FILES.names(group) == sorted(REGISTRY[group])


@pytest.mark.parametrize("command", COMMAND_SCHEMAS)
def test_the_file_of_a_command_has_exactly_the_keys_of_its_schema(command):
    content, schema = FILES.read(command), COMMAND_SCHEMAS[command]
    groups = {key for key in content.choices if not key.startswith("hydra/")}
    assert groups - {"experiment"} == groups_of(schema).keys()
    assert content.values.keys() - {"hydra"} == key_fields(schema).keys()


def test_every_key_has_help_and_no_default_in_python():
    schemas = [each.schema for options in REGISTRY.values() for each in options.values()]
    for schema in [*schemas, *COMMAND_SCHEMAS.values()]:
        for name, item in key_fields(schema).items():
            assert name == "name" or item.metadata["help"], (schema, name)
            with pytest.raises(TypeError, match="needs"):
                schema()


def plain_app(*words):
    """What ten lines with hydra.main compose, with its types."""
    composed = []

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")
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


@pytest.mark.parametrize("game", one_in(4, GAMES))
def test_rlgames_adds_the_preset_of_the_game(game, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config(TrainConfig, [f"game={game}"])
    assert plain_app(f"experiment='{game}'") == config
    plain = load_config(TrainConfig, ["experiment=null", f"game={game}"])
    assert plain_app(f"game='{game}'") == plain
    # Who changes the policy does not change the game.
    assert plain.game == config.game
    assert plain.reward.scored == "goal"


def test_a_plain_hydra_app_takes_words_as_hydra_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["experiment=hex", "game.board=5", "player@opponent=past", "opponent.keep=3", "lr=1e-3"]
    short = ["game=hex", "board=5", "opponent=past", "opponent.keep=3", "lr=1e-3"]
    assert plain_app(*words) == load_config(TrainConfig, short)


@pytest.mark.parametrize("name", one_in(6, PRESETS))
def test_a_stored_config_is_read_as_it_was_written(name):
    config = load_config(TrainConfig, [f"experiment={name}"])
    assert from_plain(yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


@pytest.mark.parametrize("name", one_in(6, PRESETS))
def test_files_are_read_without_hydra_as_hydra_composes_them(name):
    values = FILES.composed("train", {"experiment": [name]}).values
    if values["game"].get("columns") == "${.board}":
        values["game"]["columns"] = values["game"]["board"]
    assert typed(TrainConfig, values) == load_config(TrainConfig, [f"experiment={name}"])
