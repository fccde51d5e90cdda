"""Completion of command lines in bash and zsh: the scripts, and the words that they ask for.

Nothing heavy is imported, except what modules named by plugins= import themselves.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from rlgames.cli.help import Page
from rlgames.cli.table import COMMANDS, SWEEP_FLAGS
from rlgames.config.files import Files
from rlgames.config.folders import split_folders
from rlgames.config.keys import Key, option_names
from rlgames.config.plugins import import_plugins
from rlgames.config.registry import LAUNCHERS
from rlgames.config.schema import Group, key_fields
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
"""What each shell evaluates. A candidate that ends with a blank is complete."""

NAMED = {"games": "game", "study": "study"}
"""The config groups of which commands take names."""

MAX_RECENT_RUNS = 8
"""Runs that are offered before anything is typed, the latest first."""


def completion_command(words: list[str]) -> int:
    """Print what a shell evaluates or, for its function, the candidates; the exit code."""
    if words[:1] == ["words"]:
        print(candidates(words[1:]), end="")
    else:
        print(script(words))
    return 0


def script(words: list[str]) -> str:
    """What the shell that the words name evaluates; raises ConfigError for any other."""
    if not words or "--help" in words or "-h" in words:
        return "\n".join(
            ["rlgames completion SHELL: completion of commands, runs, options, keys and values"]
            + [f'  eval "$(rlgames completion {shell})"  in ~/.{shell}rc' for shell in SCRIPTS]
        )
    if words[0] not in SCRIPTS or words[1:]:
        shell = " ".join(words)
        raise ConfigError(f"no completion for {shell!r}", nearest(shell, list(SCRIPTS)))
    return SCRIPTS[words[0]]


def candidates(request: list[str]) -> str:
    """The words that may stand where a line ends, a line each, as the shell inserts them.

    request: the shell, the line up to the cursor, and for bash the characters that break words.
    """
    shell, line, breaks = [*request, "", ""][:3]
    words, prefix, head, is_quoted = split(line, breaks if shell == "bash" else "")
    matches = dict.fromkeys(word for word in _words(words[1:], prefix) if word.startswith(prefix))
    rest = [word[head:] for word in matches]
    if not is_quoted:
        rest = [_escaped(word, shell) for word in rest]
    elif shell == "bash":  # readline closes the quotes itself, at the end of the word
        rest = [word.removesuffix(" ") for word in rest]
    return "".join(f"{word}\n" for word in rest)


def split(line: str, breaks: str) -> tuple[list[str], str, int, bool]:
    """A line as a shell splits it, where it may end within a word.

    Returns the complete words, the incomplete last one, how many of its characters the shell does
    not replace, because breaks or a quote follow them, and whether the line ends within quotes.
    """
    words: list[str] = []
    prefix, head, quote, inside, escaped = "", 0, "", False, False
    for character in line:
        if escaped:
            prefix, escaped = prefix + character, False
        elif character == "\\" and quote != "'":
            inside = escaped = True
        elif quote and character == quote:
            quote = ""
        elif not quote and character in "'\"":
            inside, quote, head = True, character, len(prefix)
        elif not quote and character.isspace():
            words += [prefix] if inside else []
            prefix, head, inside = "", 0, False
        else:
            prefix, inside = prefix + character, True
            head = len(prefix) if character in breaks and not quote else head
    return words, prefix, head, bool(quote)


def _escaped(word: str, shell: str) -> str:
    """A word as it is typed, except for its last blank; zsh also needs brackets escaped."""
    end = " " * word.endswith(" ")
    special = r"([\s'\"\\$&;|<>*?!#`(){}" + (r"\[\]" if shell == "zsh" else "") + "])"
    return re.sub(special, r"\\\1", word.removesuffix(" ")) + end


def _words(words: list[str], prefix: str) -> Iterator[str]:
    """Every candidate after some words; prefix is the incomplete word."""
    if words[:1] == ["help"]:
        words = words[1:]
    if not words:
        yield from (f"{command} " for command in [*COMMANDS, "help", "--help", "--version"])
        return
    command, typed = COMMANDS.get(words[0]), words[1:]
    if command is None or command.config is None:
        yield from (f"{shell} " for shell in SCRIPTS if command is not None and not typed)
        return
    if typed[-1:] == ["--config-dir"]:
        yield from _files(prefix)
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(ConfigError):
        import_plugins(typed)
    folders: tuple[Path, ...] = ()
    with contextlib.suppress(ConfigError):
        folders, _ = split_folders(typed)
    page = Page(command, Files(folders))
    name, equals, value = prefix.partition("=")
    if equals:
        yield from (f"{name}={word}" for word in _values(page, typed, name, value))
        return
    if command.runs == "names":
        group = NAMED.get(command.name)
        yield from (f"{name} " for name in (page.files.names(group) if group else ()))
        yield from _files(prefix) if group == "study" else ()
    elif command.runs != "none":
        yield from _runs(prefix)
    if command.takes_players:
        absent = ("run", "human")
        players = option_names(Group("player", None, ""), page.files)
        yield from (f"{player} " for player in players if player not in absent)
    names = {*_keys(page, typed)} - {word.partition("=")[0] for word in typed}
    # Keys of options are many: they are offered once one is begun.
    yield from (f"{name}=" for name in sorted(names) if prefix or "." not in name)
    yield from ("--help ", "--config-dir ", *([] if command.sweep is None else ["-m "]))


def _keys(page: Page, words: list[str]) -> dict[str, Key]:
    """What can be typed as key=value after a command and the words before."""
    keys = page.known(words)
    if {*SWEEP_FLAGS} & {*words}:
        launchers = Key("hydra/launcher", "basic", "", tuple(LAUNCHERS), "launcher of the jobs")
        return keys | {launchers.name: launchers}
    return {
        name: key for name, key in keys.items() if name.partition(".")[0] not in page.sweep_names
    }


def _values(page: Page, words: list[str], name: str, value: str) -> Iterator[str]:
    """The values of a key, where one is begun."""
    key, group = _keys(page, words).get(name), page.groups.get(name)
    if key is None:
        return
    schemas = [each for each in (page.schema, page.command.launch) if each is not None]
    fields = [key_fields(each)[name] for each in schemas if name in key_fields(each)]
    if any(item.metadata["is_text"] for item in fields):
        yield from _files(value)
    is_list = group is not None and group.is_list and value.startswith("[")
    if name == "plugins" or key.kind.startswith("a list of") or is_list:
        items = [path.stem for path in Path().glob("*.py")] if name == "plugins" else key.choices
        match = re.match(r"\[(?:[^\]]*,)?", value)
        head = match[0] if match else "["
        yield from (f"{head}{item}" for item in items if item not in re.split(r"[\[,]", head))
        return
    match = re.match(r"(?:.*,)?", value) if {*SWEEP_FLAGS} & {*words} else None
    head = match[0] if match else ""
    is_player = group is not None and group.folder == "player"
    if is_player:
        yield from _runs(value)
    yield from (f"{head}{choice} " for choice in key.choices if not (is_player and choice == "run"))


def _runs(prefix: str) -> Iterator[str]:
    """Runs, checkpoints and the directories that lead to them; the latest without a prefix."""
    if not prefix:
        runs = [path.parent for path in Path().glob("outputs/*/*/run.json")]
        runs += [path.parent for path in Path().glob("outputs/sweeps/*/sweep.json")]
        latest = sorted(runs, key=lambda path: path.name, reverse=True)
        yield from (f"{path} " for path in latest[:MAX_RECENT_RUNS])
    for path in _files(prefix):
        if path.endswith("/") or path.endswith(".safetensors ") or _is_run(Path(path[:-1])):
            yield path


def _files(prefix: str) -> Iterator[str]:
    """Files, and directories with a slash after them, unless they are runs."""
    folder, slash, name = prefix.rpartition("/")
    try:
        entries = sorted(
            os.scandir(os.path.expanduser(folder + slash) or "."), key=lambda e: e.name
        )
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
            is_folder = entry.is_dir() and not _is_run(Path(entry.path))
            yield f"{folder}{slash}{entry.name}" + ("/" if is_folder else " ")


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file() or (path / "sweep.json").is_file()
