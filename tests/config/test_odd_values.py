"""Odd values of every key: each is refused in one line, or arrives as it was typed."""

import os
import pickle
import resource
import time
from collections.abc import Iterator
from dataclasses import Field, FrozenInstanceError, dataclass, replace
from functools import cache
from typing import Any

import pytest
from helpers import check_message
from markers import one_in
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.cli.table import COMMANDS
from rlgames.config.commands import EnvConfig, LaunchConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.files import Files
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, key_fields
from rlgames.config.typed import checked_value, to_plain
from rlgames.config.words import Grammar, parse
from rlgames.core.errors import ConfigError
from rlgames.factory import memory

NUMBERS = ["0", "-1", "-0.0", "1.5", "2147483648", "9223372036854775808", "18446744073709551616"]
NUMBERS += ["nan", "inf", "-inf", "1e400", "-1e400", "1e-400", "9" * 5000, "01", "0x10", "1_000"]
NUMBERS += ["+1", "٣", "1e3"]
WORDS = [
    "???",
    "",
    "' '",
    "null",
    "true",
    "yes",
    "a b",
    "a,b",
    "'it",
    '"',
    "a=b",
    "é漢🎲",
    "x" * 9999,
]
WORDS += ["\x1b[31mred", "a\nb", "'\0'", "$", "\\", "~", "[1", "1 # c", "../../etc/passwd", "%s"]
LISTS = ["[]", "[[]]", "[[[[1]]]]", "[" * 200 + "]" * 200, "[1,'2']", "[true]", "[null]", "[???]"]
LISTS += ["[nan]", "[1.5]", "{}", "{a:1}", "[-1,0,1]"]
MEANINGS = ["${oc.env:HOME}", "${nope}", "${seed}", "${", "${.}", "${eval:1}", "choice(1,2)"]
MEANINGS += ["range(0,3)", "tag(a,1)", "int(3)", "str(3)"]
NAMED = {"null": (None,), "true": (True,), "int(3)": (3,), "str(3)": ("3",)}
ODD_VALUES = [*NUMBERS, *WORDS, *LISTS, *MEANINGS]


@dataclass(frozen=True)
class Key:
    """A key of a schema. prefix: the group of the option that has it, "" for a command."""

    schema: type
    prefix: str
    item: Field[Any]

    @property
    def typed(self) -> str:
        name = self.item.name
        return name if self.prefix in ("", "game") else f"{self.prefix}.{name}"


def every_key() -> list[Key]:
    """The keys of all commands, and of all options of all groups; inherited ones once."""
    schemas = [each.config for each in COMMANDS.values()]
    schemas += [LaunchConfig, EnvConfig]
    keys = [Key(schema, "", item) for schema in schemas for item in key_fields(schema).values()]
    for group, options in REGISTRY.items():
        for option in options.values():
            keys += [Key(option.schema, group, item) for item in key_fields(option.schema).values()]
    different: dict[Any, Key] = {}
    for key in keys:
        metadata = (str(key.item.type), *map(str, key.item.metadata.values()))
        different.setdefault((key.typed, metadata), key)
    return [key for key in different.values() if key.item.name != "name"]


EVERY_CASE = [(key, value) for key in every_key() for value in ODD_VALUES]


def test_a_config_is_frozen_and_has_only_its_keys():
    config = LaunchConfig(dry_run=True)
    with pytest.raises(FrozenInstanceError):
        config.dry_run = False  # type: ignore[misc]
    with pytest.raises(TypeError, match="LaunchConfig has no dryrun"):
        LaunchConfig(dryrun=True)  # type: ignore[call-arg]
    assert replace(config, exist_ok=True) == LaunchConfig(dry_run=True, exist_ok=True) != config
    assert LaunchConfig() == LaunchConfig(config=None)


def test_every_option_can_be_sent_to_another_process():
    for options in REGISTRY.values():
        for option in options.values():
            config = option.schema()
            assert pickle.loads(pickle.dumps(config)) == config


@cache
def grammar(schema: type) -> Grammar:
    return Grammar(schema, Files())


def arrived(key: Key, value: str) -> Any:
    """What a config holds after key=value was typed; raises ConfigError for what is refused.

    As load_config, without composing all other keys: that takes Hydra half a second.
    """
    schema = TrainConfig if key.prefix else key.schema
    override = parse(grammar(schema).for_parser(f"{key.typed}={value}"))
    if override.is_sweep_override():
        raise ConfigError(f"{key.typed} names several values")
    try:
        node = OmegaConf.create({"value": override.value()})
        plain = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException:  # which is reported as an error of its own
        raise ConfigError(f"{key.typed} cannot be merged") from None
    assert isinstance(plain, dict)
    return checked_value(key.schema, key.item.name, plain["value"])


def means(result: Any, key: Key, value: str) -> bool:
    """Whether this is what an accepted value says: its text, or its number, list or choice."""
    text = value.removeprefix("'").removesuffix("'")
    if value.startswith(("${", "[[")):
        return True  # what another key says, and lists that no key holds
    if key.item.metadata.get("is_text") and value != "null":
        is_path = key.item.metadata.get("is_path")
        return bool(result == (os.path.expanduser(text) if is_path else text))
    if value in NAMED:
        is_one = isinstance(result, list) and len(result) == 1  # a word where a list is due
        return result in NAMED[value] or (is_one and result[0] in NAMED[value])
    if isinstance(result, list):
        parts = [part.strip("'") for part in text.strip("[]").split(",") if part]
        is_words = any(isinstance(each, str) for each in result)
        return bool(result == (parts if is_words else [float(part) for part in parts]))
    if isinstance(result, str):
        return result == text
    if isinstance(result, int) and not {"e", "."} & {*text}:
        return bool(result == int(text))
    return bool(result == float(text))


