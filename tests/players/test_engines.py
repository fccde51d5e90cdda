"""Other people's engines as players, if they are installed; `make test-engines` names them."""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.others

RHINO = shutil.which("gtp-rhino", path="/usr/games:/usr/local/bin:/usr/bin")
LABELED = Path(__file__).parents[2] / "scripts/checks/connect4_positions.txt"

BITBULLY = """
import json, sys
from bitbully import BitBully, Board
solver = BitBully()
for line in sys.stdin:
    rows = [row.split() for row in json.loads(line)["position"].splitlines()[:6]]
    cells = [[".XO".index(mark) for mark in row] for row in rows]
    print(solver.best_move(Board(cells)) + 1, flush=True)
"""


@pytest.mark.skipif(RHINO is None, reason="needs gtp-rhino: apt-get install grhino")
@pytest.mark.parametrize("level", [1, 2])
def test_rhino_beats_random_play_at_othello(level, typed):
    words = ["player=random", "game=othello", "board=8", "opening_turns=6", "games=10"]
    keys = {"command": f"{RHINO} -l {level}", "protocol": "gtp", "setup": "set_game Othello"}
    words += ["opponent=program", *(f"opponent.{key}={value}" for key, value in keys.items())]
    report = json.loads(typed("eval", *words, "format=json").stdout)
    assert report["distinct_games"] == 10
    assert report["loss"]["count"] >= 9


@pytest.mark.skipif(find_spec("bitbully") is None, reason="needs bitbully")
def test_bitbully_loses_no_value_in_the_labeled_positions(typed, tmp_path):
    (tmp_path / "bully.py").write_text(BITBULLY)
    words = ["player=program", f"player.command={sys.executable} bully.py", "game=connect4"]
    report = json.loads(typed("analyze", *words, f"positions={LABELED}", "format=json").stdout)
    assert report["losses"]["all"]["positions"] == 600
    assert report["losses"]["all"]["count"] == 0
