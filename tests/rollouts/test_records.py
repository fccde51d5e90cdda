"""Recorded games: what is written is read back, and damage is reported."""

import json
import multiprocessing
import re

import pytest
import torch
from recorded_games import GAMES, make_game_and_rules, players_of, record

from rlgames.config.conf import option_names
from rlgames.rollouts import records
from rlgames.rollouts.records import BadRecord

NAMES = option_names("game")
MOVE_KEYS = ("position", "move", "seat", "gain", "player")
DAMAGED = "tictactoe"
"""The game whose record is damaged: its lines are short."""


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    """The lines of a good record."""
    path = tmp_path_factory.mktemp("records") / "games"
    record(path, f"game={DAMAGED}")
    return path.read_text(encoding="utf-8").splitlines()


def read(path, *words):
    return records.read(path, *make_game_and_rules(*(words or [f"game={DAMAGED}"])))


def test_several_processes_may_append_to_a_record_at_once(tmp_path):
    """For example evaluations of several runs with the same record=."""
    path, count, times = tmp_path / "games", 40, 3

    def write():
        for seed in range(times):
            record(path, f"game={DAMAGED}", games=count, seed=seed)

    writers = [multiprocessing.get_context("fork").Process(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert read(path).trajectories.num_games == 4 * times * count


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", NAMES)
def test_written_games_are_read_back(name, tmp_path):
    path = tmp_path / "games"
    game, rules = make_game_and_rules(f"game={name}")
    moves, results = record(path, f"game={name}")
    recorded = records.read(path, game, rules)
    assert torch.equal(recorded.final_states.score, results.score)
    order, again = (
        torch.cat([(of.game == number).nonzero()[:, 0] for number in range(GAMES)])
        for of in (moves, recorded.trajectories)
    )
    played, found = (
        moves.state[order],
        recorded.trajectories._rows(again, recorded.trajectories.game, GAMES),
    )
    for column in ("seat", "player", "score_delta", "ends_turn"):
        assert torch.equal(getattr(found, column), getattr(moves, column)[order]), column
    assert torch.equal(found.state.turn, played.turn)
    assert torch.equal(found.state.score, played.score)
    assert torch.equal(recorded.final_states.turns, results.turns)
    assert torch.equal(game.observe(found.state), game.observe(played))
    assert torch.equal(game.legal_action_mask(found.state), game.legal_action_mask(played))
    assert torch.equal(found.state.current_seat, played.current_seat)
    assert not found.state.done.any()
    # Sets of cells that differ only in cells without effect have one name.
    names, wanted = (
        [game.action_to_string(played, row, int(action)) for row, action in enumerate(actions)]
        for actions in (found.action, moves.action[order])
    )
    assert names == wanted
    assert game.legal_action_mask(played).gather(1, found.action[:, None]).all()


@pytest.mark.parametrize("name", NAMES)
def test_each_line_is_plain_json_with_the_moves_of_one_game(name, tmp_path):
    path = tmp_path / "games"
    game, rules = make_game_and_rules(f"game={name}")
    moves, results = record(path, f"game={name}")
    header, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert header == {"rlgames_record": records.FORMAT, "game": rules}
    assert [len(line["moves"]) for line in lines] == torch.bincount(moves.game).tolist()
    assert [line["score"] for line in lines] == results.score.tolist()
    for line in lines:
        for move in line["moves"]:
            assert move["player"] == players_of(game)[move["seat"]]
            assert "\n" in move["position"] or game.spec.observation[1] == 1


def test_games_are_appended(tmp_path):
    path = tmp_path / "games"
    first, _ = record(path, f"game={DAMAGED}", games=3, seed=1)
    before = path.read_text(encoding="utf-8")
    second, _ = record(path, f"game={DAMAGED}", games=2, seed=2)
    assert path.read_text(encoding="utf-8").startswith(before)
    found = read(path)
    assert found.trajectories.num_games == len(found.final_states.score) == 5
    assert len(found.trajectories) == len(first) + len(second)
    assert found.trajectories.game.unique().tolist() == list(range(5))


# ---------------------------------------------------------------- other files


def test_games_of_other_rules_are_refused(tmp_path):
    path = tmp_path / "games"
    record(path, f"game={DAMAGED}")
    before = path.read_bytes()
    others = [[f"game={name}"] for name in NAMES if name != DAMAGED]
    for words in [*others, [f"game={DAMAGED}", "board=4"], [f"game={DAMAGED}", "line=2"]]:
        with pytest.raises(BadRecord, match="other rules"):
            read(path, *words)
        with pytest.raises(BadRecord, match="other rules"):
            record(path, *words, games=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no record\n",
        b"7\n",
        b'{"rlgames_record": 2, "game": {}}\n',
        b'{"rlgames_record": 1, "game": []}\n',
        b'{"rlgames_record": ' + b"9" * 10_000 + b"}\n",
        b"\xff\xfe\x00\x80\n",
        b"[" * 1_000_000,
    ],
)
def test_files_that_are_not_records_are_refused(data, tmp_path):
    path = tmp_path / "games"
    path.write_bytes(data)
    with pytest.raises(BadRecord, match="games"):
        read(path)
    if data:
        with pytest.raises(BadRecord, match="games"):
            record(path, f"game={DAMAGED}", games=1)
        assert path.read_bytes() == data


def test_missing_files_folders_and_empty_records_are_refused(tmp_path, undamaged):
    with pytest.raises(BadRecord, match="is not a file"):
        read(tmp_path / "missing")
    with pytest.raises(BadRecord, match="is not a file"):
        read(tmp_path)
    path = tmp_path / "games"
    path.write_text(undamaged[0] + "\n")
    with pytest.raises(BadRecord, match="holds no moves"):
        read(path)


def test_a_file_that_is_too_large_is_refused(tmp_path, undamaged, monkeypatch):
    path = tmp_path / "games"
    path.write_text("\n".join(undamaged) + "\n")
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 100)
    with pytest.raises(BadRecord, match="larger than 100 bytes"):
        read(path)


