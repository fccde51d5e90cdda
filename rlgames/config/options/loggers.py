"""The loggers: where a run's config and metrics go besides its own files."""

from __future__ import annotations

from rlgames.config.schema import Option, OptionConfig, key


class WandbConfig(OptionConfig):
    project: str = key(help="project of the run")
    mode: str | None = key(
        of=("online", "offline"),
        help="offline: `wandb sync` uploads it later; null: WANDB_MODE, or else online",
    )


class MlflowConfig(OptionConfig):
    experiment: str = key(help="experiment of the run")


_MODULE = "rlgames.runs.loggers"

LOGGERS = {
    "tensorboard": Option(
        OptionConfig, f"{_MODULE}:TensorBoardLogger", viewer=("tensorboard", "--logdir", "RUN")
    ),
    "wandb": Option(WandbConfig, f"{_MODULE}:WandbLogger", extra="wandb"),
    "mlflow": Option(
        MlflowConfig, f"{_MODULE}:MlflowLogger", extra="mlflow", viewer=("mlflow", "ui")
    ),
}
