"""The evaluations of a job, each saved in the job's directory under a digest of what it depends on.

They are the command, its config, the checkpoints that it reads and VERSION. An evaluation is never
made twice; a copy of the directory on another machine has the same digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import parse_json
from rlgames.runs import storage
from rlgames.runs.checkpoint import read_identity
from rlgames.runs.files import BEST, LATEST

VERSION = 1
"""Of the rules by which evaluations count; the next one makes all of them again."""

FOLDER = "evaluations"
MAX_BYTES = 1 << 24

REFERENCE = re.compile(r"\{([\w./+-]*)\}")
"""The directory of a job in a word, relative to the sweep's; {}: the job's own."""


@dataclass(frozen=True)
class JobEvaluation:
    """An evaluation of a job.

    Args:
        name: for people.
        words: the command and its words, with references to directories in braces.
        config: the plain config of the command, for the digest.
    """

    name: str
    words: list[str]
    config: dict[str, Any]

    def filled(self, sweep: Path, own: str) -> list[str]:
        """The words with the paths of directories."""
        return [REFERENCE.sub(lambda m: str(sweep / (m[1] or own)), word) for word in self.words]

    def path(self, sweep: Path, own: str) -> Path | None:
        """The file that keeps the report; None while a checkpoint is missing."""
        checkpoints = []
        for match in REFERENCE.finditer(" ".join(self.words)):
            name = match[1] or own
            files = (BEST, LATEST) if self.config.get("checkpoint") in (None, "best") else (LATEST,)
            folder = sweep / name.partition("/checkpoints")[0] / "checkpoints"
            if folder.is_dir():
                known = [each for file in files if (each := read_identity(folder / file))]
                if not known:
                    return None
                checkpoints.append(known[0])
        content = json.dumps([VERSION, self.words, self.config, checkpoints], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        return sweep / own / FOLDER / f"{digest}.json"

    def read(self, sweep: Path, own: str) -> dict[str, Any] | None:
        """What was saved: the report, when it was made and how long it took; None for nothing."""
        path = self.path(sweep, own)
        if path is None:
            return None
        try:
            saved = parse_json(storage.read_file(sweep / own, f"{FOLDER}/{path.name}", MAX_BYTES))
            return saved if isinstance(saved["report"], dict) else None
        except (OSError, ValueError, LookupError, TypeError, ConfigError, RecursionError):
            return None

    def write(self, sweep: Path, own: str, saved: dict[str, Any]) -> None:
        path = self.path(sweep, own)
        assert path is not None
        storage.make_directory(sweep / own / FOLDER)
        text = json.dumps({"name": self.name, "words": self.words} | saved) + "\n"
        storage.write_file(sweep / own, f"{FOLDER}/{path.name}", text)
