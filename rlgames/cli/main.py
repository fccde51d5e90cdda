"""`rlgames COMMAND [RUN] [overrides]`: the first word chooses; nothing heavy is imported here."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlgames.cli.help import command_help, overview
from rlgames.config.command_schemas import known_keys
from rlgames.config.plugins import load_plugins
from rlgames.core.errors import (
    TRACEBACK,
    ConfigError,
    detach_stdout,
    nearest,
    report_error,
    to_user_error,
)
from rlgames.core.signals import Interrupted, exit_on_interrupted_import
from rlgames.core.text import json_text, printable

COMMANDS = {
    "train": ("learn to play", "rlgames train game=salvo board=4 shots=2"),
    "resume": ("go on with a run or a sweep", "rlgames resume RUN games=500000"),
    "eval": ("how well a run or a player plays", "rlgames eval RUN opponent=exact"),
    "play": ("play against a run, or with its hints", "rlgames play RUN seat=2"),
    "watch": ("a run at play, move by move", "rlgames watch RUN delay=1"),
    "show": ("what a run thinks of a position", "rlgames show RUN state='. X . / . O . / . . .'"),
    "arena": ("everybody against everybody", "rlgames arena RUN random win_or_block"),
    "solve": ("the exact optimum", "rlgames solve game=2048 board=2 columns=3"),
    "report": ("runs and sweeps beside each other", "rlgames report outputs curves=curves.png"),
    "export": ("a run's network as an ONNX file", "rlgames export RUN out=policy.onnx"),
    "games": ("what can be played", "rlgames games"),
    "experiments": ("presets to train by", "rlgames experiments format=json"),
    "completion": ("complete words in bash or zsh", 'eval "$(rlgames completion bash)"'),
}
"""What each command does, and an example."""

RUN_COMMANDS = ("resume", "eval", "play", "watch", "show", "export")
"""Commands whose first word may be a run."""

MULTI_RUN_COMMANDS = ("arena", "report")
"""Commands whose words may all be runs."""

FLAGS = ("-h", "--help", "-m", "--multirun", "--config-dir")

PATH_KEYS = ("curves", "out", "record", "init_from", "demonstrations", "demonstrator", "state")
"""Keys that hold a path, are named by one or hold a board, which may have any characters in it."""


def main() -> None:
    """The console script: runs a command and exits with its code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale may lack a character
    words = sys.argv[1:]
    try:
        with exit_on_interrupted_import(lambda: interrupted(words)):
            code = answer(words)
        sys.stdout.flush()
    except BrokenPipeError:
        detach_stdout()
        code = 0
    except OSError as error:  # there is no room for what we say
        detach_stdout()
        code = report_error(ConfigError(str(error)), False, 3)
    sys.exit(code)


