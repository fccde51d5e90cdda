"""Programs at the table: what they are asked, what their failures lead to, and that they end."""

import json
import os
import signal
import sys
import textwrap
import time
from functools import cache

import pytest
import torch
import yaml
from helpers import InOrder, make_game, make_small_game, rng
from markers import quick
from processes import Process as Command
from processes import has_ended
from untrusted_files import forge, plain_error_line, plain_header, trained

from rlgames.config.conf import option_names
from rlgames.config.registry import make
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.notation import parse, parse_action, render
from rlgames.players.player import Random
from rlgames.rollouts.play import GamePool, Openings, collect_games
from rlgames.rollouts.trajectories import PlyRecord
from rlgames.runs.checkpoint import Checkpoint

FIRST = """
import json, sys
for line in sys.stdin:
    print(json.loads(line)["legal"][0], flush=True)
"""
"""Plays the first legal move."""

LOGGING = """
import json, sys
with open("asked.jsonl", "a") as log:
    for line in sys.stdin:
        log.write(line)
        log.flush()
        print(json.loads(line)["legal"][-1].lower(), flush=True)
"""
"""Writes down what it is asked and plays the last legal move."""

GTP = """
import sys
log = open("commands.txt", "a")
moves = []
for line in sys.stdin:
    log.write(line)
    log.flush()
    name, *words = line.split()
    answer = "="
    if name == "clear_board":
        moves = []
    elif name == "play":
        moves.append(words[1])
    elif name == "genmove":
        cells = [f"{c}{r}" for r in range(1, 10) for c in "abc"]
        free = [cell for cell in cells if cell.upper() not in moves]
        answer = f"= {free[0]}"
        moves.append(free[0].upper())
    print("a line for people\\n" * (name == "setup_it"), end="")
    print(f"{answer}\\n", flush=True)
"""
"""An engine for tic-tac-toe that plays the first free cell."""

FAILURES = {
    "hang": ("time.sleep(100)", "did not answer within move_seconds=0.4; its last lines: started"),
    "die": ("sys.exit(3)", "ended with code 3; its last lines: started"),
    "signal": ("os.kill(os.getpid(), 9)", "ended by signal 9; its last lines: started"),
    "close": ("os.close(1); time.sleep(100)", "closed its output; its last lines: started"),
    "nonsense": ("print('I think so')", "answered 'I think so'; legal moves: A1, B1"),
    "illegal": ("print('D4')", "answered 'D4'; legal moves: A1, B1"),
    "nothing": ("print()", "answered 'nothing'; legal moves: A1, B1"),
    "flood": ("while True: print('spam')", "answered 'spam'; legal moves"),
    "long line": ("while True: sys.stdout.write('spam')", "answered 'spamspam"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def program(game, code, name="mine.py", **keys):
    """A player that runs this Python code."""
    with open(name, "w") as file:
        file.write(textwrap.dedent(code))
    command = f"{sys.executable} -S -E {name}"
    return make("player", make_option("player", "program", command=command, **keys), game)


def failing(game, how, **keys):
    code = f"""
    import os, sys, time
    print("started", file=sys.stderr, flush=True)
    sys.stdin.readline()
    {FAILURES[how][0]}
    sys.stdout.flush()
    time.sleep(100)
    """
    return program(game, code, move_seconds=0.4 if how == "hang" else 20.0, **keys)


@cache
def tictactoe():
    return make_game("game=tictactoe")


def play(game, players, games=6):
    return evaluate(game, players[0], EvaluationSettings(games), rng(1), *players[1:])


def asked(file="asked.jsonl"):
    with open(file) as lines:
        return [json.loads(line) for line in lines]


# ---------------------------------------------------------------- What programs are told


@pytest.mark.parametrize("name", option_names("game"))
def test_a_program_plays_every_game_from_public_positions(name, folder):
    game = make_small_game(name)
    players = [program(game, LOGGING), Random(game)][: game.spec.seats]
    assert play(game, players, 4).games == 4
    questions = asked()
    assert questions
    for question in questions:
        state = parse(game, question["position"])
        assert render(game, state, 0) == question["position"]
        assert int(state.current_seat[0]) + 1 == question["seat"]
        for move in question["legal"]:
            parse_action(game, state, 0, move, exact=True)
        assert question["game"] == {"name": game.spec.name}
        assert (question["moves"] is None) == (game.spec.num_chance_inputs > 0)
        if question["moves"] is not None and not game.spec.hidden:
            reached = game.initial(1, rng())
            for move in question["moves"]:
                action = parse_action(game, reached, 0, move, exact=True)
                reached = game.apply_action(reached, torch.tensor([action]))
            assert render(game, reached, 0) == question["position"]


def test_a_position_without_a_history_has_no_moves(folder):
    game = tictactoe()
    player = program(game, LOGGING)
    player.choose(parse(game, "X . .\n. O .\n. . ."), rng())
    assert asked()[0]["moves"] is None
    engine = program(game, GTP, protocol="gtp")
    with pytest.raises(ConfigError, match="use protocol=lines"):
        engine.choose(parse(game, "X . .\n. O .\n. . ."), rng())


def test_the_only_legal_move_is_not_asked_for(folder):
    game = tictactoe()
    player = program(game, LOGGING)
    action = player.choose(parse(game, "X O X\nX O O\nO X ."), rng())
    assert (int(action[0]), os.path.exists("asked.jsonl")) == (8, False)


def test_each_process_thinks_about_its_own_game(folder):
    code = """
    import json, os, sys, time
    for line in sys.stdin:
        open(f"{os.getpid()}.pid", "w").close()
        time.sleep(0.02)
        print(json.loads(line)["legal"][0], flush=True)
    """
    game = tictactoe()
    player = program(game, code, processes=3)
    state = collect_games(game, [Random(game)], 6, rng())[0].state
    assert torch.equal(player.choose(state, rng()), InOrder(game).choose(state, rng()))
    assert len([*folder.glob("*.pid")]) == 3


def test_a_gtp_engine_hears_of_every_move(folder):
    game = tictactoe()
    engine = program(game, GTP, protocol="gtp", setup=["setup_it now"])
    pool = GamePool(game, [engine, Random(game)], 1, rng(1))
    pool.run()
    lines = (folder / "commands.txt").read_text().splitlines()
    assert lines[:4] == ["boardsize 3", "clear_board", "setup_it now", "genmove black"]
    assert lines.count("clear_board") == 1
    named = [line.split()[1] for line in lines if line.startswith("play")]
    assert set(named) == {"white"}


def test_a_gtp_engine_plays_games_side_by_side(folder):
    game = tictactoe()
    engine = program(game, GTP, protocol="gtp")
    by_engine = play(game, [engine, InOrder(game, True)], 4)
    by_rule = play(game, [InOrder(game), InOrder(game, True)], 4)
    assert (by_engine.outcomes > 0).tolist() == (by_rule.outcomes > 0).tolist()
    assert (folder / "commands.txt").read_text().count("clear_board") > 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("? unknown", "refused 'boardsize 3': unknown"),
        ("no = here\\n" * 1100, "wrote 1,000 lines and no answer to 'boardsize 3'"),
    ],
)
def test_an_engine_that_answers_otherwise_is_named(answer, message, folder):
    game = tictactoe()
    code = f'import sys\nfor line in sys.stdin: print("{answer}\\n", flush=True)'
    with pytest.raises(ConfigError, match=message):
        program(game, code, protocol="gtp").choose(game.initial(1, rng()), rng())


