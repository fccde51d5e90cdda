"""The loggers: where a run's config, metrics, pictures and results go besides its own files."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import Part, key


@dataclass
class TensorBoardConfig:
    name: str = "tensorboard"


@dataclass
class CsvConfig:
    name: str = "csv"


@dataclass
class WandbConfig:
    name: str = "wandb"
    project: str = "rlgames"
    mode: str | None = key(None, of=("online", "offline"))
    checkpoint: bool = True


@dataclass
class MlflowConfig:
    name: str = "mlflow"
    experiment: str = "rlgames"
    checkpoint: bool = True


@dataclass
class TrackioConfig:
    name: str = "trackio"
    project: str = "rlgames"
    checkpoint: bool = True


_FOLDER = "rlgames.runs.loggers"

LOGGERS = {
    "tensorboard": Part(
        TensorBoardConfig,
        f"{_FOLDER}.tensorboard:TensorBoardLogger",
        viewer=("tensorboard", "--logdir", "RUN"),
    ),
    "csv": Part(CsvConfig, f"{_FOLDER}.csv_logger:CsvLogger"),
    "wandb": Part(WandbConfig, f"{_FOLDER}.wandb_logger:WandbLogger", extra="wandb"),
    "mlflow": Part(
        MlflowConfig,
        f"{_FOLDER}.mlflow_logger:MlflowLogger",
        extra="mlflow",
        viewer=("mlflow", "ui"),
    ),
    "trackio": Part(
        TrackioConfig,
        f"{_FOLDER}.trackio_logger:TrackioLogger",
        extra="trackio",
        viewer=("trackio", "show"),
    ),
}
