"""What a disk may hold after power loss, from a recording of what a command did to its files.

POSIX promises little: the content of a file is on the disk once the file was synced, and the names
in a directory once the directory was. Until then each change may be there or not, independently of
the others, and a file may hold an older version, a part of the new one, or zeros in its place.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STATES_PER_EVENT = 48
"""More states of one moment are sampled."""

FOLDER = "folder"
"""Stands for a directory where files have a number."""


class Recorder:
    """Records what this process does to the files below a directory.

    folder: where the recording goes. A content is recorded when the next operation begins, so that
    writes by other libraries are seen.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        folder.mkdir()
        self.log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.names: dict[int, str] = {}
        """The name of each file in the recording, by its inode."""
        self.watched: dict[str, tuple[int, tuple[int, int]]] = {}
        """A descriptor, which keeps the inode from being used again, with size and time."""
        self.open = os.open

    def install(self) -> None:
        """Record from now on; called in the process to be recorded. What is there is synced."""
        folders = [self.root]
        for path in sorted(self.root.rglob("*")):
            if path.is_dir():
                folders.append(path)
                self._entry(path, op="bind", file=FOLDER)
            else:
                handle = os.open(path, os.O_RDONLY)
                self._write(op="sync", file=self._create(path, handle))
                os.close(handle)
        for path in folders:
            self._write(op="sync_folder", folder=self._relative(path))
        self._write(op="start")
        for name in ("open", "fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir"):
            setattr(os, name, self._recorded(name, getattr(os, name)))

    def mark(self, **values: Any) -> None:
        """Record that something is promised to be on the disk from now on."""
        self._look()
        self._write(op="mark", **values)

    def _recorded(self, name: str, function: Any) -> Any:
        def call(operand: Any, *words: Any, **options: Any) -> Any:
            self._look()
            path = self._place(operand)
            is_new = path is not None and not os.path.lexists(path)
            result = function(operand, *words, **options)
            if path is not None:
                self._note(name, path, is_new, result, words)
            return result

        return call

    def _note(self, name: str, path: Path, is_new: bool, result: Any, words: Any) -> None:
        """Record an operation on a path below the root, or on the root."""
        if name == "fsync":
            if path.is_dir():
                self._write(op="sync_folder", folder=self._relative(path))
            else:
                self._write(op="sync", file=self.names[path.stat().st_ino])
        elif name == "open":
            status = os.fstat(result)
            if stat.S_ISREG(status.st_mode):
                if is_new:
                    self._create(path, result)
                elif words[0] & os.O_ACCMODE != os.O_RDONLY:
                    self._watch(self.names[status.st_ino], result)
        elif name in ("replace", "rename"):
            target = Path(os.path.abspath(words[0]))
            assert path.parent == target.parent
            file = self.names[os.stat(target).st_ino]
            self._entry(target, op="rename", old=path.name, file=file)
        elif name == "mkdir":
            self._entry(path, op="bind", file=FOLDER)
        else:
            self._entry(path, op="unbind")

    def _place(self, operand: Any) -> Path | None:
        """The path of an operand, or of a descriptor, below the root or the root; None
        elsewhere."""
        is_handle = isinstance(operand, int)
        name = os.readlink(f"/proc/self/fd/{operand}") if is_handle else os.fsdecode(operand)
        path = Path(os.path.abspath(name))
        return path if self.root in (path, *path.parents) else None

    def _create(self, path: Path, handle: int) -> str:
        name = str(len(self.watched))
        self.names[os.fstat(handle).st_ino] = name
        self._entry(path, op="bind", file=name)
        self._watch(name, handle)
        self._look()
        return name

    def _watch(self, name: str, handle: int) -> None:
        if name not in self.watched:
            own = self.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
            self.watched[name] = own, (-1, -1)

    def _look(self) -> None:
        """Record each content that has changed."""
        for name, (handle, seen) in self.watched.items():
            status = os.fstat(handle)
            now = status.st_size, status.st_mtime_ns
            if now != seen:
                self.watched[name] = handle, now
                self._write(op="content", file=name, content=self._stored(_content(handle)))

    def _stored(self, content: bytes) -> str:
        digest = hashlib.sha1(content).hexdigest()
        if not (self.folder / digest).exists():
            with open(self.folder / digest, "wb") as file:
                file.write(content)
        return digest

    def _entry(self, path: Path, **values: Any) -> None:
        self._write(folder=self._relative(path.parent), name=path.name, **values)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _write(self, **values: Any) -> None:
        os.write(self.log, json.dumps(values).encode() + b"\n")


def _content(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)