# ---------------------------------------------------------------- Failures


@pytest.mark.parametrize("how", FAILURES)
def test_a_program_that_fails_is_named(how, folder):
    game = tictactoe()
    player = failing(game, how)
    with pytest.raises(ConfigError) as raised:
        play(game, [player, Random(game)])
    assert f"mine.py: the program {FAILURES[how][1]}" in str(raised.value)
    assert player._processes == [None]


@pytest.mark.parametrize("how", quick(FAILURES, "die", "illegal"))
def test_a_forfeited_game_is_lost(how, folder, capfd):
    game = tictactoe()
    player = failing(game, how, on_error="forfeit", processes=2)
    result = play(game, [player, Random(game)], 8)
    assert [result.outcome_rate("loss", seat).value for seat in (0, 1)] == [1, 1]
    assert player.statistics() == {"forfeits": 8}
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("; it forfeits the game")
    result = play(game, [Random(game), player], 8)
    assert [result.outcome_rate("win", seat).value for seat in (0, 1)] == [1, 1]


def test_other_games_go_on_after_a_forfeit(folder):
    code = """
    import json, sys
    for line in sys.stdin:
        asked = json.loads(line)
        print("Z9" if asked["seat"] == 1 else asked["legal"][0], flush=True)
    """
    game = tictactoe()
    player = program(game, code, on_error="forfeit")
    result = play(game, [player, InOrder(game)], 6)
    whole = play(game, [InOrder(game), InOrder(game)], 2)
    assert result.outcomes[0].tolist() == [0, 0, 1]
    assert (result.outcomes[1] > 0).tolist() == (whole.outcomes[1] > 0).tolist()


def test_a_line_too_many_is_an_error(folder):
    code = """
    import json, sys
    for line in sys.stdin:
        print(json.loads(line)["legal"][0], "hm", sep="\\n", flush=True)
    """
    game = tictactoe()
    player = program(game, code)
    player.choose(game.initial(1, rng()), rng())
    time.sleep(0.05)
    with pytest.raises(ConfigError, match="wrote a line too many: 'hm'"):
        player.choose(game.initial(1, rng()), rng())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["player.command=nowhere.py x"], "nowhere.py is not a program"),
        (["player.command=./mine.py"], "mine.py is not executable"),
        ([f'player.command={sys.executable} "x'], "no closing quotation"),
        ([f"player.command={sys.executable}", "player.setup=[a]"], "setup= is for protocol=gtp"),
        (
            [f"player.command={sys.executable}", "player.protocol=gtp", "game=2048"],
            "needs two seats",
        ),
        (
            [f"player.command={sys.executable}", "player.on_error=forfeit", "game=2048"],
            "2048 has none",
        ),
        ([f"player.command={sys.executable}", "search=mcts"], "remove search=mcts"),
        (
            [f"player.command={sys.executable}", "player.on_error=forfeit", "record=x"],
            "use on_error=raise",
        ),
        ([], "add player.command=VALUE"),
    ],
)
def test_bad_input_is_one_line(words, message, typed, folder):
    (folder / "mine.py").touch()
    said = typed("eval", "player=program", "game=tictactoe", *words)
    assert message in plain_error_line(said)
    assert not (folder / "x").exists()


