"""A damaged run is shown as such and changes nothing about the others; so is a sweep's manifest."""

import contextlib
import copy
import io
import json
import math
import os
import shutil
import warnings
from dataclasses import replace
from functools import cache, partial

import pytest
from markers import one_in
from untrusted_files import trained

from rlgames.commands import report
from rlgames.config.commands import ReportConfig
from rlgames.config.compose import load_config
from rlgames.runs.files import STATUSES, read_info

ODD = [
    *(None, True, -1, 0, 3, 10**19, 10**400, 0.5, -0.0, 1e308, 1e-320, math.nan, math.inf),
    *("", "x", "done", "turns", "\x1b[31m\x07\n", "\ud800", "[red]", "../..", "9" * 5000),
    *([], {}, [[]], ["x"], {"a": 1}, {"": {}}, [{"a": math.nan}], {"turns": "high"}),
]
"""Values of every kind, each of which replaces every value of a file."""

REMOVED, RENAMED = object(), object()

FILES = ("run.json", "metrics.jsonl")

TEXTS = {
    "empty": b"",
    "blank": b"\n\n",
    "truncated": None,
    "binary": b"\xff\x00{" * 100,
    "another kind": b"[1]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "nested": b'{"a":' * 40 + b"1" + b"}" * 40,
    "repeated names": b'{"status": "done", "status": "failed", "games": 1, "games": 2}\n',
    "huge number": b'{"games": ' + b"9" * 100_000 + b"}\n",
    "infinite": b'{"games": Infinity, "seconds": NaN}\n',
    "aliases": b"a0: &a0 [x, x]\na1: &a1 [*a0, *a0]\n",
    "base 60": b"games: 1" + b":1" * 20_000,
    "long": b" " * (1 << 21),
    "surrogate": b'{"status": "\\ud800"}',
}


def written(value, name):
    """A file's content as bytes."""
    if name == "metrics.jsonl":
        return b"".join(json.dumps(line).encode() + b"\n" for line in value)
    return json.dumps(value).encode()


def parsed(path):
    """The content of a file of a sound run."""
    if path.name == "metrics.jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return json.loads(path.read_text())


def places(value, at=()):
    """Where each part of a JSON value is, by names and numbers."""
    names = (
        value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    )
    for name in names:
        yield (*at, name)
        yield from places(value[name], (*at, name))


def changed(value, at, way):
    """A copy with one part replaced, REMOVED or RENAMED."""
    value = copy.deepcopy(value)
    node = value
    for name in at[:-1]:
        node = node[name]
    if way is REMOVED:
        del node[at[-1]]
    elif way is not RENAMED:
        node[at[-1]] = way
    elif isinstance(node, dict):
        node["unheard of"] = node.pop(at[-1])
    else:
        node.append(node[at[-1]])
    return value


FILE_SYSTEM = {
    "missing": lambda file: file.unlink(),
    "folder": lambda file: _replaced(file, os.mkdir),
    "pipe": lambda file: _replaced(file, os.mkfifo),
    "device": lambda file: _replaced(file, lambda path: os.symlink("/dev/zero", path)),
    "no permission": lambda file: file.chmod(0),
}


def damages(run):
    """Ways to damage a run: each a name and a function of its directory."""
    yield "no permission", lambda path: path.chmod(0)
    for name in FILES:
        for kind, way in FILE_SYSTEM.items():
            yield f"{name}: {kind}", partial(lambda way, name, path: way(path / name), way, name)
        for kind, text in TEXTS.items():
            yield f"{name}: {kind}", partial(write, name, text)
        value = parsed(run / name)
        for at in places(value[:3] if name == "metrics.jsonl" else value):
            for way in (*ODD, REMOVED, RENAMED):
                yield f"{name}: {at}: {way!r:.40}", partial(change, name, value, at, way)


