"""`rlgames COMMAND [RUN] [overrides]`: dispatches to a command.

Configs are imported once the name of the command is known, so that a mistyped one is answered at
once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rlgames.core.errors import TRACEBACK, ConfigError, detach_stdout, report_error, to_user_error
from rlgames.core.processes import no_garbage_collection
from rlgames.core.signals import exit_on_interrupted_import, exit_on_second_interrupt
from rlgames.core.status import STATUS
from rlgames.core.text import columns, help_width, printable

if TYPE_CHECKING:
    from rlgames.config.words import Flags

HELP_FLAGS = ("-h", "--help")

OWN_DIRECTORY = (
    *("hydra.run.dir=.", "hydra.output_subdir=null"),
    *("hydra/job_logging=none", "hydra/hydra_logging=none"),
)
"""Hydra makes no directory: the training makes its own, also by the config.yaml of another run."""


COMMANDS = {
    "train": ("train a policy", "train game=salvo board=4 shots=2"),
    "resume": ("resume a run or a sweep", "resume RUN games=500000"),
    "eval": ("evaluate a run or a player", "eval RUN opponent=exact"),
    "analyze": ("mistakes against perfect play", "analyze RUN opponent=win_or_block"),
    "play": ("play against a run or a player", "play connect4 seat=2"),
    "watch": ("watch a run play, move by move", "watch RUN delay=1"),
    "show": ("evaluate a single position", "show RUN state='. X . / . O . / . . .'"),
    "serve": ("games on a page in the browser", "serve connect4 hex"),
    "arena": ("tournament with Elo ratings", "arena RUN random win_or_block"),
    "solve": ("exact optimum of a game", "solve game=2048 board=2 columns=3"),
    "report": ("comparison of runs and sweeps", "report outputs curves=curves.png"),
    "doctor": ("why a run does not learn", "doctor RUN"),
    "study": ("runs and tables from one file", "study mine.yaml seeds=5"),
    "games": ("games with their presets and agents", "games hex"),
}
"""Every command with its help, of at most ten words, and an example; in the order of the help."""

PAGES = {"play": "serve_game", "watch": "serve_game", "show": "serve_game", "serve": "serve_games"}
"""The functions of rlgames.commands.serve that serve the page of a command and return the exit
code: with interface=web; of a command without that key, always."""

SLOW = ("eval", "analyze", "arena")
"""Commands that may compute for long without a line of their own."""


def load(name: str, function: str) -> Any:
    """The function `run` or `show` of a command.

    run(config) returns a result, which show(result) prints, or as_dict() with format=json; or it
    prints everything itself and returns None.
    """
    return resolve_name(f"rlgames.commands.{'evaluate' if name == 'eval' else name}:{function}")


def overview() -> str:
    """Every command with its help and an example."""
    rows = [(f"  {name}", text, f"rlgames {words}") for name, (text, words) in COMMANDS.items()]
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
        from importlib.metadata import version

        print(f"rlgames {version('rlgames')}")
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
            raise ConfigError(f"'{text}' is not valid UTF-8", "use a name in UTF-8") from None


def report(error: Exception | KeyboardInterrupt, as_json: bool) -> int:
    """Report what ended a command in one line; the exit code."""
    STATUS.clear()
    if isinstance(error, KeyboardInterrupt):
        message, code = getattr(error, "message", ""), getattr(error, "code", 130)
        report_error(ConfigError(f"interrupted{message and ', '}{message}"), as_json, code)
        sys.stdout.flush()  # the process may end at once
        return code
    if isinstance(error, ConfigError):
        return report_error(error, as_json)
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
    from rlgames.config.commands import COMMAND_SCHEMAS
    from rlgames.config.files import Files
    from rlgames.config.plugins import import_plugins
    from rlgames.config.typed import typed
    from rlgames.config.words import hydra_words, split_flags

    flags = split_flags(name, words)
    if not (flags.is_help or flags.hydra):
        STATUS.say_soon("starting")
    import_plugins(flags.words)
    files = Files(flags.folders)
    if flags.is_help:
        from rlgames.config.help import command_help

        print(command_help(name, "\n  rlgames ".join(COMMANDS[name]), flags.words, files))
        return 0
    overrides = flags.words
    if not flags.has_own_config:
        overrides = hydra_words(name, flags.words, files, flags.is_sweep)
    elif not any(word.startswith("hydra.run.dir=") for word in overrides):
        overrides = [*OWN_DIRECTORY, *overrides]
    if name == "train" or flags.hydra:
        return _run_app(name, flags, overrides)
    from rlgames.config.compose import composed

    return run_config(name, typed(COMMAND_SCHEMAS[name], composed(name, overrides, flags.folders)))


def _run_app(name: str, flags: Flags, words: list[str]) -> int:
    """Run a command by Hydra, once or as a sweep; the exit code."""
    from rlgames.config.compose import run_app, sweep_jobs

    if flags.is_sweep and not flags.has_own_config:
        from rlgames.commands.train import check_sweep

        own = [word for word in words if not word.startswith("hydra")]
        check_sweep(sweep_jobs(own, flags.folders))
        STATUS.clear()
    _ended.clear()
    run_app(name, flags, words, run_job)
    end = _ended[0] if _ended else 0
    if isinstance(end, Exception):
        raise end
    return end


_ended: list[int | Exception] = []
"""The exit code of a command that ran once by Hydra, or its error."""


def run_job(node: Any) -> float | None:
    """What Hydra calls for each run of a command; the value of best_by in a sweep."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    from rlgames.config.commands import COMMAND_SCHEMAS
    from rlgames.config.compose import JobFailed, hydra_errors, plain_values
    from rlgames.config.plugins import import_plugins
    from rlgames.config.typed import typed

    settings = HydraConfig.get()
    is_sweep = settings.mode == RunMode.MULTIRUN
    directory = Path(settings.runtime.output_dir)
    name = settings.job.config_name
    command = name if name in COMMANDS else "train"
    try:
        task: Any = OmegaConf.to_container(settings.overrides.task, resolve=False)
        import_plugins([*map(str, task)])  # in the process of a launcher
        with hydra_errors():
            values = plain_values(node)
        config: Any = typed(COMMAND_SCHEMAS[command], values)
        if command == "train" and (is_sweep or directory != Path.cwd()):
            if config.out is not None:
                text = "out= and hydra.run.dir= both name the directory"
                raise ConfigError(text, "omit one of them")
            config = dataclasses.replace(config, out=str(directory))
        if is_sweep:
            from rlgames.commands.resume import train_job

            return train_job(config, settings.job.override_dirname)
        _ended.append(run_config(command, config))
    except Exception as error:
        _remove_empty(directory)
        if is_sweep:
            report(error, False)
            raise JobFailed(settings.job.override_dirname, settings.sweep.dir) from None
        _ended.append(error)
    return None