def check_case(key: Key, value: str) -> bool:
    """Whether the value is accepted."""
    begin = time.process_time()
    try:
        result = arrived(key, value)
    except ConfigError as error:
        check_message(error)
        return False
    finally:
        assert time.process_time() - begin < 2, (key.typed, value[:40])
    assert result == result, (key.typed, value)  # NaN is nothing to compute with
    assert means(result, key, value), (key.typed, value, result)
    return True


def check_cases(cases: list[tuple[Key, str]]) -> int:
    """How many are accepted, all together with little memory."""
    check_case(*cases[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = sum(check_case(key, value) for key, value in cases)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # KiB
    return count


def test_a_sample_of_odd_values_is_refused_or_arrives_as_typed():
    assert len(every_key()) >= 150
    step = len(EVERY_CASE) // 200 | 1
    check_cases(EVERY_CASE[::step])


@pytest.mark.slow
def test_every_odd_value_of_every_key_is_refused_or_arrives_as_typed():
    accepted = check_cases(EVERY_CASE)
    assert 0.02 < accepted / len(EVERY_CASE) < 0.4, accepted


@pytest.mark.parametrize(
    "word",
    one_in(
        12,
        [
            *("seed=???", "out=???", "policy.layers=[???]", "opponent.name=run", "policy.name=???"),
            *("policy.name=${nope}", "lr=${lr}", "learner=null", "search={}", "policy={name:mlp}"),
            *(
                "seed=" + "9" * 5000,
                "out=" + "x" * 100_000,
                "policy.layers=" + "[" * 200 + "]" * 200,
            ),
            *(
                "lr=é",
                "lr='1'",
                "device=1e400",
                "plugins=[1.5]",
                "out='\0'",
                "seed=1=2",
                "=1",
                "seed",
            ),
        ],
    ),
)
def test_what_cannot_be_is_refused_whole(word):
    with pytest.raises(ConfigError) as raised:
        load_config(TrainConfig, ["game=tictactoe", word])
    check_message(raised.value)


def whole_configs() -> Iterator[Any]:
    """A deterministic sample of cases of keys that a training has, with the options they need."""
    for number, (key, value) in enumerate(EVERY_CASE):
        if key.prefix == "" and key.schema is not TrainConfig:
            continue
        if key.prefix in ("hparams_search", "player") or number % 97:
            continue
        names = REGISTRY[key.prefix] if key.prefix else {}
        option = next((name for name, part in names.items() if part.schema is key.schema), None)
        yield pytest.param(option, key, value, id=f"{key.typed}={value[:20]!r}")


@pytest.mark.slow
@pytest.mark.parametrize(("option", "key", "value"), list(whole_configs()))
def test_whole_configs_hold_what_was_typed(option, key, value):
    words = [f"{key.prefix}={option}"] if option else []
    try:
        config = load_config(TrainConfig, [*words, f"{key.typed}={value}"])
    except ConfigError as error:
        check_message(error)
        return
    node = to_plain(config)[key.prefix] if key.prefix else to_plain(config)
    assert means(node[key.item.name], key, value)


HUGE = {
    "train experiment=connect4_mlp best_by=exploitability policy.layers=[4096,4096]": (
        "too large for best_by"
    ),
    "train game=tictactoe eval_games=100000000": "eval_games=100000000 may need",
    "train game=tictactoe policy=conv policy.channels=[4096,4095]": "167,895,039 weights",
    "train game=tictactoe learner=dqn policy.layers=[4096,4096]": "sampling=epsilon_greedy fits",
    "arena random exact game=tictactoe games=1000000000": "games=1000000000 may need",
    "eval player=random game=2048 search=dedieu_amar search.depth=1000000000": (
        "search.simulations=100 may need"
    ),
    "eval player=random game=tictactoe games=9223372036854775808": "may need",
    "eval player=random game=tictactoe games='²'": "games=² is not a choice; available: all, auto",
}


@pytest.mark.parametrize("line", one_in(4, HUGE))
def test_what_is_huge_is_refused_at_once_and_takes_no_memory(line, typed, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 24 << 30)
    typed("eval", "player=random", "game=tictactoe", "games=0")  # which imports what is needed
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    done = typed(*line.split())
    assert time.process_time() - begin < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before < 300 * 1024  # KiB
    assert done.returncode == 2, done.stderr
    assert HUGE[line] in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_a_missing_value_in_one_line(command, rlgames, tmp_path):
    schema = COMMANDS[command].config
    if schema is None or COMMANDS[command].runs == "required":
        pytest.skip("it reads its config after that of a run")
    for name in {*key_fields(schema)} - {"plugins"}:
        words = ["random", "exact"] if command == "arena" else []
        words += ["game=tictactoe"] if "game" in groups_of(schema) else []
        done = rlgames(command, *words, f"{name}=???")
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []
