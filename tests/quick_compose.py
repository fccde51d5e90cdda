"""Composes configs as Hydra does, and what Hydra makes of the same options only once per process.

Half of the time of the quick tests was Hydra's: it reads two dozen files for each config.
"""

import pickle
import re
from functools import cache
from unittest.mock import patch

from hydra import compose as compose_all
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.override_parser.overrides_parser import OverridesParser

from rlgames.config.conf import conf_dir

GROUPS = {path.name for path in conf_dir().iterdir() if path.is_dir()}


LOADED: dict[object, bytes] = {}


def load_once(self, config_path, load=ConfigRepository.load_config):
    """A file as Hydra reads it."""
    key = (*((type(source), source.path) for source in self.sources), config_path)
    if key not in LOADED:
        LOADED[key] = pickle.dumps(load(self, config_path))
    return pickle.loads(LOADED[key])


@cache
def composed_options(command, options):
    with patch.object(ConfigRepository, "load_config", load_once):
        return pickle.dumps(compose_all(command, [*options], return_hydra_config=True))


def are_files(word):
    """Whether the options that a word chooses are files of conf/: those of plugins may change."""
    group, _, value = word.lstrip("~").partition("=")
    names = filter(None, (name.strip(" '\"") for name in value.strip("[]").split(",")))
    folder = conf_dir() / group.partition("@")[0]
    return all((folder / f"{name}.yaml").is_file() for name in names)


def compose(command, overrides, return_hydra_config):
    """The same as hydra.compose, except for what the config says about its own overrides."""
    options = [word for word in overrides if re.split("[=@]", word.lstrip("~"))[0] in GROUPS]
    try:
        assert all(map(are_files, options))
        words = [word for word in overrides if word not in options]
        values = OverridesParser.create().parse_overrides(words)
        assert not any(value.is_sweep_override() or value.is_hydra_override() for value in values)
        config = pickle.loads(composed_options(command, tuple(options)))
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
    except Exception:  # Hydra says what is wrong
        return compose_all(command, overrides, return_hydra_config=return_hydra_config)
    return config
