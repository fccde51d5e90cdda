"""`rlgames publish`: an agent as a folder for the Hugging Face Hub, its upload, and a Space."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from rlgames.commands import board_pictures
from rlgames.commands.evaluate import build_match, evaluate_command
from rlgames.commands.frames import play_games
from rlgames.commands.model_card import Agent, model_card, shared_name
from rlgames.commands.report import report_command
from rlgames.commands.run_config import config_for_run
from rlgames.config.commands import EvalConfig, PublishConfig
from rlgames.config.compose import load_config
from rlgames.config.plugins import command_for_run
from rlgames.config.typed import from_plain, to_yaml
from rlgames.core.errors import ConfigError, check_installed, report_error
from rlgames.core.text import json_text
from rlgames.core.untrusted import sanitized
from rlgames.drawing import figures
from rlgames.factory.agents import checkpoint_path, load_agent
from rlgames.runs import hub, storage
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.runs.files import metric_names
from rlgames.runs.run_info import read_info
from rlgames.version import __version__

CARD, CONFIG, CURVE, ANIMATION = "README.md", "config.yaml", "learning_curve.png", "game.gif"
"""The files next to the checkpoint."""

MOVE_SECONDS = 0.5
"""Between two moves of the animation."""

SPACE_FOLDER = "space"
SPACE_PORT = 7860

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


def publish_command(run: Path, overrides: list[str]) -> dict[str, Any]:
    """Write the folder of a run, a checkpoint or an agent that comes with rlgames: the checkpoint
    without what only a resumed training needs, its config, a card with an evaluation, the learning
    curve of a run, if matplotlib is installed, a game, and with space=true a Space. With repo= it
    is uploaded.

    Raises ConfigError where the folder holds something else, for a repository that is none, for a
    package that is missing, and where the hub refuses the upload.
    """
    cfg = load_config(PublishConfig, overrides)
    if cfg.repo is not None:
        hub.parse_name(cfg.repo)
        check_installed(f"repo={cfg.repo}", *hub.EXTRA)
    elif cfg.private:
        raise ConfigError("private=true is for an upload", "add repo=user/name")
    checkpoint = Checkpoint.read(checkpoint_path(run, cfg.checkpoint))
    check_space(cfg.space, from_plain(checkpoint.config).plugins)
    folder = Path(cfg.out or (run / "published" if run.is_dir() else f"published/{run.stem}"))
    _check_folder(folder)
    has_curve = _has_curve(run)
    words = _evaluation_words(cfg, overrides)
    build_match(config_for_run(EvalConfig, run, words), run)  # before anything is written
    storage.make_directory(folder)
    trained = _shared_config(checkpoint.config)
    published = Checkpoint(trained, checkpoint.games, checkpoint.policy, {})
    published.write(folder / hub.MODEL)
    config = from_plain(trained)
    storage.write_file(folder, CONFIG, to_yaml(config))
    report = evaluate_command(folder, words)
    _write_game(folder, cfg.seed)
    files = [hub.MODEL, CONFIG, ANIMATION, CARD]
    if has_curve:
        report_command([str(run)], [f"curves={folder / CURVE}", "width=column"])
        files.insert(2, CURVE)
    title = run.resolve().name if run.is_dir() else run.stem
    agent = Agent(title, cfg.repo, config, published, report, read_info(run), files)
    storage.write_file(folder, CARD, model_card(agent, cfg.license))
    space = write_space(folder, agent.title, published, cfg.license) if cfg.space else []
    written = [*files, *(f"{SPACE_FOLDER}/{name}" for name in space)]
    result: dict[str, Any] = {"folder": str(folder), "files": ", ".join(written)}
    if cfg.repo is not None:
        result["url"] = hub.upload(folder, files, cfg.repo, cfg.private)
        if space:
            result["space"] = hub.upload(folder / SPACE_FOLDER, space, cfg.repo, cfg.private, True)
        result["next"] = f"rlgames play {hub.PREFIX}{cfg.repo}"
    else:
        result["next"] = command_for_run("play", folder, list(config.plugins))
    return result


def _has_curve(run: Path) -> bool:
    """Whether a learning curve can be drawn; says so where only matplotlib is missing."""
    has_curve = run.is_dir() and any(name.startswith("eval/") for name in metric_names(run))
    if has_curve and not figures.is_installed():
        text = "no learning curve, which needs matplotlib: pip install 'rlgames[figures]'"
        report_error(ConfigError(text))
    return has_curve and figures.is_installed()


def _check_folder(folder: Path) -> None:
    """Raises ConfigError for a folder with other files, which might be overwritten."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not _is_published(folder)):
        raise ConfigError(f"{folder} holds something else", "name another out=")
    for name in (hub.MODEL, CONFIG, CURVE, ANIMATION, CARD):
        if os.path.lexists(folder / name):
            storage.check_file(folder, name)