def _remove_empty(directory: Path) -> None:
    """Remove a directory that Hydra made, and those above it here, unless something is in them."""
    with contextlib.suppress(OSError):
        while Path.cwd() in directory.parents:
            directory.rmdir()
            directory = directory.parent


def run_config(name: str, config: Any) -> int:
    """Run one command by its config and print the result; the exit code."""
    if name == "resume":
        from rlgames.commands.resume import sweep_words

        if words := sweep_words(config):
            return run("train", words)
    from rlgames.config.commands import PageConfig
    from rlgames.config.schema import names_of
    from rlgames.config.typed import changed

    if name in PAGES and getattr(config, "interface", "web") == "web":
        return int(resolve_name(f"rlgames.commands.serve:{PAGES[name]}")(config))
    if name in PAGES and (unused := changed(config, *names_of(PageConfig))):
        raise ConfigError(f"{unused[0]}= is for a page", "add interface=web")
    seats = (getattr(config, seat, None) for seat in ("player", "opponent"))
    players = [seat.name for seat in seats if seat is not None] + getattr(config, "players", [])
    has_human = "human" in players
    as_json = getattr(config, "format", None) == "json"
    if as_json and has_human:
        raise ConfigError("format=json cannot be combined with a human player", "omit format=")
    with no_garbage_collection():
        function = load(name, "run")
    if name != "train":  # which has more to import
        STATUS.clear()
    if name in SLOW and not has_human and sys.stderr.isatty():
        from rlgames.terminal.progress import busy_bar

        with busy_bar("playing"):
            result = function(config)
    else:
        result = function(config)
    if as_json:
        print(json.dumps(result.as_dict()))
    elif result is not None:
        load(name, "show")(result)
    return int(getattr(result, "exit_code", 0))
