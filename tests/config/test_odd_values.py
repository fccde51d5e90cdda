"""Odd values of every key: each is refused in one line, or arrives as it was set."""

import math
import os
import pickle

import pytest
from helpers import check_message
from markers import one_in

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import key_fields
from rlgames.config.typed import checked_value, make_option
from rlgames.core.errors import ConfigError

NUMBERS = [0, -1, -0.0, 1.5, 2**31, 2**63, 2**64, math.nan, math.inf, -math.inf, 10**400, 1e-320]
WORDS = ["???", "", " ", "null", "yes", "a b", "a,b", "'it", '"', "a=b", "é漢🎲", "x" * 9999, "٣"]
WORDS += ["\x1b[31mred", "a\nb", "\0", "$", "\\", "~", "1 # c", "../../etc/passwd", "%s", "01"]
LISTS = [[], [[]], [[[[1]]]], [1, "2"], [True], [None], ["???"], [math.nan], [1.5], [-1, 0, 1]]
ODD_VALUES = [*NUMBERS, *WORDS, *LISTS, None, True, {}, {"a": 1}]

SCHEMAS = {*COMMAND_SCHEMAS.values()}
SCHEMAS |= {option.schema for options in REGISTRY.values() for option in options.values()}
KEYS = [(schema, name) for schema in SCHEMAS for name in key_fields(schema) if name != "name"]


def means(result, value):
    """Whether a result is what was set: the same number, text, word in a list, or path."""
    if isinstance(value, list) and isinstance(result, list):
        return all(map(means, result, value))
    if isinstance(value, str) and isinstance(result, int | float):
        return result == float(value)
    if isinstance(value, str):
        return result in (value, [value], os.path.expanduser(value))
    return result in (value, str(value))


def test_every_odd_value_of_every_key_is_refused_or_arrives_as_it_was_set():
    accepted = 0
    for schema, name in KEYS:
        for value in ODD_VALUES:
            try:
                result = checked_value(schema, name, value)
            except ConfigError as error:
                check_message(error)
            else:
                accepted += 1
                assert means(result, value), (schema, name, value)
    assert 0.02 < accepted / len(KEYS) / len(ODD_VALUES) < 0.4


WHOLE = [
    *("seed=???", "out=???", "policy.layers=[???]", "opponent.name=run", "policy.name=???"),
    *("policy.name=${nope}", "lr=${lr}", "learner=null", "search={}", "policy={name:mlp}"),
    *("lr=é", "plugins=[1.5]", "out='\0'", "seed=1=2", "=1", "seed"),
    *("seed=nan", "seed=1e400", "lr=-inf", "seed=0x10", "games=range(0,3)"),
    "seed=" + "9" * 5000,
    "policy.layers=" + "[" * 200 + "]" * 200,
]


@pytest.mark.parametrize("word", one_in(6, WHOLE), ids=lambda word: word[:20])
def test_an_odd_word_is_refused_in_one_line(word):
    with pytest.raises(ConfigError) as raised:
        load_config(TrainConfig, ["game=tictactoe", word])
    check_message(raised.value)


@pytest.mark.parametrize("group", REGISTRY)
def test_every_option_can_be_sent_to_another_process(group):
    for name in option_names(group):
        values = {"run": {"path": "RUN"}, "program": {"command": "x"}}.get(name, {})
        option = make_option(group, name, **values)
        assert pickle.loads(pickle.dumps(option)) == option
