"""Completion of command lines in bash and zsh: the scripts, and the words that they ask for.

Nothing heavy is imported, but for what modules named by plugins= on the line import themselves.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from rlgames.config.catalogue import (
    Key,
    chosen_options,
    group_keys,
    groups_of,
    keys_of,
    keys_of_command,
    options,
)
from rlgames.config.command_schemas import COMMANDS, LAUNCHERS
from rlgames.config.plugins import load_plugins
from rlgames.config.registry import SHARED_GROUPS, TRAINING_ONLY_PLAYERS
from rlgames.core.errors import ConfigError, nearest

SCRIPTS = {
    "bash": """\
_rlgames() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <("$1" completion words bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -o nospace -F _rlgames rlgames""",
    "zsh": """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_rlgames() {
    local word line="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX"
    local -a ended open
    "${(Q)words[1]}" completion words zsh "$line" 2>/dev/null |
    while IFS= read -r word; do
        if [[ $word == *' ' ]]; then ended+=("${word% }"); else open+=("$word"); fi
    done
    compadd -Q -a -- ended
    compadd -Q -S '' -a -- open
}
compdef _rlgames rlgames""",
}
"""What each shell evaluates. A word that ends with a blank is whole; any other may go on."""

RECENT = 8
"""So many of the latest runs are offered where nothing is typed yet."""


def script(words: list[str]) -> str:
    """What the shell that the words name evaluates; raises ConfigError for any other."""
    if not words or "--help" in words or "-h" in words:
        return "\n".join(
            ["rlgames completion SHELL: complete commands, runs, options, keys and their values"]
            + [f'  eval "$(rlgames completion {shell})"  in ~/.{shell}rc' for shell in SCRIPTS]
        )
    if words[0] not in SCRIPTS or words[1:]:
        told = " ".join(words)
        raise ConfigError(f"no completion for {told!r}", nearest(told, list(SCRIPTS)))
    return SCRIPTS[words[0]]


def candidates(
    asked: list[str], commands: Collection[str], of_runs: Collection[str], paths: Collection[str]
) -> str:
    """What may stand where a line ends, a line each, as the shell puts it there.

    asked: the shell, the line up to the cursor, and for bash the characters that break words.
    of_runs: commands that take runs. paths: keys that hold paths.
    """
    shell, line, breaks = [*asked, "", ""][:3]
    words, begun, head, quoted = split(line, breaks if shell == "bash" else "")
    found = dict.fromkeys(
        word
        for word in _words(words[1:], begun, commands, of_runs, paths)
        if word.startswith(begun)
    )
    rest = [word[head:] for word in found]
    if not quoted:
        rest = [_escaped(word, shell) for word in rest]
    elif shell == "bash":  # readline ends the quotes itself, behind all
        rest = [word.removesuffix(" ") for word in rest]
    return "".join(f"{word}\n" for word in rest)


def split(line: str, breaks: str) -> tuple[list[str], str, int, bool]:
    """A line as a shell reads it, where it may end within a word.

    Returns its whole words, the one begun, how much of that the shell has behind it, as breaks or
    a quote stand before the rest, and whether it ends within quotes.
    """
    words: list[str] = []
    begun, head, quote, inside, escaped = "", 0, "", False, False
    for mark in line:
        if escaped:
            begun, escaped = begun + mark, False
        elif mark == "\\" and quote != "'":
            inside = escaped = True
        elif quote and mark == quote:
            quote = ""
        elif not quote and mark in "'\"":
            inside, quote, head = True, mark, len(begun)
        elif not quote and mark.isspace():
            words += [begun] if inside else []
            begun, head, inside = "", 0, False
        else:
            begun, inside = begun + mark, True
            head = len(begun) if mark in breaks and not quote else head
    return words, begun, head, bool(quote)


def _escaped(word: str, shell: str) -> str:
    """As it is typed, its last blank aside; zsh minds brackets where they match nothing."""
    end = " " * word.endswith(" ")
    special = r"([\s'\"\\$&;|<>*?!#`(){}" + (r"\[\]" if shell == "zsh" else "") + "])"
    return re.sub(special, r"\\\1", word.removesuffix(" ")) + end


def _words(
    words: list[str],
    begun: str,
    commands: Collection[str],
    of_runs: Collection[str],
    paths: Collection[str],
) -> Iterator[str]:
    """All that may stand behind words, where one is begun."""
    if words[:1] == ["help"]:
        words = words[1:]
    if not words:
        yield from (f"{command} " for command in [*commands, "help", "--help", "--version"])
        return
    command, typed = words[0], words[1:]
    if command not in COMMANDS:
        yield from (f"{shell} " for shell in SCRIPTS if command == "completion" and not typed)
        return
    if typed[-1:] == ["--config-dir"]:
        yield from _files(begun)
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(ConfigError):
        typed = load_plugins(typed)
    name, equals, value = begun.partition("=")
    if equals:
        yield from (f"{name}={word}" for word in _values(command, typed, name, value, paths))
        return
    if command in of_runs:
        yield from _runs(begun)
        if command == "arena":
            absent = ("run", "human", *TRAINING_ONLY_PLAYERS)
            yield from (f"{player} " for player in options("player") if player not in absent)
    known = {key.name for key in _keys(command, typed)} - {word.partition("=")[0] for word in typed}
    # The keys of options only where one is begun: they are many.
    yield from (f"{name}=" for name in sorted(known) if begun or "." not in name)
    yield from ("--help ", "--config-dir ", *(["-m "] if command == "train" else []))


def _keys(command: str, words: list[str]) -> Iterator[Key]:
    """What can be typed as key=value behind a command and the words before."""
    yield from group_keys(command)
    yield from keys_of_command(command)
    for group, option in chosen_options(command, words).items():
        yield from keys_of(group, option)
    if command == "train" and {"-m", "--multirun"} & {*words}:
        yield from keys_of_command("sweep")
        yield Key("hydra/launcher", "basic", "", tuple(LAUNCHERS), "how jobs are run")


def _values(
    command: str, words: list[str], name: str, value: str, paths: Collection[str]
) -> Iterator[str]:
    """What a key takes, where a value is begun."""
    key = next((key for key in _keys(command, words) if key.name == name), None)
    if key is None:
        return
    if name in paths:
        yield from _files(value)
    if name == "plugins" or key.kind.startswith("a list of"):
        modules = [path.stem for path in Path().glob("*.py")]
        before = re.match(r"\[(?:[^\]]*,)?", value)
        head = before[0] if before else "["
        known = modules if name == "plugins" else key.choices
        yield from (f"{head}{one}" for one in known if one not in re.split(r"[\[,]", head))
        return
    several = re.match(r"(?:.*,)?", value) if {"-m", "--multirun"} & {*words} else None
    head = several[0] if several else ""
    seated = name in groups_of(command) and SHARED_GROUPS.get(name, name) == "player"
    if seated:
        yield from _runs(value)
    yield from (f"{head}{choice} " for choice in key.choices if not (seated and choice == "run"))


def _runs(begun: str) -> Iterator[str]:
    """Runs, checkpoints and the directories on the way to them; the latest where none is begun."""
    if not begun:
        found = [path.parent for path in Path().glob("outputs/*/*/run.json")]
        found += [path.parent for path in Path().glob("outputs/sweeps/*/sweep.json")]
        latest = sorted(found, key=lambda path: path.name, reverse=True)
        yield from (f"{path} " for path in latest[:RECENT])
    for path in _files(begun):
        if path.endswith("/") or path.endswith(".safetensors ") or _is_run(Path(path[:-1])):
            yield path


def _files(begun: str) -> Iterator[str]:
    """Files, and directories with a stroke behind them, unless they are runs."""
    folder, stroke, name = begun.rpartition("/")
    try:
        entries = sorted(
            os.scandir(os.path.expanduser(folder + stroke) or "."), key=lambda e: e.name
        )
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
            open_end = entry.is_dir() and not _is_run(Path(entry.path))
            yield f"{folder}{stroke}{entry.name}" + ("/" if open_end else " ")


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file() or (path / "sweep.json").is_file()
