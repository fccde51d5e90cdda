"""Recorded games: what is written is read back, and damage is reported."""

import json
import multiprocessing

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_games import GAMES, make_game_and_rules, players_of, record

from rlgames.config.files import Files
from rlgames.rollouts import records
from rlgames.rollouts.records import BadRecord

NAMES = Files().names("game")
DAMAGED = "tictactoe"
"""The game whose record is damaged: its lines are short."""

often = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


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


def reads_or_names(path, lines, number):
    """What is read from these lines, or None where the line of that number is refused by name."""
    data = "\n".join(lines) + "\n"
    path.write_bytes(data.encode("utf-8", "surrogatepass"))
    try:
        return read(path)
    except BadRecord as error:
        text = str(error)
        assert str(path) in text
        assert number == 1 or f"line {number}:" in text
        return None


def assert_sound(found):
    """Only moves that the rules allow, and finite numbers."""
    game, _ = make_game_and_rules(f"game={DAMAGED}")
    moves, score = found.trajectories, found.final_states.score
    assert game.legal_action_mask(moves.state).gather(1, moves.action[:, None]).all()
    assert not moves.state.done.any()
    assert torch.equal(moves.seat, moves.state.current_seat)
    assert len(moves.state) == len(moves.action) == len(moves.game) == len(moves.score_delta)
    assert score.shape == (moves.num_games, game.spec.seats)
    assert moves.score_delta.dtype == score.dtype == torch.float32
    assert int(moves.game.max()) < moves.num_games
    assert found.final_states.state.done.all()


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


@often
@given(data=st.data())
def test_an_incomplete_line_is_named(data, tmp_path, undamaged):
    number = data.draw(st.integers(2, len(undamaged)))
    line = undamaged[number - 1]
    cut = line[: data.draw(st.integers(1, len(line) - 1))]
    lines = [*undamaged[: number - 1], cut, *undamaged[number:]]
    assert reads_or_names(tmp_path / "games", lines, number) is None


@often
@given(data=st.data())
def test_changed_characters_are_named_or_read_as_legal_moves(data, tmp_path, undamaged):
    number = data.draw(st.integers(1, len(undamaged)))
    line = list(undamaged[number - 1])
    other = st.one_of(
        st.sampled_from('{}[]",:0123456789.-eEXO \\/nultrN'),
        st.characters(codec="utf-8", exclude_characters="\r\n"),
    )
    for _ in range(data.draw(st.integers(1, 4))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(other)
    lines = [*undamaged[: number - 1], "".join(line), *undamaged[number:]]
    found = reads_or_names(tmp_path / "games", lines, number)
    if found is not None:
        assert_sound(found)


def places(value, path=()):
    """Every path into a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(value, path, new):
    """The value with another one at the end of the path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e30, 1e30)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@often
@given(data=st.data())
def test_values_of_other_types_are_named_or_read_as_legal_moves(data, tmp_path, undamaged):
    number = data.draw(st.integers(2, len(undamaged)))
    value = json.loads(undamaged[number - 1])
    path = data.draw(st.sampled_from(list(places(value))))
    line = json.dumps(changed(value, path, data.draw(anything)))
    lines = [*undamaged[: number - 1], line, *undamaged[number:]]
    found = reads_or_names(tmp_path / "games", lines, number)
    if found is not None:
        assert_sound(found)


@pytest.mark.parametrize(
    "wanted", ["score", "final", "moves", "position", "move", "seat", "gain", "player"]
)
def test_a_missing_key_is_named(wanted, tmp_path, undamaged):
    game = json.loads(undamaged[1])
    del (game if wanted in game else game["moves"][-1])[wanted]
    path = tmp_path / "games"
    path.write_text("\n".join([undamaged[0], json.dumps(game)]) + "\n")
    with pytest.raises(BadRecord, match=f"line 2: .*{wanted}"):
        read(path)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("score", {"1": 0, "2": 0}),
        ("score", [True, False]),
        ("moves", {}),
        ("seat", 0.9),
        ("seat", False),
        ("gain", "0"),
    ],
)
def test_values_that_resemble_numbers_or_lists_are_named(key, word, tmp_path, undamaged):
    game = json.loads(undamaged[1])
    (game if key in game else game["moves"][0])[key] = word
    lines = [undamaged[0], json.dumps(game), *undamaged[2:]]
    assert reads_or_names(tmp_path / "games", lines, 2) is None


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
    assert reads_or_names(tmp_path / "games", with_word(undamaged, key, word), 2) is None


def test_bytes_that_are_not_utf8_are_named(tmp_path, undamaged):
    path = tmp_path / "games"
    good = ("\n".join(undamaged[:2]) + "\n").encode()
    path.write_bytes(good + undamaged[2].encode().replace(b"moves", b"mo\xff\xfes") + b"\n")
    with pytest.raises(BadRecord, match="line 3"):
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
        (
            lambda game: game["moves"][1].update(move=game["moves"][0]["move"]),
            "is not a legal move",
        ),
    ],
)
def test_violations_of_the_rules_are_named(change, told, tmp_path, undamaged):
    game = json.loads(undamaged[2])
    change(game)
    path = tmp_path / "games"
    path.write_text("\n".join([*undamaged[:2], json.dumps(game)]) + "\n")
    with pytest.raises(BadRecord, match=f"line 3: .*{told}"):
        read(path)


def test_a_move_in_a_finished_game_is_refused(tmp_path, undamaged):
    move = {
        "position": "  A B C\n1 X X X\n2 O O .\n3 . . .",
        "move": "C3",
        "seat": 1,
        "player": "a",
        "gain": 0.0,
    }
    path = tmp_path / "games"
    path.write_text("\n".join([undamaged[0], json.dumps({"score": [1, -1], "moves": [move]})]))
    with pytest.raises(BadRecord, match="line 2: seat 1 cannot move here"):
        read(path)


def test_nothing_in_a_record_is_executed(tmp_path, undamaged, monkeypatch):
    """Text that would run as Python, a pickle or a shell command stays text."""
    monkeypatch.chdir(tmp_path)
    trace, path, game = tmp_path / "trace", tmp_path / "games", json.loads(undamaged[1])
    for word in (
        f"__import__('os').system('touch {trace}')",
        f"cos\nsystem\n(S'touch {trace}'\ntR.",
        f"$(touch {trace})",
        {"_target_": "os.system", "command": f"touch {trace}"},
    ):
        for place in list(places(game)):
            lines = [undamaged[0], json.dumps(changed(game, place, word)), *undamaged[2:]]
            reads_or_names(path, lines, 2)
        header = json.dumps({"rlgames_record": 1, "game": {"name": word}})
        assert reads_or_names(path, [header, *undamaged[1:]], 1) is None
    assert not trace.exists()
