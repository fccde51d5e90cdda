"""`rlgames games NAME` shows what a game has; names in listings are not paths."""

import json

import pytest
from helpers import command

from rlgames.core.errors import ConfigError


def test_names_are_not_paths_and_help_explains_the_command(typed, tmp_path):
    (tmp_path / "hex").mkdir()
    assert typed("games", "hex").returncode == 0
    assert typed("games", "hex", "--help").stdout.startswith("rlgames games: ")


def test_a_game_is_shown_with_its_keys_and_its_solver():
    report = command("games", ["hex"]).as_dict()
    assert report["solver"] == "proof-number search, for two-player board games"
    assert not report["is_in_reach"]
    small = command("games", ["hex"], ["board=3"]).as_dict()
    assert small["keys"]["board"]["value"] == 3
    assert small["solver"] == "lists all positions"
    assert small["is_in_reach"]
    json.dumps(small)
    with pytest.raises(ConfigError, match="no game is called"):
        command("games", ["hx"])
