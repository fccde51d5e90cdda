"""Published agents: their folders, and the Hugging Face Hub, which shares them as hf:user/name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlgames.core.errors import ConfigError, check_installed
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage

PREFIX = "hf:"
"""Before the name of a repository on the hub, where a run can be named."""

MODEL = "model.safetensors"
"""The checkpoint in the folder of a published agent, the only file that is downloaded."""

EXTRA = ("hub", "huggingface_hub")
"""What installs the library of the hub, and its name."""

LOGIN = "log in with `hf auth login`, or set HF_TOKEN"

REPOSITORY = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w.-]*))?", re.ASCII)
"""user/name, and @ before a branch, a tag or a commit."""


def published_model(run: Path) -> Path | None:
    """The checkpoint in the folder of a published agent; None for anything else."""
    model = run / MODEL
    is_published = os.path.lexists(model) and not os.path.lexists(run / "checkpoints")
    return model if is_published else None


def downloads() -> Path:
    """The folder of downloaded agents, in the hub's cache, which HF_HOME can move."""
    return Path(os.environ.get("HF_HOME") or storage.cache_folder() / "huggingface") / "rlgames"


def download(word: str) -> Path:
    """The local folder of hf:user/name or hf:user/name@revision; it is downloaded unless the hub
    has nothing newer.

    Raises ConfigError for a name that is none, and for what the hub does not have.
    """
    repository, revision = parse_name(word.removeprefix(PREFIX))
    check_installed(word, *EXTRA)
    import huggingface_hub
    from huggingface_hub import constants

    from rlgames.runs.checkpoint import MAX_FILE_BYTES

    folder = downloads() / word.removeprefix(PREFIX)
    with _hub_errors(word):
        size = None if constants.HF_HUB_OFFLINE else _size(repository, revision)
        if size is not None and size > MAX_FILE_BYTES:
            raise ConfigError(f"{word} has {size:,} bytes, which are too many")
        huggingface_hub.hf_hub_download(repository, MODEL, revision=revision, local_dir=folder)
    return folder


def _size(repository: str, revision: str | None) -> int | None:
    """The bytes of a checkpoint on the hub; None where the hub cannot be reached: it may have been
    downloaded before. Raises the library's errors."""
    import huggingface_hub
    from huggingface_hub import errors

    url = huggingface_hub.hf_hub_url(repository, MODEL, revision=revision)
    try:
        size: int | None = huggingface_hub.get_hf_file_metadata(url).size
    except errors.HTTPError as error:
        if isinstance(error, errors.HfHubHTTPError):
            raise
        return None
    return size


def upload(
    folder: Path, files: Sequence[str], repository: str, private: bool, is_space: bool = False
) -> str:
    """Upload files of a folder to a repository, which is created if there is none; its address.

    private: of a new repository. is_space: a Space with Docker, not a model. Raises ConfigError
    where the hub refuses it.
    """
    import huggingface_hub

    api = huggingface_hub.HfApi()
    with _hub_errors(f"repo={repository}"):
        kind = "space" if is_space else "model"
        url = api.create_repo(
            repository,
            private=private,
            exist_ok=True,
            repo_type=kind,
            space_sdk="docker" if is_space else None,
        )
        api.upload_folder(
            repo_id=repository,
            repo_type=kind,
            folder_path=folder,
            allow_patterns=list(files),
            commit_message="Upload an agent of rlgames",
        )
    return str(url)


def parse_name(name: str) -> tuple[str, str | None]:
    """The repository and the revision of user/name or user/name@revision. Raises ConfigError."""
    match = REPOSITORY.fullmatch(name)
    if match is None or ".." in name:
        raise ConfigError(f"{sanitized(name)} is not a repository of the hub", "write user/name")
    return match[1], match[2]


@contextmanager
def _hub_errors(what: str) -> Iterator[None]:
    """Errors of the hub and of the network as a ConfigError with the cause."""
    from huggingface_hub import errors

    invalid: tuple[Any, ...] = (errors.LocalTokenNotFoundError, errors.HFValidationError)
    try:
        yield
    except errors.RepositoryNotFoundError:
        raise ConfigError(
            f"{what}: the hub has no such repository, or you may not see it",
            LOGIN,
        ) from None
    except errors.RevisionNotFoundError:
        raise ConfigError(f"{what}: the repository has no such revision") from None
    except errors.RemoteEntryNotFoundError:
        raise ConfigError(
            f"{what} has no {MODEL}", "rlgames publish RUN repo=user/name uploads one"
        ) from None
    except (*invalid, errors.HTTPError, errors.LocalEntryNotFoundError, OSError) as error:
        reason = sanitized(str(error).partition("\n")[0]) or type(error).__name__
        status = getattr(getattr(error, "response", None), "status_code", None)
        is_refused = status in (401, 403) or isinstance(error, errors.LocalTokenNotFoundError)
        hint = LOGIN if is_refused else ""
        raise ConfigError(f"{what}: the hub cannot be used ({reason})", hint) from None
