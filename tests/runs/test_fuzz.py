"""Randomly changed files are read or refused, and have no other effect.

Each is read within SECONDS, and all of them together let the memory grow by less than MEBIBYTES.
"""

import copy
import json
import math
import os
import random
import resource
import time
from functools import cache
from pathlib import Path

import pytest
from recorded_games import make_game_and_rules
from recorded_games import record as recorded
from untrusted_files import bounded, forge, plain_header, trained

from rlgames.config.typed import from_plain
from rlgames.core.errors import ConfigError
from rlgames.rollouts import records
from rlgames.runs.agents import open_run
from rlgames.runs.checkpoint import Checkpoint

SECONDS = 5
MEBIBYTES = 256

ODD = [None, True, -1, 0, 1, 10**6, 10**30, 10**400, 0.5, math.nan, math.inf, "", "x", "${x}"]
ODD += ["???", [], {}, [[]], [1] * 50, {"a": 1}, {"": {}}, "\x1b[31m\x07\n", "\ud800", "[red]"]
ODD += ["mlp", "table", "ntuple", "2048", "salvo", "run", "dqn", "td", "past", "exact", "human"]


def names(value):
    return list(value) if isinstance(value, dict) else list(range(len(value)))


def altered(value, draw):
    """A JSON value of which one part is odd, missing, doubled or replaced by another one."""
    value = copy.deepcopy(value)
    holder, node = None, value
    while isinstance(node, dict | list) and node and (holder is None or draw.random() < 0.8):
        key = draw.choice(names(node))
        holder, node = (node, key), node[key]
    if holder is None:
        return draw.choice(ODD)
    (inside, key), way = holder, draw.randrange(4)
    if way == 0:
        del inside[key]
    elif way == 1 and isinstance(inside, dict):
        inside[draw.choice(["x", "", "a.b", "name", "\x1b", "_target_", "${x}"])] = node
    elif way == 2:
        inside[key] = copy.deepcopy(value)
    else:
        inside[key] = draw.choice(ODD)
    return value


def mutated(data, draw):
    """Bytes that were flipped, truncated, deleted, doubled, inserted or replaced, once or more."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        here, there = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        way = draw.randrange(6)
        if way == 0 and here < len(data):
            data[here] ^= 1 << draw.randrange(8)
        elif way == 1:
            del data[here:]
        elif way == 2:
            del data[here:there]
        elif way == 3:
            data[here:here] = data[here:there][:1000]
        elif way == 4:
            data[here:here] = bytes(draw.randrange(256) for _ in range(8))
        else:
            data[here : here + 8] = draw.choice([bytes(8), b"\xff" * 8, b"[" * 500, b'"\\u0000'])
        if len(data) > 20_000:
            del data[20_000:]
    return bytes(data)


@cache
def sources(folder):
    """A folder with a run, its checkpoints' bytes, a record's lines, and where files are put."""
    run = trained("plain", folder / "run")
    recorded(folder / "record", "game=tictactoe", games=1)
    paths = [run / f"checkpoints/{name}.safetensors" for name in ("best", "latest")]
    found = [Checkpoint.read(path) for path in paths]
    data = [path.read_bytes() for path in paths]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else folder
    return found, data, (folder / "record").read_text(), Path(f"{memory}/fuzz-{os.getpid()}")


def fuzz_bytes(folder, draw):
    """A checkpoint with changed bytes, or random bytes."""
    _, data, _, path = sources(folder)
    content = mutated(draw.choice(data), draw)
    if draw.random() < 0.2:
        content = draw.randbytes(draw.randrange(200))
        content = draw.choice([content, len(content).to_bytes(8, "little") + content])
    _write(path, content)
    _read_checkpoint(path)


def fuzz_config(folder, draw):
    """A checkpoint with an odd config and a correct checksum, loaded as an agent if possible."""
    found, _, _, path = sources(folder)
    values = found[0].config
    for _ in range(draw.choice([1, 1, 2])):
        values = altered(values, draw)
    header = plain_header(found[0]) | {"config": json.dumps(values)}
    forge(path, {f"policy/{name}": tensor for name, tensor in found[0].policy.items()}, header)
    _read_checkpoint(path)


def fuzz_record(folder, draw):
    """A record with changed bytes, or with odd JSON."""
    _, _, text, path = sources(folder)
    head, line = text.splitlines()
    if draw.random() < 0.7:
        content = mutated(text.encode(), draw)
        content = (
            content if draw.random() < 0.4 else head.encode() + b"\n" + content[len(head) + 1 :]
        )
    else:
        content = f"{head}\n{json.dumps(altered(json.loads(line), draw))}\n".encode()
    _write(path, content)
    try:
        records.read(path, *make_game_and_rules("game=tictactoe"))
    except records.BadRecord as error:
        _plain(error, path)


def _write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def _read_checkpoint(path):
    try:
        from_plain(Checkpoint.read(path).config)
        open_run(path).agent()
    except ConfigError as error:
        _plain(error, path)


def _plain(error, path):
    told = error.error.replace(str(path), "")
    assert told.isprintable(), told
    assert len(told) < 700, told


def run(folder, counts, rounds):
    """Read this many files of each kind in each round. Returns their number."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path, draw = sources(folder)[3], random.Random(0)
    try:
        for _ in range(rounds):
            for fuzz, times in counts.items():
                for _ in range(times):
                    start = time.monotonic()
                    fuzz(folder, draw)
                    assert time.monotonic() - start < SECONDS
    finally:
        path.unlink()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    assert grown < MEBIBYTES
    return rounds * sum(counts.values())


@pytest.mark.parametrize(
    ("rounds", "factor"), [(40, 1), pytest.param(500, 12, marks=pytest.mark.long)]
)
def test_files_changed_at_random_are_refused_or_read(rounds, factor, tmp_path):
    counts = {fuzz_bytes: 8 * factor, fuzz_record: 4 * factor}
    sources(tmp_path)
    told = bounded(lambda: run(tmp_path, counts | {fuzz_config: 1}, rounds), MEBIBYTES, 600)
    assert int(told) >= 480 * factor
