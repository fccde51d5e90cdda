"""Summaries of many runs as they were last read, in the user's cache: none is parsed twice.

The cache is outside the runs, which may come from a stranger. One that cannot be read or written is
passed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlgames.config.schema import groups_of
from rlgames.config.training import TrainConfig
from rlgames.runs import storage
from rlgames.runs.index import Known, RunReader, RunSummary, find_runs
from rlgames.version import __version__

MIN_RUNS = 200
"""Fewer are read in no time."""

MAX_FILE_BYTES = 1 << 29

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
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlgames/runs"
        self.folder = folder
        self.name = f"{hashlib.sha256(top.encode(errors='surrogateescape')).hexdigest()[:32]}.json"
        self.version = [__version__, NAMES, list(groups_of(TrainConfig))]

    def load(self) -> dict[Path, Known]:
        """What was read of each run; nothing from another version."""
        known: dict[Path, Known] = {}
        with contextlib.suppress(Exception):
            content = json.loads(storage.read_file(self.folder, self.name, MAX_FILE_BYTES))
            if content["version"] != self.version:
                return {}
            for name, stamps, number, settings, values in content["runs"]:
                path = self.paths.get(name)
                if path is None:
                    continue
                summary = RunSummary(
                    path=path,
                    settings=dict(zip(content["keys"][number], settings, strict=True)),
                    **dict(zip(NAMES, values, strict=True)),
                )
                known[path] = [stamp and tuple(stamp) for stamp in stamps], summary
        return known

    def save(self, known: Mapping[Path, Known]) -> None:
        """Keep what was read of the runs that have ended."""
        keys: dict[tuple[str, ...], int] = {}
        runs: list[list[Any]] = []
        for name, path in self.paths.items():
            stamps, run = known[path]
            if run is not None and run.status not in ("running", "waiting", "damaged"):
                settings = list(run.settings.values())
                number = keys.setdefault(tuple(run.settings), len(keys))
                values = [getattr(run, each) for each in NAMES]
                runs.append([name, stamps, number, settings, values])
        content = {"version": self.version, "keys": [*map(list, keys)], "runs": runs}
        with contextlib.suppress(OSError, ValueError):
            storage.make_directory(self.folder)
            storage.write_file(self.folder, self.name, json.dumps(content), durable=False)