# ---------------------------------------------------------------- Commands


def test_a_program_is_evaluated_rated_analyzed_and_watched(folder, typed):
    (folder / "mine.py").write_text(FIRST)
    command = f"{sys.executable} -S -E mine.py"
    words = ["player=program", f"player.command={command}", "game=tictactoe"]
    report = json.loads(typed("eval", *words, "games=10", "format=json").stdout)
    assert (report["player"], report["games"]) == (command, 10)
    report = json.loads(typed("arena", "random", *words, "games=10", "format=json").stdout)
    assert [each["name"] for each in report["players"]] == ["random", command]
    report = json.loads(typed("analyze", *words, "games=10", "format=json").stdout)
    assert report["losses"]["all"]["positions"] > 0
    assert "seat 1" in typed("watch", *words, "delay=0").stdout
    said = typed("watch", *words, "delay=0", "player.on_error=forfeit", "player.move_seconds=1e-6")
    assert f"seat 1, {command}: resigns" in said.stdout


def test_random_openings_differ_and_the_players_take_over(folder):
    game = make_game("game=connect4")
    players = [InOrder(game, last) for last in (False, True)]
    records: list[PlyRecord] = []
    pool = GamePool(game, players, 50, rng(2), openings=Openings(rng(3), 4))
    pool.run(on_ply=records.append)
    assert len(records[3].decision.action.unique()) == game.spec.actions
    for ply, record in enumerate(records[4:8], 4):
        expected = InOrder(game, ply % 2 == 1).choose(record.before, rng())
        live = ~record.before.done
        assert torch.equal(record.decision.action[live], expected[live])


# ---------------------------------------------------------------- Nothing else starts a program


def test_a_strangers_run_starts_no_program(folder, typed):
    run = trained("plain", folder / "run")
    keys = {"name": "program", "command": "touch started", "on_error": "raise"}
    option = keys | {"protocol": "lines", "setup": [], "processes": 1, "move_seconds": 1.0}
    for name in ("best", "latest"):
        path = run / f"checkpoints/{name}.safetensors"
        saved = Checkpoint.read(path)
        for seat in ("opponent", "eval_opponent", "teacher"):
            saved.config[seat] = option
        forge(
            path,
            {f"policy/{each}": saved.policy[each] for each in saved.policy},
            plain_header(saved),
        )
    config = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump(config | {"opponent": option}))
    for words in (
        ("eval", "run"),
        ("analyze", "run"),
        ("arena", "run", "random"),
        ("play", "run"),
        ("watch", "run"),
        ("show", "run"),
        ("train", "run", "out=again"),
        ("resume", "run", "games=100"),
        ("eval", "game=tictactoe", "player=random", "opponent=./run"),
    ):
        assert "starts no program" in plain_error_line(typed(*words))
    said = typed("train", "game=tictactoe", "opponent=program", "opponent.command=touch started")
    assert "starts no program" in plain_error_line(said)
    assert not (folder / "started").exists()


def test_a_page_offers_no_program():
    from rlgames.web.table import Table

    table = Table(make_option("game", "tictactoe"), torch.device("cpu"), None)
    assert "random" in table.players
    assert "program" not in table.players


# ---------------------------------------------------------------- Programs end


def test_programs_end_with_their_player(folder):
    game = tictactoe()
    code = FIRST + "\nopen('ended', 'w').close()"
    player = program(game, code, processes=2)
    player.choose(game.initial(4, rng()), rng())
    pids = [each._process.pid for each in player._processes]
    del player
    assert all(map(has_ended, pids))
    assert (folder / "ended").exists()  # they ended by themselves


HANGING = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(100)"])
with open("pids.tmp", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.tmp", "pids")
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGINT], 130),
        pytest.param([signal.SIGTERM], 143, marks=pytest.mark.slow),
        pytest.param([signal.SIGINT, signal.SIGINT], 130, marks=pytest.mark.slow),
    ],
)
def test_programs_end_with_a_command_that_is_interrupted(signals, code, folder):
    (folder / "mine.py").write_text(HANGING)
    words = ["player=program", f"player.command={sys.executable} -S -E mine.py", "game=tictactoe"]
    command = Command(folder, "eval", *words)
    deadline = time.monotonic() + 60
    while not (folder / "pids").exists():
        assert time.monotonic() < deadline
        assert command.poll() is None, command.output()
        time.sleep(0.01)
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    for number in signals:
        command.send(number)
    assert command.wait(20)[0] == code
    deadline = time.monotonic() + 5
    while not all(map(has_ended, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