# ---------------------------------------------------------------- damaged lines


def with_word(undamaged, key, word):
    """The record with the first game's first value of that key written as this word."""
    value = json.loads(undamaged[1])
    if key == "score":
        value["score"][0] = "here"
    else:
        value["moves"][0][key] = "here"
    return [undamaged[0], json.dumps(value).replace('"here"', word), *undamaged[2:]]


ODD = {
    "a number of thousands of digits": "9" * 5000,
    "an exponent beyond float64": "1e999",
    "an exponent beyond float32": "1e200",
    "no number": "NaN",
    "deep lists": "[" * 100_000 + "]" * 100_000,
    "nothing": "",
    "a lone surrogate": '"\\ud800"',
}


@pytest.mark.parametrize("key", ["score", "seat", "gain", "position", "move"])
@pytest.mark.parametrize("word", list(ODD.values()), ids=list(ODD))
def test_odd_words_are_named(key, word, tmp_path, undamaged):
    path = tmp_path / "games"
    data = "\n".join(with_word(undamaged, key, word)) + "\n"
    path.write_bytes(data.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadRecord, match=rf"{re.escape(str(path))}.*line 2:"):
        read(path)


def test_a_game_after_an_incomplete_line_has_its_own_line(tmp_path, undamaged):
    path = tmp_path / "games"
    path.write_text("\n".join(undamaged)[:-5])
    record(path, f"game={DAMAGED}", games=1)
    assert json.loads(path.read_text().splitlines()[-1])["moves"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda game: game["moves"][0].update(seat=1), "seat 1 cannot move here"),
        (lambda game: game["moves"][0].update(move="Z9"), "'Z9' is not a legal move"),
        (lambda game: game["moves"][0].update(position="no board"), "not a board"),
        (lambda game: game["score"].append(0.0), "3 scores for 2 seats"),
        (lambda game: game.update(score=[]), "0 scores for 2 seats"),
        (lambda game: game.update(score={"1": 0, "2": 0}), "is not a list"),
        (lambda game: game.update(score=[True, False]), "True is not a number"),
        (lambda game: game.update(moves={}), "is not a list"),
        (lambda game: game["moves"][0].update(seat=0.9), "seat"),
        (lambda game: game["moves"][0].update(gain="0"), "0 is not a number"),
        *((lambda game, key=key: game.pop(key), key) for key in ("score", "final", "moves")),
        *((lambda game, key=key: game["moves"][-1].pop(key), key) for key in MOVE_KEYS),
        (
            lambda game: game["moves"][-1].update(position="  A B C\n1 X X X\n2 O O .\n3 . . ."),
            "cannot move here",
        ),
        (
            lambda game: game["moves"][1].update(move=game["moves"][0]["move"]),
            "is not a legal move",
        ),
    ],
)
def test_what_a_record_cannot_hold_is_named(change, told, tmp_path, undamaged):
    game = json.loads(undamaged[2])
    change(game)
    path = tmp_path / "games"
    path.write_text("\n".join([*undamaged[:2], json.dumps(game)]) + "\n")
    with pytest.raises(BadRecord, match=f"line 3: .*{told}"):
        read(path)