def write(name, text, path):
    whole = (path / name).read_bytes()
    (path / name).write_bytes(whole[: len(whole) // 2] if text is None else text)


def change(name, value, at, way, path):
    with contextlib.suppress(ValueError):  # no file has such a value
        (path / name).write_bytes(written(changed(value, at, way), name))


def _replaced(file, make):
    file.unlink()
    make(file)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with four sound runs, two values of lr with two seeds each, and one to damage."""
    folder = tmp_path_factory.mktemp("runs")
    made = trained("plain", folder / "made")
    run = parsed(made / "run.json") | {"command": ["pytest"]}
    for number in range(5):
        path = folder / "all" / ("victim" if number == 4 else str(number))
        shutil.copytree(made, path)
        own = run["config"] | {"lr": (0.1, 0.2, 0.1, 0.2, 0.1)[number], "seed": number // 2}
        results = {name: value * (1 + number / 10) for name, value in run["results"].items()}
        results |= {"random": 0.5, "optimal": 1.0}
        (path / "run.json").write_bytes(
            written(run | {"results": results, "config": own}, "run.json")
        )
    return folder / "all"


@pytest.fixture
def victim(runs):
    """The run to damage, which is sound again afterwards."""
    path, spare = runs / "victim", runs.parent / "spare"
    shutil.copytree(path, spare)

    def restore():
        path.chmod(0o700)
        shutil.rmtree(path)
        shutil.copytree(spare, path)

    yield path, restore
    restore()
    shutil.rmtree(spare)


def strict(text):
    """JSON without the numbers that JSON does not have."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@cache
def config(*words):
    return load_config(ReportConfig, list(words))


def report_on(runs, *words):
    return report.run(replace(config(*words), runs=[str(runs)]))


def printed(result, form):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        report.show(replace(result, config=replace(result.config, format=form)))
    assert all(char.isprintable() or char == "\n" for char in text.getvalue())
    return text.getvalue()


def sound_and_damaged(result):
    """What JSON says, by path, of the sound runs, and why others are damaged."""
    fields = strict(json.dumps(result.as_dict()))
    sound = {run["path"]: run for run in fields["runs"]}
    return sound, {run["path"]: run["reason"] for run in fields["damaged"]}


def check_reports(runs, before, with_figures):
    """Reports have the sound runs as before, and the damaged one as such. Returns its damage."""
    result = report_on(runs)
    sound, damaged = sound_and_damaged(result)
    victim = str(runs / "victim")
    is_run = os.path.lexists(f"{victim}/run.json")
    assert sound.keys() | damaged.keys() == ({*before, victim} if is_run else {*before})
    assert {path: run for path, run in sound.items() if path != victim} == before
    for form in ("table", "markdown", "latex", "csv"):
        assert victim in damaged or "damaged" not in printed(result, form)
        assert victim not in damaged or "damaged" in printed(result, form)
    if damaged:
        assert f"damaged: {victim}: {damaged[victim]}" in printed(result, "table")
    result = report_on(runs, "compare=lr")
    compared = strict(json.dumps(result.as_dict()))
    agents = [each["runs"].values() for each in compared["agents"]]
    assert before.keys() <= {path for games in agents for paths in games for path in paths}
    for form in ("table", "markdown", "latex", "csv"):
        assert printed(result, form)
    records = report_on(runs, "by=run", "sort=-seconds").records
    assert len(records) == len(sound) + len(damaged)
    if with_figures:
        for words in (["metric=[train/turns]", "by=run"], ["compare=lr"]):
            report_on(runs, f"curves={runs.parent}/figure.svg", *words)
    return damaged.get(victim, "")


PARTS = 800
"""Each takes one damage in 800. Every eighth part is tested."""


@pytest.mark.parametrize("part", one_in(PARTS, range(0, PARTS, 8)))
def test_a_damaged_run_changes_nothing_about_the_others(part, runs, victim):
    path, restore = victim
    before, damaged = sound_and_damaged(report_on(runs))
    assert damaged == {}
    del before[str(path)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for number, (name, damage) in enumerate(list(damages(path.parent / "0"))[part::PARTS]):
            damage(path)
            reason = check_reports(runs, before, with_figures=number % 20 == 5)
            is_refused = reason.endswith("is a link or not a regular file")
            assert not reason or is_refused or reason.startswith(FILES), name
            assert read_info(path).status in (*STATUSES, "waiting", "damaged") or is_refused
            restore()
