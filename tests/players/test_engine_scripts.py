"""The scripts between programs as players and engines with other protocols, with small engines."""

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts/engines"

GOMOCUP = """
import sys
size, stones = 0, set()
for line in sys.stdin:
    word, *values = line.split()
    if word == "START":
        size = int(values[0])
        print("MESSAGE ready")
        print("OK - everything is good")
    elif word == "INFO":
        print("INFO", *values, file=sys.stderr)
    elif word == "DONE":
        cells = ((x, y) for y in range(size) for x in range(size))
        print("%d,%d" % next(cell for cell in cells if cell not in stones))
    elif word == "BOARD":
        stones.clear()
    else:
        x, y, who = map(int, word.split(","))
        assert who in (1, 2)
        stones.add((x, y))
    sys.stdout.flush()
"""

HEX = """#!{python}
import sys
size, stones, can_swap = 0, {{}}, False
for line in sys.stdin:
    word, *values = line.split()
    answer = ""
    if word == "boardsize":
        size, stones = int(values[0]), {{}}
    elif word == "param_game":
        can_swap = values[1] == "1"
    elif word == "play":
        stones[values[1]] = values[0]
    elif word == "genmove":
        free = (f"{{c}}{{r}}" for r in range(1, size + 1) for c in "abcdefg"[:size])
        answer = "swap-pieces" if can_swap else next(cell for cell in free if cell not in stones)
        if len(stones) > 6:
            sys.exit(1)
    print(f"= {{answer}}\\n", flush=True)
"""


def played(typed, game, command):
    words = [game, "games=4", "opening_turns=2", "solve_seconds=0", "opponent=program"]
    return typed("eval", *words, f"opponent.command={command}", "format=json")


def count_decided(ended):
    report = json.loads(ended.stdout)
    return report["win"]["count"] + report["loss"]["count"]


def test_gomocup_engines_play_gomoku(typed, tmp_path):
    (tmp_path / "engine.py").write_text(GOMOCUP)
    engine = f"{sys.executable} {tmp_path / 'engine.py'}"
    command = f"{sys.executable} {SCRIPTS / 'gomocup.py'} max_node=10 {engine}"
    assert count_decided(played(typed, "gomoku", command)) == 4


def test_an_engine_that_ends_is_named(typed, tmp_path):
    command = f"{sys.executable} {SCRIPTS / 'gomocup.py'} {sys.executable} -c pass"
    ended = played(typed, "gomoku", command)
    assert ended.returncode == 2
    assert "the engine ended" in ended.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the engine is a script")
def test_mohex_swaps_and_starts_again_where_it_ends(typed, tmp_path):
    engine = tmp_path / "mohex"
    engine.write_text(HEX.format(python=sys.executable))
    engine.chmod(0o755)
    command = f"{sys.executable} {SCRIPTS / 'mohex.py'} 'param_mohex max_games 9' {engine}"
    assert count_decided(played(typed, "hex", command)) == 4
