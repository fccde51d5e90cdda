"""`rlgames COMMAND [RUN] [overrides]`: dispatches to a command.

Hydra is imported once the words are read, so that mistyped ones are answered at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config.commands import COMMANDS, load_command
from rlgames.core.errors import (
    TRACEBACK,
    ConfigError,
    JobsFailed,
    detach_stdout,
    report_error,
    to_user_error,
)
from rlgames.core.processes import no_garbage_collection
from rlgames.core.signals import (
    Interrupts,
    exit_on_interrupted_import,
    exit_on_second_interrupt,
)
from rlgames.core.status import STATUS
from rlgames.core.text import columns, help_width, printable
from rlgames.core.version import __version__

HELP_FLAGS = ("-h", "--help")


def overview() -> str:
    """Every command with its help and an example."""
    rows = [(f"  {name}", each.help, f"rlgames {each.example}") for name, each in COMMANDS.items()]
    lines = columns(rows)
    if max(map(len, lines)) > help_width():  # examples on separate lines
        lines = [line for row in rows for line in (f"{row[0]:14}{row[1]}", " " * 14 + row[2])]
    title = "rlgames COMMAND [RUN] [key=value ...]: train, evaluate and play agents for board games"
    closing = "rlgames COMMAND --help: its groups and keys; rlgames --version: the version"
    return "\n".join([title, "", *lines, "", closing])


def main() -> None:
    """The console script: run a command and exit with its code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale may lack a character
    words = sys.argv[1:]
    try:
        with (
            exit_on_interrupted_import(lambda: report(KeyboardInterrupt(), wants_json(words))),
            exit_on_second_interrupt(_print_signal),
        ):
            code = answer(words)
        sys.stdout.flush()
    except OSError as error:  # standard output is closed, or cannot be written
        detach_stdout()
        is_closed = isinstance(error, BrokenPipeError)
        code = 0 if is_closed else report_error(ConfigError(str(error)), False, 3)
    sys.exit(code)


def _print_signal(line: str) -> None:
    """Print a line about a signal; a live view may have hidden the cursor."""
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{cursor}rlgames: {line}\n".encode())


def answer(words: list[str]) -> int:
    """Run a command line and report its errors; the exit code."""
    if words[:1] == ["help"] and words[1:]:
        words = [*words[1:], "--help"]
    if words[:1] == ["version"] or "--version" in words:
        print(f"rlgames {__version__}")
        return 0
    if not words or words[0] in (*HELP_FLAGS, "help"):
        print(overview())
        return 0
    try:
        _check_utf8(words)
        return run(words[0], words[1:])
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        # No variable of this frame refers to the cause, which refers to the frame: what the error
        # leaves open, such as a lock, is closed now.
        return report(_interrupt_behind(error) or error, wants_json(words))


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that an error comes from: cleaning up may fail in code that it tore apart."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _check_utf8(words: list[str]) -> None:
    """Raises ConfigError for a word that no text file can hold, so that no run could name it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            text = printable(word).replace("\\udc", "\\x")  # how Python keeps such a byte
            code = sys.getfilesystemencoding().upper()
            hint = "use a name in UTF-8" if code == "UTF-8" else "set PYTHONUTF8=1"
            raise ConfigError(f"'{text}' is not valid {code}", hint) from None


def report(error: Exception | KeyboardInterrupt, as_json: bool) -> int:
    """Report what ended a command in one line; the exit code."""
    STATUS.clear()
    if isinstance(error, KeyboardInterrupt):
        message, code = getattr(error, "message", ""), getattr(error, "code", 130)
        report_error(ConfigError(f"interrupted{message and ', '}{message}"), as_json, code)
        sys.stdout.flush()  # the process may end at once
        return code
    if isinstance(error, ConfigError):
        return report_error(error, as_json, 3 if isinstance(error, JobsFailed) else 2)
    if isinstance(error, EOFError):  # standard input ended before a person answered
        return report_error(ConfigError(str(error)), as_json)
    if os.environ.get(TRACEBACK):
        raise error
    return report_error(to_user_error(error), as_json, 3)


def wants_json(words: list[str]) -> bool:
    """Whether standard output is to be JSON."""
    values = [word.partition("=")[2] for word in words if word.startswith("format=")]
    return values[-1:] in (["json"], ["'json'"])


def run(name: str, words: list[str]) -> int:
    """Run one command; the exit code. Raises ConfigError for bad input."""
    if name not in COMMANDS:
        from rlgames.config.hints import unknown_command

        raise unknown_command(name, [*COMMANDS, "--help", "--version"])
    from rlgames.config.overrides import read_words, split_flags
    from rlgames.config.plugins import import_plugins

    flags = split_flags(name, words)
    if not (flags.is_help or flags.hydra):
        STATUS.say_soon("starting")
    import_plugins(flags.words)
    if flags.is_help:
        from rlgames.config.help import command_help

        title = f"{COMMANDS[name].help}\n  rlgames {COMMANDS[name].example}"
        print(command_help(name, title, flags.words, flags.folders))
        return 0
    if name == "train":
        from rlgames.commands.train import with_stored_words

        flags.words = with_stored_words(flags.words)
    read = read_words(name, flags.words, flags.is_sweep)
    from rlgames.config.compose import compose_config, run_app

    if name == "train" or flags.hydra:
        from rlgames.commands.train import check_sweep

        job = _HydraJob()
        run_app(name, flags, read, job, check_sweep)
        if isinstance(job.end, Exception):
            raise job.end
        return job.end
    config = compose_config(name, read, flags.folders)
    if name == "resume":
        from rlgames.commands.resume import sweep_words

        if again := sweep_words(config, flags.folders):
            return run("train", again)
    return run_config(name, config)


@dataclass
class _HydraJob:
    """What Hydra calls for each run of a command; pickled, because launchers send it to other
    processes. end: the exit code of a command that ran once, or its error."""

    end: int | Exception = 0

    def __call__(self, node: Any) -> float | None:
        """Run a command; in a sweep, return the value of best_by, and raise what ends the job."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        settings = HydraConfig.get()
        is_sweep = settings.mode == RunMode.MULTIRUN
        directory, preset = settings.runtime.output_dir, settings.runtime.choices.get("experiment")
        name = settings.job.config_name
        command = name if name in COMMANDS else "train"
        try:
            config = _config_of_job(command, node, settings, Path(directory), is_sweep)
            if is_sweep:
                from rlgames.commands.resume import train_job

                return train_job(config, settings.job.override_dirname or Path(directory).name)
            self.end = run_config(command, config, *([preset] if command == "train" else []))
        except Exception as error:
            _remove_empty(Path(directory))
            if is_sweep:  # the sweep goes on, and says why this job is not done
                raise
            self.end = error
        return None


