"""A checkpoint, a run directory or a record from a stranger runs nothing, and costs little."""

import json
import math
import os
import pickle
from dataclasses import replace

import pytest
import torch
from markers import one_in
from recorded_games import make_game_and_rules
from recorded_games import record as write_record
from untrusted_files import bounded, forge, plain_error_line, plain_header, sealed, trained

from rlgames.build.agents import open_run
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import parse_json, sanitized
from rlgames.rollouts import records
from rlgames.runs.checkpoint import (
    FORMAT,
    MAX_HEADER_BYTES,
    NO_CHECKSUM,
    BadCheckpoint,
    Checkpoint,
)

ESCAPE = "\x1b[31m\x07\n[bold red]x\u202e"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def run(name="plain"):
        if name not in made:
            made[name] = trained(name, folder / name)
        return made[name]

    return run


@pytest.fixture
def file(runs):
    """The best checkpoint of a run."""
    return runs() / "checkpoints/best.safetensors"


@pytest.fixture
def refused(typed, tmp_path):
    """Uses a file as a run in every way that there is; what was said, which is one plain line."""

    def use(path):
        said = [plain_error_line(typed(command, str(path))) for command in ("eval", "play")]
        words = ["game=tictactoe", "games=4"]
        said += [
            plain_error_line(typed("eval", *words, "player=random", f"opponent={path}")),
            plain_error_line(typed("train", *words, f"init_from={path}", "out=never")),
        ]
        assert not (tmp_path / "never").exists()
        return said[0]

    return use


# ---------------------------------------------------------------- no checkpoint at all


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_no_pickle_is_executed(refused, tmp_path):
    marker = str(tmp_path / "marker")
    for protocol, name in ((0, "x.safetensors"), (2, "x.pt"), (5, "x.ckpt")):
        (tmp_path / name).write_bytes(pickle.dumps(Payload(marker), protocol))
        refused(tmp_path / name)
    torch.save({"weights": Payload(marker)}, tmp_path / "saved.pt")
    refused(tmp_path / "saved.pt")
    assert not os.path.exists(marker)


def test_other_files_are_refused_without_blocking(refused, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello " * 1000)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("empty", "text", "folder", "pipe", "zero"):
        refused(tmp_path / name)
    refused("/dev/zero")


def test_a_truncated_checkpoint_is_refused(file, tmp_path):
    data = file.read_bytes()
    (tmp_path / "x").write_bytes(data)
    for length in reversed(range(0, len(data), 9)):
        os.truncate(tmp_path / "x", length)
        with pytest.raises(BadCheckpoint):
            Checkpoint.read(tmp_path / "x")


def flipped(file, path, step, bits):
    """A bit is written over in place: to write whole files anew keeps the disk busy."""
    data = file.read_bytes()
    path.write_bytes(data)
    with open(path, "r+b", buffering=0) as copy:
        for place in range(0, len(data), step):
            for bit in bits(place):
                os.pwrite(copy.fileno(), bytes([data[place] ^ (1 << bit)]), place)
                with pytest.raises(BadCheckpoint):
                    Checkpoint.read(path)
            os.pwrite(copy.fileno(), data[place : place + 1], place)
    assert Checkpoint.read(path)


def test_a_checkpoint_stays_as_it_was_read_when_its_file_is_replaced(file, tmp_path):
    path, first = tmp_path / "latest.safetensors", Checkpoint.read(file)
    first.write(path)
    read = Checkpoint.read(path)
    other = {name: torch.zeros_like(tensor) for name, tensor in first.policy.items()}
    replace(first, policy=other).write(path)
    assert all(read.policy[name].equal(tensor) for name, tensor in first.policy.items())


def test_every_flipped_byte_is_detected(file, tmp_path):
    """One bit of a byte in nine. The header may end in blanks, and another white space would say
    the same there: no single bit makes one of the other."""
    flipped(file, tmp_path / "x", 9, lambda place: [place * 5 % 8])


@pytest.mark.slow
def test_every_flipped_bit_is_detected(file, tmp_path):
    flipped(file, tmp_path / "x", 1, lambda place: range(8))


# ---------------------------------------------------------------- tensors and headers


@pytest.mark.parametrize(
    "name", ["policy", "x", "../../x", "state/a/b", "", f"state/{ESCAPE}/x", "a/" * 10_000]
)
def test_tensors_outside_the_tree_are_refused(name, file, refused, tmp_path):
    found = Checkpoint.read(file)
    tensors = {f"policy/{key}": value for key, value in found.policy.items()}
    forge(tmp_path / "x", tensors | {name: torch.zeros(2)}, plain_header(found))
    refused(tmp_path / "x")


def odd(policy):
    """Other tensors than a policy's own, by what is wrong with them."""
    name, first = next(iter(policy.items()))
    nan = first.clone()
    nan.view(-1)[0] = math.nan
    return {
        "Missing key": {key: value for key, value in policy.items() if key != name},
        "Unexpected key": policy | {f"{ESCAPE}{n}" * 20: first.clone() for n in range(500)},
        "size mismatch": policy | {name: torch.zeros(3, 5, 7)},
        "not finite": policy | {name: nan},
    }


@pytest.mark.parametrize("wrong", odd({"": torch.zeros(2)}))
def test_mismatched_tensors_are_reported_in_one_line(wrong, file, refused, tmp_path):
    found = Checkpoint.read(file)
    tensors = {f"policy/{key}": value for key, value in odd(found.policy)[wrong].items()}
    forge(tmp_path / "x", tensors, plain_header(found))
    assert wrong in refused(tmp_path / "x")


def test_a_shape_of_a_trillion_numbers_is_refused(file, refused, tmp_path):
    tensors = {"policy/x": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4]}}
    for more in ({}, {"policy/y": {"dtype": "F32", "shape": [0, 10**12], "data_offsets": [4, 4]}}):
        metadata = {"sha256": NO_CHECKSUM} | plain_header(Checkpoint.read(file))
        header = json.dumps({"__metadata__": metadata, **tensors, **more})
        data = sealed(len(header).to_bytes(8, "little") + header.encode() + bytes(4))
        (tmp_path / "x").write_bytes(data)
        assert "has not the size" in refused(tmp_path / "x")
    for length in (1 << 62, MAX_HEADER_BYTES + 1, len(header) + 5):
        (tmp_path / "x").write_bytes(length.to_bytes(8, "little") + data[8:])
        refused(tmp_path / "x")


