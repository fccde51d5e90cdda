"""The flags of a command line: those of Hydra, and --help."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.cli.words import is_path
from rlgames.config.command import SWEEP_FLAGS, Command
from rlgames.config.command_schemas import COMMANDS
from rlgames.config.folders import FOLDER_FLAGS
from rlgames.core.errors import ConfigError, nearest

HELP_FLAGS = ("-h", "--help")
RUN_FLAGS = ("-r", "--run")
SHORT_FLAGS = {"-c": "--cfg", "-p": "--package", "-i": "--info"}
CHOICES = {
    "--cfg": ("job", "hydra", "all"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
"""The values of Hydra's flags that show something in place of running the command."""

REFUSED_FLAGS = {
    "--experimental-rerun": "reads a pickle, which can run code; write config=RUN/config.yaml",
    "--shell-completion": 'is not supported; write eval "$(rlgames completion bash)"',
    "-sc": 'is not supported; write eval "$(rlgames completion bash)"',
}
"""Hydra's flags that are refused, each with the reason and what to write."""

FLAGS = (
    *(*HELP_FLAGS, *SWEEP_FLAGS, *RUN_FLAGS, *FOLDER_FLAGS, *SHORT_FLAGS, *SHORT_FLAGS.values()),
    *("--resolve", "--hydra-help", "--version"),
)


@dataclass
class Flags:
    """The flags of a command line. words: the others, with -m where it was typed.

    cfg, package and info: the values of these flags, None without them.
    """

    words: list[str]
    cfg: str | None = None
    package: str | None = None
    info: str | None = None
    resolve: bool = False
    hydra_help: bool = False
    help: bool = False
    version: bool = False

    @property
    def shows(self) -> bool:
        """Whether something is shown in place of running the command."""
        return self.hydra_help or self.cfg is not None or self.info is not None


def parse_flags(command: Command, words: list[str]) -> Flags:
    """Separate the flags from the other words; --config-dir and its like are loaded already.

    Raises ConfigError for a flag that the command does not have, and for flags that contradict.
    """
    flags, words_left, is_run = Flags([]), [*words], False
    while words_left:
        word = words_left.pop(0)
        flag, equals, value = word.partition("=")
        flag = SHORT_FLAGS.get(flag, flag)
        if word[:1] != "-" or is_path(word):
            flags.words.append(word)
        elif word in HELP_FLAGS:
            flags.help = True
        elif word in RUN_FLAGS:
            is_run = True
        elif word in SWEEP_FLAGS:
            _check_sweeps(command, word)
            flags.words.append(word)
        elif word in ("--resolve", "--hydra-help", "--version"):
            setattr(flags, word[2:].replace("-", "_"), True)
        elif flag in SHORT_FLAGS.values():
            is_next = bool(words_left) and (flag != "--info" or words_left[0] in CHOICES["--info"])
            value = value if equals else words_left.pop(0) if is_next else ""
            setattr(flags, flag[2:], _checked(flag, value))
        else:
            raise _unknown_flag(command, word)
    _check_combination(flags, is_run)
    return flags


def _checked(flag: str, value: str) -> str:
    """The value of a flag; raises ConfigError for one that it does not take."""
    choices = CHOICES.get(flag, ())
    value = value or ("all" if flag == "--info" else "")
    if not value:
        raise ConfigError(f"{flag} needs a value", f"write {flag} {'|'.join(choices) or 'PACKAGE'}")
    if choices and value not in choices:
        raise ConfigError(f"{flag} {value} is not a choice", nearest(value, [*choices]))
    return value


def _check_sweeps(command: Command, word: str) -> None:
    if command.sweep is None:
        able = ", ".join(each.name for each in COMMANDS.values() if each.sweep is not None)
        raise ConfigError(f"{command.name} cannot sweep", f"{word} works with: {able}")


def _unknown_flag(command: Command, word: str) -> ConfigError:
    flag = word.partition("=")[0]
    if flag in REFUSED_FLAGS:
        error, _, hint = REFUSED_FLAGS[flag].partition("; ")
        return ConfigError(f"{flag} {error}", hint)
    key = flag.lstrip("-")
    names = set() if command.config is None else command.config.key_names
    hint = f"write {key}=value" if key in names else nearest(word, [*FLAGS])
    return ConfigError(f"no flag is called {word!r}", hint)


def _check_combination(flags: Flags, is_run: bool) -> None:
    """Raises ConfigError, as Hydra does, for flags that contradict or say nothing."""
    is_sweep = any(word in SWEEP_FLAGS for word in flags.words)
    commands = {
        "--run": is_run,
        "-m": is_sweep,
        "--cfg": flags.cfg is not None,
        "--info": flags.info is not None,
        "--hydra-help": flags.hydra_help,
    }
    typed = [name for name, is_typed in commands.items() if is_typed]
    if len(typed) > 1:
        raise ConfigError(f"{' and '.join(typed)} contradict each other", "write one of them")
    for name, is_typed in (("--resolve", flags.resolve), ("--package", flags.package is not None)):
        if is_typed and flags.cfg is None:
            raise ConfigError(f"{name} needs --cfg", f"as in: --cfg job {name}")
    if flags.hydra_help and flags.words:
        raise ConfigError(f"--hydra-help explains Hydra, not {flags.words[0]}", "omit it")
