"""What a run leaves on disk: its config, its provenance, its metrics, its log."""

from __future__ import annotations

import datetime
import json
import logging
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

PARTS = ("rlgames", "torch", "numpy", "hydra-core", "omegaconf", "tensorboard", "safetensors")


def fresh_directory(parent: Path) -> Path:
    """Make a new directory named by date, time and a counter; two runs never get the same one."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    for counter in range(10_000):
        path = parent / f"{stamp}_{counter}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent} has 10 000 runs of this second")


class RunLog:
    """The files of one run. Metrics are indexed by games played."""

    def __init__(self, directory: Path, config: dict[str, Any], yaml: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.yaml").write_text(yaml, encoding="utf-8")
        self._run: dict[str, Any] = {
            "command": sys.argv,
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in PARTS},
            **_commit(),
            "processor": _processor(),
            "threads": config["threads"],
            "seed": config["seed"],
            "start": _now(),
            "end": None,
            "status": "running",
        }
        self._write_run()
        self._metrics = open(directory / "metrics.jsonl", "w", encoding="utf-8")  # noqa: SIM115
        self._config = config
        self._writer = SummaryWriter(str(directory))
        self._writer.add_text("config", "    " + yaml.replace("\n", "\n    "), 0)
        self.log = logging.getLogger(f"rlgames.run.{directory}")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        self._handler = logging.FileHandler(directory / "train.log", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.log.addHandler(self._handler)

    def add(self, games: int, metrics: dict[str, float]) -> None:
        """One line of metrics.jsonl, and the same numbers for TensorBoard."""
        self._metrics.write(json.dumps({"games": games, **metrics}) + "\n")
        self._metrics.flush()
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, games)

    def spread(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """How numbers are spread, as a histogram of TensorBoard."""
        self._writer.add_histogram(name, values, games)

    def picture(self, games: int, name: str, picture: NDArray[np.uint8]) -> None:
        """uint8 [H, W, 3], for TensorBoard and as pictures/<name>.png, the latest one."""
        self._writer.add_image(name, picture, games, dataformats="HWC")
        path = self.directory / "pictures" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(picture).save(path)

    def finish(self, status: str, results: dict[str, float]) -> None:
        """Close the run: hyper-parameters beside its final figures, status and end."""
        flat = _flatten(self._config)
        for summary in hparams(flat, {f"final/{name}": value for name, value in results.items()}):
            self._writer._get_file_writer().add_summary(summary)
        for name, value in results.items():
            self._writer.add_scalar(f"final/{name}", value, self._config["games"])
        self._writer.close()
        self._metrics.close()
        self._run |= {"end": _now(), "status": status}
        self._write_run()
        self.log.removeHandler(self._handler)
        self._handler.close()

    def _write_run(self) -> None:
        text = json.dumps(self._run, indent=2)
        (self.directory / "run.json").write_text(text + "\n", encoding="utf-8")


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a metrics.jsonl, first to last."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            simple = isinstance(value, bool | int | float | str)
            # TensorBoard keeps numbers as doubles; a larger seed would lose digits.
            exact = not isinstance(value, int) or abs(value) < 2**53
            flat[prefix + name] = value if simple and exact else str(value)
    return flat


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    except OSError:
        pass
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _commit() -> dict[str, Any]:
    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(Path(__file__).parent), *words],
                capture_output=True,
                text=True,
                timeout=5,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    # An installed copy may lie inside somebody else's repository.
    if commit is None or git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {"commit": None, "clean": None}
    return {"commit": commit, "clean": git("status", "--porcelain") == ""}
