"""`rlgames new game NAME` writes a game that works; `rlgames games NAME` shows what a game has."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rlgames.commands.listing import games_command
from rlgames.commands.new import new_command
from rlgames.config.registry import REGISTRY
from rlgames.core.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-game.md"


def test_the_page_on_adding_a_game_shows_the_file_that_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new_command(["game", "col"], [])
    (shown,) = re.findall(r"```python col.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert Path("col.py").read_text(encoding="utf-8") == shown


def test_a_new_game_keeps_the_contract_and_trains_at_once(tmp_path, monkeypatch, rlgames):
    monkeypatch.chdir(tmp_path)
    report = new_command(["game", "my_game"], [])
    assert report["written"] == ["my_game.py", "test_my_game.py"]
    namespace: dict[str, Any] = {}
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(REGISTRY, "game", dict(REGISTRY["game"]))
    exec(Path("test_my_game.py").read_text(encoding="utf-8"), namespace)
    namespace["test_the_rules_keep_the_contract"]()
    (train,) = [line for line in report["commands"] if line.startswith("rlgames train")]
    rlgames(*shlex.split(train)[1:], "games=128", "eval_games=10")
    assert Path("my_game/metrics.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["game", "taken"], "taken.py exists, and is not overwritten"),
        (["game", "hex"], "there is a game called hex"),
        (["game", "json"], "there is a module called json"),
        (["game", "My-Game"], "'My-Game' is not a name"),
        (["game", "class"], "'class' is not a name"),
        (["gme", "mine"], "needs what to write"),
        (["game"], "needs what to write, and its name"),
    ],
)
def test_nothing_is_overwritten_or_shadowed(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Path("taken.py").write_text("kept", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(message)):
        new_command(words, [])
    assert [path.name for path in Path().iterdir()] == ["taken.py"]
    assert Path("taken.py").read_text(encoding="utf-8") == "kept"


def test_names_are_not_paths_and_help_explains_the_command(typed, tmp_path):
    (tmp_path / "hex").mkdir()
    (tmp_path / "game").mkdir()
    assert typed("games", "hex").returncode == 0
    assert typed("new", "game", "col").returncode == 0
    assert typed("games", "hex", "--help").stdout.startswith("rlgames games: ")
    assert typed("new", "game", "x", "--help").stdout.startswith("rlgames new: ")
    said = typed("solve", "hex")
    assert (said.returncode, "'hex' is not key=value; use game=hex" in said.stderr) == (2, True)


def test_a_game_is_shown_with_what_it_has_and_why_it_does_not_have_the_rest():
    report = games_command(["hex"], [])
    missing = {each["name"]: each["missing"] for each in report["capabilities"]}
    assert missing["Compiled"] is None
    assert missing["CellBoard"] == "its cells do not show which seat is to move"
    assert "too many" in missing["ExactKey"]
    assert report["solver"] == "proof-number search, for two-player games with compiled rules"
    assert not report["is_in_reach"]
    small = games_command(["hex"], ["board=3"])
    assert small["keys"]["board"]["value"] == 3
    assert small["solver"] == "lists all positions"
    assert small["is_in_reach"]
    json.dumps(small)
    with pytest.raises(ConfigError, match="there is no game hx"):
        games_command(["hx"], [])