def _config_of_job(command: str, node: Any, settings: Any, directory: Path, is_sweep: bool) -> Any:
    """What Hydra composed for a run, with the directory that Hydra made for it. Raises
    ConfigError."""
    from omegaconf import OmegaConf

    from rlgames.config.compose import typed_node
    from rlgames.config.overrides import parse_word
    from rlgames.config.plugins import import_plugins

    task: Any = OmegaConf.to_container(settings.overrides.task, resolve=False)
    import_plugins([*map(str, task)])  # in the process of a launcher
    config: Any = typed_node(COMMANDS[command].schema, node)
    if command != "train" or not (is_sweep or directory != Path.cwd()):
        return config
    if any(parse_word(str(word)).name == "out" for word in task):
        key = "hydra.sweep.dir" if is_sweep else "hydra.run.dir"
        raise ConfigError(f"out= and {key}= both name the directory", "omit one of them")
    return dataclasses.replace(config, out=str(directory))


def _remove_empty(directory: Path) -> None:
    """Remove a directory that Hydra made, and those above it here, unless something is in them."""
    with contextlib.suppress(OSError):
        while Path.cwd() in directory.parents:
            directory.rmdir()
            directory = directory.parent


def run_config(name: str, config: Any, *more: Any) -> int:
    """Run one command by its config and print the result; the exit code. more: other arguments of
    the command."""
    command = COMMANDS[name]
    seats = (getattr(config, seat, None) for seat in ("player", "opponent"))
    players = [seat.name for seat in seats if seat is not None] + getattr(config, "players", [])
    has_human = "human" in players
    as_json = getattr(config, "format", None) == "json"
    if as_json and has_human:
        raise ConfigError("format=json cannot be combined with a human player", "omit format=")
    with no_garbage_collection():
        module = load_command(name)
    if name != "train":  # which has more to import
        STATUS.clear()
    with contextlib.ExitStack() as stack:
        if "program" in players:  # which ends with this one, also after SIGTERM
            stack.enter_context(Interrupts())
        if command.slow and not has_human and sys.stderr.isatty():
            from rlgames.terminal.progress import busy_bar

            stack.enter_context(busy_bar("playing"))
        result = module.run(config, *more)
    if as_json:
        print(json.dumps(result.as_dict()))
    elif result is not None:
        module.show(result)
    return int(getattr(result, "exit_code", 0))
