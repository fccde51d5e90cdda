"""A Hugging Face Space that serves the page of an agent: the folder `space` of what is published.

A Space with Docker builds the Dockerfile and shows what answers at app_port; the README's metadata
says so: https://huggingface.co/docs/hub/spaces-sdks-docker
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized
from rlgames.runs import hub, storage
from rlgames.runs.checkpoint import Checkpoint
from rlgames.version import __version__

FOLDER = "space"
FILES = ("README.md", "Dockerfile", "requirements.txt")
PORT = 7860

DOCKERFILE = """\
FROM python:3.12-slim
RUN useradd --create-home --uid 1000 user
USER user
WORKDIR /home/user
ENV PATH=/home/user/.local/bin:$PATH
COPY --chown=user requirements.txt .
RUN pip install --no-cache-dir --user \\
        --extra-index-url https://download.pytorch.org/whl/cpu -r requirements.txt
COPY --chown=user {model} {name}/
EXPOSE {port}
CMD {command}
"""


def check_space(is_asked_for: bool, plugins: list[str]) -> None:
    """Raises ConfigError for an agent whose game or network is in modules of its author."""
    if is_asked_for and plugins:
        raise ConfigError(
            f"space=true serves what rlgames has, and this agent needs plugins={plugins}",
            "remove space=true",
        )


def write_space(folder: Path, agent: str, checkpoint: Checkpoint, license: str | None) -> list[str]:
    """Write the folder `space` of a published agent; its files, from the agent's folder.

    agent: its name. license: of the agent; None: not said.
    """
    space = folder / FOLDER
    storage.make_directory(space)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", agent).strip(".") or "agent"
    command = ["rlgames", "serve", name, "host=0.0.0.0", f"port={PORT}", "hosts=['*.hf.space']"]
    metadata = {
        "title": sanitized(agent, 100),
        "sdk": "docker",
        "app_port": PORT,
        "tags": ["rlgames"],
        **({} if license is None else {"license": license}),
    }
    texts = {
        "README.md": f"---\n{yaml.safe_dump(metadata, sort_keys=False)}---\n\n"
        "Play against an agent that was trained by rlgames.\n",
        "Dockerfile": DOCKERFILE.format(
            model=hub.MODEL, name=name, port=PORT, command=json_text([*command, "open=false"])
        ),
        "requirements.txt": f"rlgames[web]=={__version__}\n",
    }
    for file, text in texts.items():
        storage.write_file(space, file, text)
    checkpoint.write(space / hub.MODEL)
    return [f"{FOLDER}/{file}" for file in (*FILES, hub.MODEL)]


def upload_space(folder: Path, repository: str, private: bool) -> str:
    """Upload the folder `space` of a published agent; the address of the Space.

    Raises ConfigError where the hub refuses it.
    """
    return hub.upload(folder / FOLDER, [*FILES, hub.MODEL], repository, private, is_space=True)