def test_a_repeated_name_is_refused(file, refused, tmp_path):
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length]
    twice = header.replace(
        b'"policy/', b'"policy/x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"policy/', 2
    )
    (tmp_path / "x").write_bytes(len(twice).to_bytes(8, "little") + twice + data[8 + length :])
    assert "repeats a name" in refused(tmp_path / "x")
    for name in ("config", "state"):
        head = plain_header(Checkpoint.read(file))
        head[name] = '{"a": 1, "a": 2}'
        forge(tmp_path / "x", {"policy/x": torch.zeros(1)}, head)
        assert "repeats a name" in refused(tmp_path / "x")


DEEP = "[" * 100_000 + "]" * 100_000
TEXTS = [DEEP, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 40 + "]" * 40, '{"a": [', "", "5", "null"]
TEXTS += ['{"a": ' + "9" * 100_000 + "}", '"\ud800"', '{"a": ' + '{"b": [1]}' * 2 + "}"]


@pytest.mark.parametrize("name", ["config", "state", "games", "format"])
def test_odd_json_is_refused(name, file, refused, tmp_path):
    head = plain_header(Checkpoint.read(file))
    for text in TEXTS:
        if text == "5":
            text = {"games": "-5", "format": str(FORMAT + 1)}.get(name, text)
        odd = head | {name: text.encode("utf-8", "replace").decode()}
        forge(tmp_path / "x", {"policy/x": torch.zeros(1)}, odd)
        with pytest.raises(BadCheckpoint) as error:
            Checkpoint.read(tmp_path / "x")
        told = error.value.error.replace(str(tmp_path), "")
        assert told.isprintable()
        assert len(told) < 500
    refused(tmp_path / "x")


# ---------------------------------------------------------------- configs


def with_config(file, path, **parts):
    """The checkpoint with other values by dotted name, its weights as they were."""
    found = Checkpoint.read(file)
    values = json.loads(json.dumps(found.config))
    for name, value in parts.items():
        *groups, key = name.split("__")
        node = values
        for group in groups:
            node = node[group]
        node[key] = value
    header = plain_header(found) | {"config": json.dumps(values)}
    forge(path, {f"policy/{key}": value for key, value in found.policy.items()}, header)


SLIDE = {"game": {"name": "2048", "board": 8, "columns": 8}, "reward__scored": "score_delta"}
HUGE = {
    "two layers": {"policy__layers": [65536, 65536]},
    "tuples": {
        **SLIDE,
        "policy": {"name": "ntuple", "tuples": [[0, 1, 2, 3, 4, 5]] * 10, "num_cell_values": 16},
        "learner": {"name": "td_ntuple", "lr_end": None},
    },
    "battleship": {
        "game": {"name": "battleship", "board": 1000, "ships": [1] * 1000},
        "policy__layers": [65536],
    },
    "salvo": {"game": {"name": "salvo", "board": 32, "ships": [32] * 31, "shots": 1}},
}
MEBIBYTES, SECONDS = 768, 30


@pytest.mark.parametrize("name", one_in(2, HUGE))
def test_a_config_with_huge_components_is_refused_at_once(name, file, tmp_path, capsys):
    """In no more than 768 MiB and 30 seconds; most of both is for fleets that hardly fit."""
    with_config(file, tmp_path / "x", **HUGE[name])

    def load():
        try:
            open_run(tmp_path / "x").agent()
        except ConfigError as error:
            return f"{error.error}; {error.hint}"
        return "loaded"

    told = bounded(load, MEBIBYTES, SECONDS)
    assert told != "loaded"
    assert "does not fit" not in told  # the size is refused, nothing else
    assert told.isprintable()
    assert len(told) < 700


