"""Where a run comes from: command, versions, commit, machine."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlgames.version import __version__

VERSIONED_PACKAGES = (
    "torch",
    "numpy",
    "hydra-core",
    "omegaconf",
    "tensorboard",
    "safetensors",
)

GIT_SECONDS = 5


def provenance(config: dict[str, Any]) -> dict[str, Any]:
    """The part of run.json on how a run was started. config: of the run."""
    versions = {name: version(name) for name in VERSIONED_PACKAGES}
    return {
        "command": sys.argv,
        "versions": {"python": platform.python_version(), "rlgames": __version__} | versions,
        **_commit(),
        "processor": _processor(),
        "threads": config["threads"],
        "seed": config["seed"],
        "start": timestamp(),
    }


def timestamp() -> str:
    """The time in UTC, in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _processor() -> str:
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} cores"


def _commit() -> dict[str, Any]:
    """The commit of the package's repository, and whether nothing is changed since; None each if
    the package does not lie in its own repository."""
    commit = _git("rev-parse", "HEAD")
    # An installed copy may lie inside another project's repository.
    if commit is None or _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {"commit": None, "clean": None}
    return {"commit": commit, "clean": _git("status", "--porcelain") == ""}


def _git(*words: str) -> str | None:
    """What git prints, None where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *words],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
