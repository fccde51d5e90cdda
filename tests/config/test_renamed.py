"""Former names: each present name exists, and no former name does."""

from dataclasses import fields

from rlgames.config import catalogue, registry
from rlgames.config.command_schemas import TrainConfig
from rlgames.config.renamed import RENAMED_KEYS, RENAMED_OPTIONS, RENAMED_VALUES


def keys_of_group(group):
    """The fields of every schema of a group, by name."""
    schemas = (
        [TrainConfig]
        if group == "train"
        else [part.schema for part in registry.REGISTRY[group].values()]
    )
    return {item.name: item for schema in schemas for item in fields(schema)}


def test_options_have_only_their_present_names():
    for group, names in RENAMED_OPTIONS.items():
        assert {*names.values()} <= {*catalogue.options(group)}
        assert not {*names} & {*catalogue.options(group)}


def test_keys_have_only_their_present_names():
    for group, names in RENAMED_KEYS.items():
        assert {*names.values()} <= {*keys_of_group(group)}
        assert not {*names} & {*keys_of_group(group)}


def test_values_have_only_their_present_names():
    for group, keys in RENAMED_VALUES.items():
        for key, values in keys.items():
            choices = keys_of_group(group)[key].metadata["of"]
            assert {*values.values()} <= {*choices}
            assert not {*values} & {*choices}
