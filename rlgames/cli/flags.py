"""The flags of a command line: --help and --version, and the supported flags of Hydra."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlgames.cli.table import COMMANDS, SWEEP_FLAGS, Command
from rlgames.config.folders import FLAGS as FOLDER_FLAGS
from rlgames.config.folders import is_path
from rlgames.config.schema import names_of
from rlgames.core.errors import ConfigError, nearest

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
    "--shell-completion": "use rlgames completion bash",
    "-sc": "use rlgames completion bash",
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
        if word[:1] != "-" or is_path(word):
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
            if command.config is not None and key in names_of(command.config):
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