def _is_published(folder: Path) -> bool:
    """Whether a folder holds an agent of rlgames; other projects also have a model.safetensors."""
    model = hub.published_model(folder)
    if model is None:
        return False
    try:
        Checkpoint.read(model)
    except BadCheckpoint:
        return False
    return True


def _shared_config(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a run without what concerns its author only: its directory, its loggers and
    where the files and the runs are that it was trained with."""
    shared = {name: value for name, value in config.items() if name != "logger"} | {"out": None}
    for name, value in shared.items():
        if isinstance(value, dict) and value.get("name") == "run":
            shared[name] = value | {"path": shared_name(value["path"])}
        elif name in ("init_from", "demonstrations") and value:
            shared[name] = shared_name(value)
    return shared


def _evaluation_words(cfg: PublishConfig, overrides: list[str]) -> list[str]:
    """How `rlgames eval` evaluates the published agent."""
    keys = ("games", "seed", "solve_seconds", "device", "threads")
    words = [f"{name}={getattr(cfg, name)}" for name in keys]
    typed = [word for word in overrides if word.startswith(("opponent=", "opponent.", "plugins="))]
    return [*typed, *words]


def _write_game(folder: Path, seed: int) -> None:
    """A game of the agent, against itself where it has an opponent."""
    agent = load_agent(folder)
    games = play_games(agent.game, [agent], ["the agent"], 1, seed)
    board_pictures.write_games(games, folder / ANIMATION, MOVE_SECONDS)


def check_space(is_asked_for: bool, plugins: list[str]) -> None:
    """Raises ConfigError for an agent whose game or network is in modules of its author."""
    if is_asked_for and plugins:
        raise ConfigError(
            f"space=true serves what rlgames has, and this agent needs plugins={plugins}",
            "remove space=true",
        )


def write_space(folder: Path, agent: str, checkpoint: Checkpoint, license: str | None) -> list[str]:
    """Write the folder `space` of a published agent; its files.

    agent: its name. license: of the agent; None: not said.
    """
    space = folder / SPACE_FOLDER
    storage.make_directory(space)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", agent).strip(".") or "agent"
    command = [
        "rlgames",
        "serve",
        name,
        "host=0.0.0.0",
        f"port={SPACE_PORT}",
        "hosts=['*.hf.space']",
    ]
    metadata = {
        "title": sanitized(agent, 100),
        "sdk": "docker",
        "app_port": SPACE_PORT,
        "tags": ["rlgames"],
        **({} if license is None else {"license": license}),
    }
    texts = {
        "README.md": f"---\n{yaml.safe_dump(metadata, sort_keys=False)}---\n\n"
        "Play against an agent that was trained by rlgames.\n",
        "Dockerfile": DOCKERFILE.format(
            model=hub.MODEL, name=name, port=SPACE_PORT, command=json_text([*command, "open=false"])
        ),
        "requirements.txt": f"rlgames[web]=={__version__}\n",
    }
    for file, text in texts.items():
        storage.write_file(space, file, text)
    checkpoint.write(space / hub.MODEL)
    return [*texts, hub.MODEL]
