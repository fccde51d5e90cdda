"""Errors for unknown keys, options and values: the present name of a former one, or the nearest."""

from __future__ import annotations

from collections.abc import Sequence

from rlgames.config.registry import LIST_GROUPS, group_of, options_of
from rlgames.config.renamed import RENAMED_KEYS, RENAMED_OPTIONS, RENAMED_VALUES
from rlgames.config.synonyms import key_synonyms, option_synonym, options_with
from rlgames.core.errors import ConfigError, nearest


def unknown_key(name: str, names: Sequence[str], hint: str = "") -> ConfigError:
    """The error for a key, as it is typed, that is none of these. hint: what to say of many."""
    new_name = _present_key(name)
    if new_name in names:
        return ConfigError(f"{name} is now {new_name}", f"write {new_name}=")
    if synonym := _synonym_hint(name, names) or _unchosen_option(name, names):
        return ConfigError(f"no key is called {name!r} here", synonym)
    suggestion = nearest(name, list(names))
    if hint and not suggestion.startswith("did you mean"):
        suggestion = hint
    return ConfigError(f"no key is called {name!r} here", suggestion)


def unknown_option(group: str, name: str, names: Sequence[str]) -> ConfigError:
    """The error for an option of a group that is none of these."""
    new_name = RENAMED_OPTIONS.get(group_of(group), {}).get(name)
    if new_name in names:
        return ConfigError(f"{group}={name} is now {group}={new_name}")
    if synonym := option_synonym(group, name, names):
        return ConfigError(f"no {group} is called {name!r}", f"write {group}={synonym}")
    return ConfigError(f"no {group} is called {name!r}", nearest(name, list(names)))


def unknown_value(key: str, value: str, choices: Sequence[str]) -> ConfigError:
    """The error for a value of a key, as it is typed, that is none of the choices."""
    group, _, name = key.rpartition(".")
    new_value = RENAMED_VALUES.get(group_of(group), {}).get(name, {}).get(value)
    if new_value in choices:
        return ConfigError(f"{key}={value} is now {key}={new_value}")
    return ConfigError(f"{key}={value} is not a choice", nearest(value, list(choices)))


def _synonym_hint(name: str, names: Sequence[str]) -> str:
    """What to write for a key that other libraries have; empty for any other."""
    synonyms = [synonym for synonym in key_synonyms(name) if synonym.key != name]
    for synonym in synonyms:
        if synonym.key in names:
            return f"write {synonym.key}=" + (f"; {synonym.note}" if synonym.note else "")
    for synonym in synonyms:
        group, dot, _ = synonym.key.partition(".")
        options = options_with(synonym.key) if dot and group in names else []
        if options:
            return f"{synonym.key} is a key of {group}={' or '.join(options)}"
    return ""


def _unchosen_option(name: str, names: Sequence[str]) -> str:
    """What to write for a key of an option that was not chosen, of a group that can hold several;
    empty for any other."""
    group, _, rest = name.partition(".")
    option = rest.partition(".")[0]
    if group in LIST_GROUPS and option in options_of(group) and f"{group}.{option}" not in names:
        return f"it is a key of {group}={option}, which is not chosen"
    return ""


def _present_key(name: str) -> str | None:
    """The present name of a key, with its group; None for one that was never renamed."""
    group, dot, key = name.rpartition(".")
    renamed = RENAMED_KEYS.get(group_of(group) if dot else "train", {})
    return f"{group}{dot}{renamed[key]}" if key in renamed else None