ODD = {
    "interpolation": {"policy__activation": "${oc.env:HOME}"},
    "interpolation in a list": {"policy__layers": ["${oc.env:HOME}"]},
    "missing": {"policy__layers": "???"},
    "target": {"policy___target_": "os.system"},
    "target at the top": {"game": {"_target_": "os.mkdir", "name": "tictactoe"}},
    "NaN": {"lr": math.nan},
    "huge for a whole number": {"games": 10**400},
    "name": {"policy__name": ESCAPE * 1000},
    "list": {"policy__layers": [ESCAPE] * 1000},
    "no group": {"game": None},
    "plugin": {"plugins": ["antigravity"], "policy": {"name": "unheard_of"}},
    "key": {ESCAPE: 1, "policy": {"name": "mlp", ESCAPE: 1}},
    "memory": {"learner": {"name": "dqn", "buffer_size": 10**9}},
}


@pytest.mark.parametrize("name", one_in(2, ODD))
def test_odd_values_in_a_config_are_refused(name, file, refused, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/secret/home")
    with_config(file, tmp_path / "x", **ODD[name])
    assert "secret" not in refused(tmp_path / "x")


def test_a_run_as_an_opponent_has_its_game_compared_before_it_is_built(file, typed, tmp_path):
    with_config(file, tmp_path / "x", **HUGE["battleship"])
    told = plain_error_line(
        typed("eval", "game=tictactoe", "player=random", f"opponent={tmp_path / 'x'}")
    )
    assert "was trained with game=battleship, not with game=tictactoe" in told


# ---------------------------------------------------------------- text


def test_text_is_shown_in_one_printable_line_of_bounded_length():
    assert sanitized(ESCAPE) == "\\x1b[31m\\x07 [bold red]x\\u202e"
    assert sanitized("Größe 日本") == "Größe 日本"
    assert len(sanitized("\0" * 10**6)) == 300
    assert len(sanitized("x" * 10**6, 40)) == 40
    assert sanitized("\ud800").isprintable()


def test_json_is_parsed_within_bounds():
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    for text in TEXTS[:4] + TEXTS[7:8]:
        with pytest.raises(ValueError, match=r"JSON|line|digits"):
            parse_json(text)


# ---------------------------------------------------------------- records


@pytest.fixture
def record(tmp_path):
    """A record's lines, and how to read other lines as a record of the same game."""
    write_record(tmp_path / "record", "game=tictactoe")
    lines = (tmp_path / "record").read_text().splitlines()

    def use(lines):
        (tmp_path / "record").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        try:
            return records.read(tmp_path / "record", *make_game_and_rules("game=tictactoe"))
        except records.BadRecord as error:
            told = error.error.replace(str(tmp_path), "")
            assert told.isprintable()
            assert len(told) < 600
            return told

    return lines, use


def test_odd_lines_of_a_record_are_reported_in_one_line(record):
    lines, use = record
    for place in (0, 1):
        for text in [*TEXTS, '{"game": ' + DEEP + "}", f'"{ESCAPE}"']:
            odd = [*lines]
            odd[place] = text.replace("\n", "") or "[]"
            assert isinstance(use(odd), str)
    game = json.loads(lines[1])
    for change in (
        {"move": ESCAPE * 10**5},
        {"position": ESCAPE},
        {"gain": 10**400},
        {"gain": math.nan},
    ):
        moves = [game["moves"][0] | change, *game["moves"][1:]]
        assert isinstance(use([lines[0], json.dumps(game | {"moves": moves})]), str)
    other = json.loads(lines[0]) | {"game": {ESCAPE * 100: [ESCAPE] * 1000}}
    assert "other rules" in use([json.dumps(other), *lines[1:]])


def test_a_long_line_of_a_record_is_not_read(record, monkeypatch):
    lines, use = record
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 4000)
    assert "line 2: longer than" in use([lines[0], "x" * 5000])
    assert not isinstance(use(lines), str)


def test_players_of_a_record_are_shown_plainly(record, typed, tmp_path):
    lines, use = record
    games = [json.loads(line) for line in lines[1:]]
    for number, game in enumerate(games):
        for move in game["moves"]:
            move["player"] = f"{number}{ESCAPE * 100}"
    assert not isinstance(use([lines[0], *map(json.dumps, games)]), str)
    words = ["game=tictactoe", "policy=mlp", "demos_per_batch=1", "demonstrator=nobody"]
    plain_error_line(typed("train", *words, f"demonstrations={tmp_path / 'record'}"))


def test_a_record_that_is_not_a_file_does_not_block(tmp_path, typed):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        words = ["game=tictactoe", "policy=mlp", "demos_per_batch=1", f"demonstrations={path}"]
        assert "is not a file" in plain_error_line(typed("train", *words))
