"""`rlgames engine`: commands on standard input, answers on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 16
"""The longest command that is read; a position of the largest board is shorter."""


def engine_command(run: Path | None, overrides: list[str]) -> int:
    """Answer commands until `quit` or the end of the input; the exit code."""
    from rlgames.commands.engine import build_engine

    engine = build_engine(run, overrides)
    for line in _read_lines(sys.stdin.buffer):
        if line is None:
            answer = engine.refuse(f"a command has at most {MAX_LINE_BYTES} bytes")
        else:
            answer = engine.answer(line)
        sys.stdout.write(answer)
        sys.stdout.flush()
        if engine.has_quit:
            break
    return 0


def _read_lines(stream: BinaryIO) -> Iterator[str | None]:
    """The lines of a stream; None instead of one that is too long."""
    while data := stream.readline(MAX_LINE_BYTES + 1):
        is_too_long = len(data) > MAX_LINE_BYTES
        while len(data) > MAX_LINE_BYTES and not data.endswith(b"\n"):
            data = stream.readline(MAX_LINE_BYTES + 1)
        yield None if is_too_long else data.decode("utf-8", "replace")
