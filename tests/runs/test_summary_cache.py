"""Summaries of many runs are kept, and read again only if files have changed."""

import json
import os

import pytest

from rlgames.runs import index, summary_cache
from rlgames.runs.index import RunReader
from rlgames.runs.summary_cache import read_summaries

CONFIG = {"game": {"name": "tictactoe", "board": 3}, "plugins": [], "lr": 0.1}
RUN = {"status": "done", "config": CONFIG, "results": {"points": 0.75}, "games": 10}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of four runs, which is enough for a cache here."""
    monkeypatch.setattr(summary_cache, "MIN_RUNS", 3)
    monkeypatch.setattr(summary_cache, "SETTLED_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number, status in enumerate(["done", "failed", "running", "done"]):
        path = tmp_path / f"runs/{number}"
        path.mkdir(parents=True)
        content = RUN | {"status": status, "pid": os.getpid(), "host": os.uname().nodename}
        (path / "run.json").write_text(json.dumps(content))
        (path / "metrics.jsonl").write_text('{"games": 5, "eval/points": 0.5}\n')
    return tmp_path / "runs"


def files_read(monkeypatch):
    """The runs whose files are read from now on."""
    read, parse = [], index.parse_info

    def parse_info(path):
        read.append(path.name)
        return parse(path)

    monkeypatch.setattr(index, "parse_info", parse_info)
    return read


def test_runs_that_have_ended_are_read_once(runs, monkeypatch):
    read = files_read(monkeypatch)
    first = read_summaries(["runs"], {})
    assert read == ["0", "1", "2", "3"]
    second = read_summaries(["runs"], {})
    assert read[4:] == ["2"]  # it is still running
    assert first == second == [RunReader(run.path).read() for run in first]
    monkeypatch.chdir(runs)
    read.clear()
    assert str(read_summaries(["../runs"], {})[0].path) == "../runs/0"
    assert read[-1] == "3"  # other names for the same runs


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl"])
def test_a_run_whose_files_change_is_read_again(runs, monkeypatch, name):
    read_summaries(["runs"], {})
    with open(runs / "1" / name, "a") as file:
        file.write("\n" if name == "run.json" else '{"games": 9, "eval/points": 0.9}\n')
    read = files_read(monkeypatch)
    again = read_summaries(["runs"], {})[1]
    assert "1" in read
    assert again == RunReader(again.path).read()


def test_an_edit_is_seen_although_size_and_time_of_the_file_stay(runs):
    file = runs / "0/run.json"
    content, status = file.read_text(), file.stat()
    read_summaries(["runs"], {})
    file.write_text(content.replace("0.75", "0.25"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read_summaries(["runs"], {})[0].results == {"points": 0.25}
    copy = runs / "0/copy"
    copy.write_text(content)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(file)
    assert read_summaries(["runs"], {})[0].results == {"points": 0.75}


def test_files_that_were_written_just_now_are_read_again(runs, monkeypatch):
    monkeypatch.setattr(summary_cache, "SETTLED_SECONDS", 60.0)
    read_summaries(["runs"], {})
    read = files_read(monkeypatch)
    read_summaries(["runs"], {})
    assert read == ["0", "1", "2", "3"]


def test_runs_with_other_settings_and_equal_values_of_other_types_stay_apart(runs):
    """The cache keeps the first run of each set of names, and of the others what differs."""
    for number, lr in enumerate([1, 1.0, True, -0.0]):
        config = CONFIG | {"lr": lr} | ({"batch": 16} if number == 3 else {})
        text = json.dumps(RUN | {"config": config})
        (runs / f"{number}/run.json").write_text(text)
    first, again = (read_summaries(["runs"], {}) for _ in range(2))
    assert [repr(run.settings) for run in again] == [repr(run.settings) for run in first]
    assert [repr(run.settings["lr"]) for run in again] == ["1", "1.0", "True", "-0.0"]


def test_a_run_that_is_gone_is_not_listed(runs):
    read_summaries(["runs"], {})
    for file in (runs / "0").iterdir():
        file.unlink()
    (runs / "0").rmdir()
    assert [run.path.name for run in read_summaries(["runs"], {})] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 1, "runs": 3}', "null", '{"runs": [[1]]}', None]
)
def test_a_cache_that_is_damaged_or_unreadable_is_passed_over(runs, content):
    first = read_summaries(["runs"], {})
    [path] = (runs.parent / "cache/rlgames/runs").iterdir()
    whole = json.loads(path.read_text())
    if content is None:
        del whole["firsts"][0][1]["status"]
        content = json.dumps(whole)
    path.write_text(content)
    assert read_summaries(["runs"], {}) == first
    path.unlink()
    path.mkdir()
    assert read_summaries(["runs"], {}) == first


def test_few_runs_need_no_cache(runs, monkeypatch):
    monkeypatch.setattr(summary_cache, "MIN_RUNS", 5)
    read_summaries(["runs"], {})
    assert not (runs.parent / "cache").exists()


def test_without_a_home_directory_every_run_is_read_each_time(runs, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    read = files_read(monkeypatch)
    assert read_summaries(["runs"], {}) == read_summaries(["runs"], {})
    assert len(read) == 8
    assert not (runs.parent / "~").exists()
