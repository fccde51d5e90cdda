"""Summaries of many runs as they were last read, in the user's cache: none is parsed twice.

The cache is outside the runs, which may come from a stranger. One that cannot be read or written is
passed over. Of runs with the same settings, all but the first keep only what differs from it: most
of it does not, and equal values become one object.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.schema import groups_of
from rlgames.runs import storage
from rlgames.runs.index import Known, RunReader, RunSummary, find_runs
from rlgames.version import __version__

MIN_RUNS = 200
"""Fewer are read in no time."""

MAX_FILE_BYTES = 1 << 29

SETTLED_SECONDS = 2.0
"""A file that was changed more recently may change again at what counts as the same time."""

NAMES = [each.name for each in fields(RunSummary) if each.name not in ("path", "settings")]


def read_summaries(directories: list[str], readers: dict[Path, RunReader]) -> list[RunSummary]:
    """The runs in some directories. readers: of an earlier call; new ones are added.

    Raises ConfigError as find_runs.
    """
    paths = find_runs(directories)
    new = [path for path in paths if path not in readers]
    cache = _SummaryCache(directories, new) if len(new) >= MIN_RUNS else None
    known = {} if cache is None else cache.load()
    readers |= {path: RunReader(path, known.get(path)) for path in new}
    summaries = [readers[path].read() for path in paths]
    if cache is not None:
        kept = {path: readers[path].known for path in new}
        if sum(known.get(path) is not kept[path] for path in new) > len(new) // 50:
            cache.save(kept)
    return summaries


class _SummaryCache:
    def __init__(self, directories: list[str], paths: list[Path]) -> None:
        here = os.getcwd()
        self.paths = {os.path.join(here, path): path for path in paths}
        top = "\n".join(os.path.abspath(each) for each in directories)
        self.folder = storage.cache_folder() / "rlgames/runs"
        self.name = f"{hashlib.sha256(top.encode(errors='surrogateescape')).hexdigest()[:32]}.json"
        self.version = [__version__, NAMES, list(groups_of(TrainConfig))]

    def load(self) -> dict[Path, Known]:
        """What was read of each run; nothing from another version."""
        known: dict[Path, Known] = {}
        with contextlib.suppress(Exception):
            content = json.loads(storage.read_file(self.folder, self.name, MAX_FILE_BYTES))
            if content["version"] != self.version:
                return {}
            firsts = content["firsts"]
            for name, stamps, number, settings, values in content["runs"]:
                path = self.paths.get(name)
                if path is None:
                    continue
                settings = firsts[number][0] | settings
                summary = RunSummary(path=path, settings=settings, **(firsts[number][1] | values))
                known[path] = [stamp and tuple(stamp) for stamp in stamps], summary
        return known

    def save(self, known: Mapping[Path, Known]) -> None:
        """Keep what was read of the runs that have ended."""
        firsts: dict[tuple[str, ...], tuple[int, dict[str, Any], dict[str, Any]]] = {}
        runs: list[list[Any]] = []
        settled = time.time_ns() - SETTLED_SECONDS * 1e9
        for name, path in self.paths.items():
            stamps, run = known[path]
            if run is None or run.status in ("running", "waiting", "damaged"):
                continue
            if all(stamp is None or stamp[0] < settled for stamp in stamps):
                values = {each: getattr(run, each) for each in NAMES}
                own = len(firsts), run.settings, values
                number, settings, others = firsts.setdefault(tuple(run.settings), own)
                differ = [_differing(settings, run.settings), _differing(others, values)]
                runs.append([name, stamps, number, *differ])
        content = {
            "version": self.version,
            "firsts": [first[1:] for first in firsts.values()],
            "runs": runs,
        }
        with contextlib.suppress(OSError, ValueError):
            storage.make_directory(self.folder)
            storage.write_file(self.folder, self.name, json.dumps(content), durable=False)


def _differing(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not those of the first, which has the same names."""
    return {name: value for name, value in other.items() if repr(value) != repr(first[name])}
