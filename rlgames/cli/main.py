"""`rlgames COMMAND [RUN] [overrides]`: dispatches to a command; imports nothing heavy itself."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from dataclasses import dataclass, field
from pkgutil import resolve_name

from rlgames.cli.table import COMMANDS, SWEEP_FLAGS, Command, last_value, overview
from rlgames.config.folders import FLAGS as FOLDER_FLAGS
from rlgames.config.plugins import import_plugins
from rlgames.config.schema import names_of
from rlgames.core.errors import (
    TRACEBACK,
    ConfigError,
    detach_stdout,
    nearest,
    report_error,
    to_user_error,
)
from rlgames.core.processes import no_garbage_collection
from rlgames.core.signals import Interrupted, exit_on_interrupted_import, exit_on_second_interrupt
from rlgames.core.text import json_text, printable

HELP_FLAGS = ("-h", "--help")
SHORT_FLAGS = {"-c": "--cfg", "-p": "--package"}
FLAGS = (*HELP_FLAGS, *SWEEP_FLAGS, "--config-dir", "--cfg", "--package", "--resolve", "--version")
"""The flags that a command may have; any other of Hydra's is an error."""

INSTEAD = {
    "--config-name": "use experiment=NAME or config=FILE",
    "-cn": "use experiment=NAME or config=FILE",
    "--config-path": "use --config-dir DIR",
    "-cp": "use --config-dir DIR",
    "--info": "use --cfg job",
    "-i": "use --cfg job",
    "--hydra-help": "use --help",
    "--run": "omit it",
    "-r": "omit it",
}
"""What to use instead of Hydra's other flags."""


@dataclass
class Flags:
    """The flags of a command line.

    Args:
        words: the other words, with -m and --config-dir.
        cfg: whether --cfg job shows the config instead of running the command.
    """

    words: list[str] = field(default_factory=list)
    cfg: bool = False
    package: str | None = None
    resolve: bool = False
    help: bool = False


def parse_flags(command: Command, words: list[str]) -> Flags:
    """Separate the flags from the other words.

    Raises ConfigError for a flag that the command does not have, and for flags that contradict.
    """
    flags, rest = Flags(), iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        flag = SHORT_FLAGS.get(flag, flag)
        if word[:1] != "-" or os.path.exists(word):
            flags.words.append(word)
        elif flag in FOLDER_FLAGS:
            flags.words.append(f"--config-dir={value if equals else next(rest, '')}")
        elif word in HELP_FLAGS:
            flags.help = True
        elif word in SWEEP_FLAGS:
            if command.sweep is None:
                able = [each.name for each in COMMANDS.values() if each.sweep is not None]
                hint = f"{word} works with: {', '.join(able)}"
                raise ConfigError(f"{command.name} cannot sweep", hint)
            flags.words.append(word)
        elif word == "--resolve":
            flags.resolve = True
        elif flag == "--cfg":
            kind = value if equals else next(rest, "")
            if kind != "job":
                raise ConfigError(f"--cfg {kind} is not supported here", "use --cfg job")
            flags.cfg = True
        elif flag == "--package":
            flags.package = value if equals else next(rest, "")
        else:
            hint = INSTEAD.get(flag) or nearest(flag, list(FLAGS))
            key = flag.lstrip("-").replace("-", "_")
            if key in names_of(command.config):
                hint = f"use {key}=VALUE"
            elif hint.startswith("available"):
                hint = "supported: " + ", ".join(FLAGS)
            raise ConfigError(f"{word} is not supported here", hint)
    if flags.cfg and {*SWEEP_FLAGS} & {*flags.words}:
        raise ConfigError("-m and --cfg contradict each other", "use one of them")
    for name, is_typed in (("--resolve", flags.resolve), ("--package", flags.package is not None)):
        if is_typed and not flags.cfg:
            raise ConfigError(f"{name} needs --cfg", f"as in: --cfg job {name}")
    return flags


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
            exit_on_interrupted_import(lambda: report_interrupt(words)),
            exit_on_second_interrupt(_print_signal),
        ):
            code = answer(words)
        sys.stdout.flush()
    except BrokenPipeError:
        detach_stdout()
        code = 0
    except OSError as error:  # standard output cannot be written
        detach_stdout()
        code = report_error(ConfigError(str(error)), False, 3)
    sys.exit(code)