@dataclass
class _File:
    versions: list[bytes] = field(default_factory=list)
    synced: int = -1
    """Which version is on the disk for certain."""

    def possible(self) -> list[bytes]:
        """What a read may return after power loss, the newest first."""
        before = certain = self.versions[self.synced] if self.synced >= 0 else b""
        contents = [certain]
        for new in self.versions[self.synced + 1 :]:
            is_rewritten = not (new.startswith(before) or before.startswith(new))
            num_kept = 0 if is_rewritten else _num_equal(certain, new)
            kept, more = new[:num_kept], len(new) - num_kept
            contents += [kept + bytes(more), new[: len(kept) + more // 2], kept, new]
            before = new
        return [*dict.fromkeys(reversed(contents))]


def _num_equal(one: bytes, two: bytes) -> int:
    """How many bytes both begin with."""
    pairs = zip(one, two, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))


@dataclass
class _Folder:
    certain: dict[str, str] = field(default_factory=dict)
    pending: list[dict[str, str]] = field(default_factory=list)
    """Changes of names since it was synced."""

    def with_changes(self, is_there: tuple[bool, ...]) -> dict[str, str]:
        names = dict(self.certain)
        for change, applied in zip(self.pending, is_there, strict=True):
            if applied:
                names.pop(change.get("old", change["name"]), None)
                if change["op"] != "unbind":
                    names[change["name"]] = change["file"]
        return names


State = dict[str, bytes | None]
"""The files of a disk by path, with their content; None for a directory."""


class Disk:
    """Follows a recording, and lists what the disk may hold if the power fails."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self.events = [*map(json.loads, (recording / "log").read_text().splitlines())]
        self.files: dict[str, _File] = {}
        self.folders = {".": _Folder()}
        self.promised: dict[str, Any] = {}
        """What the marks so far have promised."""

    def states(self, seed: int = 0) -> Iterator[State]:
        """Every state that differs from all earlier ones, in the order of the events; sampled
        where an event allows many. `promised` holds what was promised by then."""
        rng, seen = random.Random(seed), set()
        start = self.events.index({"op": "start"})
        for number, event in enumerate(self.events):
            self._apply(event)
            for state in self._possible(rng) if number >= start else ():
                digest = hashlib.sha1()
                for path, content in sorted(state.items()):
                    digest.update(f"{path} {None if content is None else len(content)} ".encode())
                    digest.update(content or b"")
                key = (digest.digest(), json.dumps(self.promised))
                if key not in seen:
                    seen.add(key)
                    yield state

    def _apply(self, event: dict[str, Any]) -> None:
        match event["op"]:
            case "mark":
                self.promised |= {key: value for key, value in event.items() if key != "op"}
            case "start":
                pass
            case "content":
                content = (self.recording / event["content"]).read_bytes()
                self.files.setdefault(event["file"], _File()).versions.append(content)
            case "sync":
                file = self.files[event["file"]]
                file.synced = len(file.versions) - 1
            case "sync_folder":
                folder = self._folder(event["folder"])
                folder.certain = folder.with_changes((True,) * len(folder.pending))
                folder.pending = []
            case _:
                self._folder(event["folder"]).pending.append(event)

    def _folder(self, path: str) -> _Folder:
        return self.folders.setdefault(path, _Folder())

    def _possible(self, rng: random.Random) -> Iterator[State]:
        axes: list[list[Any]] = [
            [*itertools.product((True, False), repeat=len(folder.pending))]
            if len(folder.pending) <= 4
            else _subsets(len(folder.pending), rng)
            for folder in self.folders.values()
        ]
        axes += [file.possible() for file in self.files.values()]
        total = 1
        for axis in axes:
            total *= len(axis)
        if total <= STATES_PER_EVENT:
            choices: Any = itertools.product(*axes)
        else:
            sampled = [_sample(axes, rng) for _ in range(STATES_PER_EVENT - 2)]
            choices = [[axis[0] for axis in axes], [axis[-1] for axis in axes], *sampled]
        for choice in choices:
            names = dict(zip(self.folders, choice, strict=False))
            contents = dict(zip(self.files, choice[len(self.folders) :], strict=True))
            state: State = {}
            self._fill(state, ".", names, contents)
            yield state

    def _fill(self, state: State, path: str, names: Any, contents: dict[str, bytes]) -> None:
        folder = self.folders.get(path)
        entries = folder.with_changes(names[path]) if folder else {}
        for name, file in entries.items():
            below = os.path.normpath(os.path.join(path, name))
            state[below] = None if file == FOLDER else contents.get(file, b"")
            if file == FOLDER:
                self._fill(state, below, names, contents)


def _sample(axes: list[list[Any]], rng: random.Random) -> list[Any]:
    """One choice per axis. The first, which is what was written last, may be more likely."""
    newest = rng.random()
    return [axis[0] if rng.random() < newest else rng.choice(axis) for axis in axes]


def _subsets(count: int, rng: random.Random) -> list[tuple[bool, ...]]:
    """Which of many changes are there: all, the first ones, all but one, none, and random ones."""
    prefixes = [tuple(each < end for each in range(count)) for end in range(count, -1, -1)]
    dropped = [tuple(each != one for each in range(count)) for one in range(count)]
    mixed = [tuple(rng.random() < 0.5 for _ in range(count)) for _ in range(8)]
    return [*dict.fromkeys([*prefixes[:-1], *dropped, *mixed, prefixes[-1]])]


def write_state(state: State, root: Path) -> None:
    """Make a directory that holds the files of a state."""
    root.mkdir()
    for path, content in state.items():  # a directory comes before what it holds
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
