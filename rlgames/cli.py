"""`rlgames COMMAND [RUN] [overrides]`: the first word chooses; nothing heavy is imported here."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlgames import config, ranks
from rlgames.command_schemas import GROUPS, known_keys
from rlgames.config import ConfigError
from rlgames.interrupts import Interrupted
from rlgames.schemas import SHARED

COMMANDS = {
    "train": ("learn to play", "rlgames train game=salvo board=4 shots=2"),
    "resume": (
        "go on with a run or a sweep, or make a run longer",
        "rlgames resume RUN games=500000",
    ),
    "eval": (
        "how well a run or a player plays",
        "rlgames eval RUN, rlgames eval player=random game=salvo",
    ),
    "play": (
        "play against a run, or alone with its hints",
        "rlgames play RUN seat=2, rlgames play game=2048",
    ),
    "arena": (
        "everybody against everybody: cross table and ratings",
        "rlgames arena RUN RUN+mcts random win_or_block",
    ),
    "solve": ("the exact optimum", "rlgames solve game=salvo board=4 ships=[4,2] shots=2"),
    "report": (
        "runs and sweeps beside each other",
        "rlgames report outputs/sweeps/… curves=curves.png",
    ),
    "export": ("a run's network as an ONNX file", "rlgames export RUN out=policy.onnx"),
}
BESIDE_A_RUN = ("resume", "eval", "play", "export")
"""Commands whose first word may be a run."""

PATHS = ("curves", "out", "record", "start", "demonstrations", "demonstrator")
"""Keys that hold a path, or are named by one, which may have any characters in it."""


TRACEBACK = "RLGAMES_TRACEBACK"
"""An environment variable; where it is set, errors that nobody foresaw show where they arose."""


def main() -> None:
    """The console script: runs a command and exits with its code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale may lack a character
    try:
        code = answer(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        config.silence()
        code = 0
    except OSError as error:  # there is no room for what we say
        config.silence()
        code = config.stop(ConfigError(str(error)), False, 3)
    sys.exit(code)


def answer(words: list[str]) -> int:
    """Run a command line and say what went wrong; the exit code."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    as_json = wants_json(words)
    try:
        return run(words[0], words[1:])
    except ConfigError as error:
        return config.stop(error, as_json)
    except Interrupted as stop:
        told = f"interrupted{stop.told and ', '}{stop.told}"
        return config.stop(ConfigError(told), as_json, stop.code)
    except KeyboardInterrupt:
        return config.stop(ConfigError("interrupted"), as_json, 130)
    except EOFError as error:  # a person was asked and is no longer there
        return config.stop(ConfigError(str(error)), as_json, 2)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return config.stop(explained(error), as_json, 3)


def explained(error: Exception) -> ConfigError:
    """What to say of an error that is nobody's input."""
    text = "; ".join(" ".join(each.split()) for each in [str(error), *_notes(error)])
    if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", text):
        return ConfigError("the memory is not enough", "smaller batch= or games= may help")
    if isinstance(error, OSError | ArithmeticError):
        return ConfigError(text)
    return ConfigError(f"{type(error).__name__}: {text}", f"{TRACEBACK}=1 shows where")


def wants_json(words: list[str]) -> bool:
    """Whether what is said on standard output is to be JSON."""
    formats = [word.partition("=")[2].strip("'\"") for word in words if word[:7] == "format="]
    return formats[-1:] == ["json"]


def run(command: str, words: list[str]) -> int:
    """Run one command; raises ConfigError for bad input."""
    if command not in COMMANDS:
        raise ConfigError(
            f"no command is called {command!r}", config.nearest(command, list(COMMANDS))
        )
    words = config.with_parts(words)
    if "-h" in words or "--help" in words:
        print(command_help(command))
        return 0
    if wants_json(words) and {"human", "player=human", "opponent=human"} & {*words}:
        raise ConfigError("a person is shown the game where the JSON goes", "leave format= out")
    if command in ("arena", "report"):
        who = [word for word in words if _is_path(word) or "=" not in word]
        words = [path_quoted(word) for word in words if word not in who]
        return arena(who, words) if command == "arena" else report(who, words)
    target = None
    if words and (_is_path(words[0]) or (command in BESIDE_A_RUN and "=" not in words[0])):
        target = Path(words[0])
        if command not in BESIDE_A_RUN:
            raise ConfigError(f"{command} takes no run, and {words[0]} is one")
        if not target.exists():
            raise ConfigError(f"there is no run at {words[0]}")
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
        return train(config.load("train", words))
    if command == "resume":
        return resume(target, words)
    if command == "eval":
        return evaluate(target, words)
    if command == "play":
        return play(target, words)
    if command == "export":
        return export(target, words)
    return solve(config.load("solve", words))


def _is_path(word: str) -> bool:
    try:
        return Path(word).exists()
    except OSError:  # too long for a path, say
        return False


def path_quoted(word: str) -> str:
    """A path as Hydra reads it, whatever characters are in it."""
    name, equals, value = word.partition("=")
    if name not in PATHS or not equals or value[:1] in ("'", '"') or value == "null":
        return word
    return f"{name}={config.quoted(value)}"


def train(cfg: object) -> int:
    from omegaconf import DictConfig

    from rlgames.training import train as learn

    assert isinstance(cfg, DictConfig)
    return learning(cfg.games, lambda progress: learn(cfg, progress))


def resume(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.resume import finished, resume_command
    from rlgames.training import resume as learn

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
        print(config.printable(f"{run} {why}; nothing was changed"))
        return 0
    return learning(cfg.games, lambda progress: learn(run, cfg, found, lock, progress))


def learning(games: int, learn: Callable[[Any], Any]) -> int:
    """Show a run of so many games while it learns, and what came of it."""
    from rlgames import display
    from rlgames.learners.learner import BadNumber

    try:
        if ranks.rank():
            learn(None)
            return 0
        with display.training(games) as progress:
            trained = learn(progress)
    except BadNumber as error:
        return config.stop(explained(error), False, 3)
    display.closing(trained)
    return 0


def _notes(error: BaseException) -> list[str]:
    """What was added to an error where it passed."""
    return list(getattr(error, "__notes__", []))


def evaluate(run: Path | None, words: list[str]) -> int:
    from rlgames import display
    from rlgames.commands.evaluate import evaluate_command

    return show(evaluate_command(run, words), display.evaluation, words)


def show(report: dict[str, Any], table: Callable[[dict[str, Any]], None], words: list[str]) -> int:
    """Print a report as a table, or as JSON where the words ask for that."""
    if wants_json(words):
        print(config.json_text(report))
    else:
        table(report)
    return 0


def play(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.play import play_command

    return play_command(run, words)


def export(run: Path | None, words: list[str]) -> int:
    from rlgames.commands.export import export_command

    if run is None:
        raise ConfigError("export needs a run", "as in: rlgames export outputs/salvo/…")
    found = export_command(run, words)
    shape = ", ".join(["batch", *map(str, found.shape)])
    print(config.printable(f"{found.path}: inputs [{shape}] to {' and '.join(found.outputs)}"))
    print(
        f"over {found.positions} positions it differs from torch by {found.difference:.1e} at most"
    )
    return 0


def arena(who: list[str], words: list[str]) -> int:
    from rlgames import display
    from rlgames.commands.arena import arena_command

    return show(arena_command(who, words), display.arena, words)


def report(where: list[str], words: list[str]) -> int:
    from rlgames import tables
    from rlgames.commands.report import report_command

    found, cfg = report_command(where, words)
    if cfg.format == "json":
        print(config.json_text(found.as_dict()))
    else:
        tables.PRINT[cfg.format](found)
    if cfg.curves and cfg.format == "table":
        print(f"curves: {config.printable(cfg.curves)}")
    return 0


def solve(cfg: object) -> int:
    from omegaconf import DictConfig

    from rlgames.commands.solve import solve_command

    assert isinstance(cfg, DictConfig)
    found, goal = solve_command(cfg)
    if cfg.format == "json":
        print(config.json_text(found))
    elif found["optimal"] is None:
        print("not computed: the limit on time or memory was reached (seconds=, memory_gb=)")
    else:
        what = {"turns": "turns", "score": "points", "outcome": "for the first seat (1: it wins)"}
        print(
            f"optimum {found['optimal']:.6f} {what[goal]}, from {found['states']:,} positions "
            f"in {found['seconds']:.1f} s"
        )
    return 0


def overview() -> str:
    lines = [
        "rlgames COMMAND [RUN] [key=value ...]: learn to play games from declarative configs",
        "",
    ]
    for name, (what, example) in COMMANDS.items():
        lines += [f"  {name:8}{what}", f"          {example}"]
    lines += ["", "rlgames COMMAND --help lists the groups, their options and every key."]
    return "\n".join(lines)


def command_help(command: str) -> str:
    """The groups with their options and the keys with their comments, read from the YAML files."""
    what, example = COMMANDS[command]
    lines = [f"rlgames {command}: {what}", f"  {example}", "", "groups"]
    # Training has those of a sweep, too, after -m.
    files = ["train", "sweep"] if command == "train" else [command]
    groups = [*GROUPS[command], *(["experiment", *GROUPS["sweep"]] if command == "train" else [])]
    for group in groups:
        folder = SHARED.get(group, group)
        if folder in groups and folder != group:
            lines.append(f"  {group}=  as {folder}=")
            continue
        lines.append(f"  {group}=")
        for option in config.options(folder):
            lines.append(f"    {option:22}{config.about(folder, option)}")
    lines += ["", "keys"]
    for path in (config.conf_dir() / f"{file}.yaml" for file in files):
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, comment = line.partition("#")
            if (
                ":" in key
                and not key.startswith((" ", "-"))
                and key.split(":")[0] not in ("defaults", "hydra")
            ):
                lines.append(f"  {key.strip().replace(': ', '='):24}{comment.strip()}")
    lines += ["", "--config-dir DIR adds the options in DIR/<group>/*.yaml"]
    if command == "train":
        lines += [
            "rlgames train -m key=a,b sweeps over the values; hydra/launcher= says how jobs are run"
        ]
    return "\n".join(lines)