def _print_signal(line: str) -> None:
    """Print a line about a signal; a live view may have hidden the cursor."""
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    with contextlib.suppress(OSError, ValueError):
        os.write(2, f"{cursor}rlgames: {line}\n".encode())


def answer(words: list[str]) -> int:
    """Run a command line and report its errors; the exit code."""
    words = [word.removeprefix("++") for word in words]  # every key has a default to override
    if words[:1] == ["help"] and words[1:]:
        words = [*words[1:], "--help"]
    if words[:1] == ["version"] or "--version" in words:
        from rlgames.version import __version__

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
        return _report(_interrupt_behind(error) or error, words)


def _report(error: Exception | KeyboardInterrupt, words: list[str]) -> int:
    if isinstance(error, Exception | Interrupted):
        return report_exception(error, wants_json(words))
    return report_interrupt(words)


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


def report_exception(error: Exception | Interrupted, as_json: bool) -> int:
    """Report what ended a command in one line; the exit code."""
    if isinstance(error, ConfigError):
        return report_error(error, as_json)
    if isinstance(error, Interrupted):
        text = f"interrupted{error.message and ', '}{error.message}"
        return report_error(ConfigError(text), as_json, error.code)
    if isinstance(error, EOFError):  # standard input ended before a person answered
        return report_error(ConfigError(str(error)), as_json, 2)
    if os.environ.get(TRACEBACK):
        raise error
    return report_error(to_user_error(error), as_json, 3)


def report_interrupt(words: list[str]) -> int:
    """Report that Ctrl-C ended the command; the exit code."""
    code = report_error(ConfigError("interrupted"), wants_json(words), 130)
    sys.stdout.flush()
    return code


def wants_json(words: list[str]) -> bool:
    """Whether standard output is to be JSON."""
    return last_value("format", words) == "json"


def wants_human(words: list[str]) -> bool:
    """Whether a person plays."""
    return bool({"human", "player=human", "opponent=human"} & {*words})


def run(name: str, words: list[str]) -> int:
    """Run one command; the exit code. Raises ConfigError for bad input."""
    if name not in COMMANDS:
        names = [*COMMANDS, "--help", "--version"]
        raise ConfigError(f"no command is called {name!r}", nearest(name, names))
    command = COMMANDS[name]
    flags = parse_flags(command, words)
    words = flags.words
    import_plugins(words)
    if flags.help:
        from rlgames.cli.help import command_help

        print(command_help(command, words))
        return 0
    from rlgames.cli.words import arguments

    if flags.cfg:
        from rlgames.commands.show_config import config_text

        *runs, overrides = arguments(command, words)
        run = runs[0] if command.runs == "optional" else None
        print(config_text(command.config, run, overrides, flags.package, flags.resolve), end="")
        return 0
    _check_omp_num_threads()
    if wants_json(words) and wants_human(words):
        raise ConfigError("format=json cannot be combined with a human player", "omit format=")
    command = command.for_words(words)
    with no_garbage_collection():
        function, values = command.load_function(), arguments(command, words)
    if command.shows_progress and not wants_human(words):
        from rlgames.cli.busy_bar import busy_bar

        with busy_bar("playing"):
            result = function(*values)
    else:
        result = function(*values)
    if command.printer is None:
        return int(result)
    if wants_json(words):
        print(json_text(result if isinstance(result, dict) else result.as_dict()))
    else:
        resolve_name(command.printer)(result)
    return 0


def _check_omp_num_threads() -> None:
    """Raises ConfigError for a number of threads about which OpenMP itself would print a message,
    without the program's name, and take another one."""
    text = os.environ.get("OMP_NUM_THREADS", "1")
    if not re.fullmatch(r"\s*0*[1-9][0-9]{0,8}\s*(,\s*0*[1-9][0-9]{0,8}\s*)*", text):
        raise ConfigError(
            f"OMP_NUM_THREADS={text!r} in the environment is not a whole number, at least 1",
            "unset it, or write OMP_NUM_THREADS=1",
        )