def answer(words: list[str]) -> int:
    """Run a command line and say what went wrong; the exit code."""
    if words[:1] == ["help"] and words[1:]:
        words = [*words[1:], "--help"]
    if words[:1] in (["--version"], ["version"]):
        from rlgames import __version__

        print(f"rlgames {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview(COMMANDS))
        return 0
    as_json = wants_json(words)
    try:
        return run(words[0], words[1:])
    except ConfigError as error:
        return report_error(error, as_json)
    except Interrupted as end:
        message = f"interrupted{end.message and ', '}{end.message}"
        return report_error(ConfigError(message), as_json, end.code)
    except KeyboardInterrupt:
        return interrupted(words)
    except EOFError as error:  # a person was asked and is no longer there
        return report_error(ConfigError(str(error)), as_json, 2)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return report_error(to_user_error(error), as_json, 3)


def interrupted(words: list[str]) -> int:
    """Say that Ctrl-C has ended the command that these words are; the exit code."""
    code = report_error(ConfigError("interrupted"), wants_json(words), 130)
    sys.stdout.flush()
    return code


def wants_json(words: list[str]) -> bool:
    """Whether what is said on standard output is to be JSON."""
    formats = [word.partition("=")[2].strip("'\"") for word in words if word[:7] == "format="]
    return formats[-1:] == ["json"]


def run(command: str, words: list[str]) -> int:
    """Run one command; raises ConfigError for bad input."""
    if command not in COMMANDS:
        known = [*COMMANDS, "--help", "--version"]
        raise ConfigError(f"no command is called {command!r}", nearest(command, known))
    if command == "completion":
        return completion(words)
    words = load_plugins(words)
    for word in words:
        if word[:1] == "-" and word not in FLAGS and not _is_path(word):
            key = word.lstrip("-").partition("=")[0]
            keyed = f"write {key}=value" if key in known_keys(command) else ""
            raise ConfigError(f"no flag is called {word!r}", keyed or nearest(word, [*FLAGS]))
    if "-h" in words or "--help" in words:
        takes_runs = command in (*RUN_COMMANDS, *MULTI_RUN_COMMANDS)
        print(command_help(command, COMMANDS, words, takes_runs))
        return 0
    if wants_json(words) and {"human", "player=human", "opponent=human"} & {*words}:
        raise ConfigError("a person is shown the game where the JSON goes", "leave format= out")
    if command in MULTI_RUN_COMMANDS:
        who = [word for word in words if _is_path(word) or "=" not in word]
        words = [path_quoted(word) for word in words if word not in who]
        return arena(who, words) if command == "arena" else report(who, words)
    target = None
    if words and (_is_path(words[0]) or (command in RUN_COMMANDS and "=" not in words[0])):
        target = Path(words[0])
        if command not in RUN_COMMANDS:
            raise ConfigError(f"{command} takes no run, and {words[0]} is one")
        if not target.exists():
            from rlgames.core.errors import nearest_directory

            raise ConfigError(f"there is no run at {words[0]}", nearest_directory(words[0]))
        words = words[1:]
    multirun = any(word in ("-m", "--multirun") for word in words)
    words = [path_quoted(word) for word in words if word not in ("-m", "--multirun")]
    if multirun:
        if command != "train":
            raise ConfigError(f"-m sweeps over train; {command} runs once")
        from rlgames.commands.sweep import sweep_command

        return sweep_command(words)
    if command == "train":
        for word in words:
            if word.partition("=")[0].split(".")[0] in known_keys("sweep") - known_keys("train"):
                raise ConfigError(f"{word} belongs to a sweep", "add -m")
        return train(_load("train", words))
    if command == "resume":
        return resume(target, words)
    if command == "eval":
        return evaluate(target, words)
    if command == "play":
        return play(target, words)
    if command == "watch":
        return watch(target, words)
    if command == "show":
        return show_position(target, words)
    if command in ("games", "experiments"):
        return listing(command, words)
    if command == "export":
        return export(target, words)
    return solve(_load("solve", words))


def _load(command: str, words: list[str]) -> object:
    from rlgames.config.compose import load_config

    return load_config(command, words)


def _is_path(word: str) -> bool:
    try:
        return Path(word).exists()
    except OSError:  # too long for a path, say
        return False


def path_quoted(word: str) -> str:
    """A path as Hydra reads it, whatever characters are in it."""
    from rlgames.config.compose import quoted

    name, equals, value = word.partition("=")
    value = value.strip() if name == "state" else value
    if name not in PATH_KEYS or not equals or value[:1] in ("'", '"') or value == "null":
        return word
    return f"{name}={quoted(value)}"


def train(cfg: object) -> int:
    from omegaconf import DictConfig

    from rlgames.training.run import train as learn

    assert isinstance(cfg, DictConfig)
    return learning(cfg.games, lambda callback: learn(cfg, callback))


def resume(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.resume import finished, resume_command
    from rlgames.training.run import resume as learn

    if run is None:
        raise ConfigError("resume needs a run", "as in: rlgames resume outputs/salvo/…")
    if (run / "sweep.json").exists():
        from rlgames.commands.sweep import resume_sweep

        return resume_sweep(run, words)
    cfg, found, lock = resume_command(run, words)
    why = finished(run, cfg, found)
    if why:
        if lock is not None:
            lock.release()
        print(printable(f"{run} {why}; nothing was changed"))
        return 0
    return learning(cfg.games, lambda callback: learn(run, cfg, found, lock, callback))


def learning(games: int, learn: Callable[[Any], Any]) -> int:
    """Show a run of so many games while it learns, and what came of it."""
    from rlgames.cli import display
    from rlgames.core import distributed
    from rlgames.learners.learner import NonFiniteError

    try:
        if distributed.rank():
            learn(None)
            return 0
        with display.training_view(games) as callback:
            trained = learn(callback)
    except NonFiniteError as error:
        return report_error(to_user_error(error), False, 3)
    display.print_result(trained)
    return 0


def evaluate(run: Path | None, words: list[str]) -> int:
    from rlgames.cli import display
    from rlgames.commands.evaluate import evaluate_command

    return show(evaluate_command(run, words), display.print_evaluation, words)


def show(report: dict[str, Any], table: Callable[[dict[str, Any]], None], words: list[str]) -> int:
    """Print a report as a table, or as JSON where the words ask for that."""
    if wants_json(words):
        print(json_text(report))
    else:
        table(report)
    return 0


def play(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.play import play_command

    return play_command(run, words)


def watch(run: Path | None, words: list[str]) -> int:
    from rlgames.cli import display
    from rlgames.commands.watch import watch_command

    display.print_games(*watch_command(run, words))
    return 0


def show_position(run: Path | None, words: list[str]) -> int:
    from rlgames.cli import display
    from rlgames.commands.show import show_command

    report, board = show_command(run, words)
    return show(report, lambda report: display.print_position(report, board), words)


def export(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.export import export_command

    if run is None:
        raise ConfigError("export needs a run", "as in: rlgames export outputs/salvo/…")
    found = export_command(run, words)
    shape = ", ".join(["batch", *map(str, found.shape)])
    print(printable(f"{found.path}: inputs [{shape}] to {' and '.join(found.outputs)}"))
    print(
        f"over {found.positions} positions it differs from torch by {found.difference:.1e} at most"
    )
    return 0


def arena(who: list[str], words: list[str]) -> int:
    from rlgames.cli import display
    from rlgames.commands.arena import arena_command

    return show(arena_command(who, words), display.print_arena, words)


def report(where: list[str], words: list[str]) -> int:
    from rlgames.cli import report_tables
    from rlgames.commands.report import report_command

    found, cfg = report_command(where, words)
    if cfg.format == "json":
        print(json_text(found.as_dict()))
    else:
        report_tables.PRINTERS[cfg.format](found)
    if cfg.curves and cfg.format == "table":
        print(f"curves: {printable(cfg.curves)}")
    return 0


def solve(cfg: object) -> int:
    from omegaconf import DictConfig

    from rlgames.commands.solve import solve_command

    assert isinstance(cfg, DictConfig)
    found, goal = solve_command(cfg)
    if cfg.format == "json":
        print(json_text(found))
    elif found["optimal"] is None:
        print("not computed: the limit on time or memory was reached (seconds=, memory_gb=)")
    else:
        seat = "for the first seat (1: it wins, 0: a draw, -1: it loses)"
        what = {"turns": "turns", "score": "points", "outcome": seat}
        print(
            f"optimum {found['optimal']:.6f} {what[goal]}, from {found['states']:,} positions "
            f"in {found['seconds']:.1f} s"
        )
    return 0


def listing(command: str, words: list[str]) -> int:
    from rlgames.commands import listing as commands_listing

    told = {
        "games": commands_listing.games_command,
        "experiments": commands_listing.experiments_command,
    }
    return show(told[command](words), commands_listing.table, words)


def completion(words: list[str]) -> int:
    from rlgames.cli.completion import candidates, script

    if words[:1] == ["words"]:
        print(
            candidates(words[1:], COMMANDS, (*RUN_COMMANDS, *MULTI_RUN_COMMANDS), PATH_KEYS), end=""
        )
    else:
        print(script(words))
    return 0
