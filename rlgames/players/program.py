"""Programs as players: a process reads positions and writes moves, in a line each or by GTP."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from typing import Any

import torch
from torch import Tensor

from rlgames.core import errors, signals
from rlgames.core.errors import ConfigError
from rlgames.core.text import counted, some
from rlgames.core.untrusted import sanitized
from rlgames.games.game import RESIGNS, Game, State
from rlgames.games.notation import legal_names, parse_action, render
from rlgames.players.player import Decision, Player
from rlgames.rng import Rng

MAX_LINE = 1 << 16
"""Characters of a line; what is longer counts as several lines."""

MAX_UNREAD = 1000
"""Lines that a program may be ahead; then it waits until they are read."""

MAX_REPORTED = 3
"""Forfeited games that are reported while games go on, and last lines of a program."""

QUIT_SECONDS = 1.0
"""How long a program may take to end when it is told to."""

COLORS = ("black", "white")
"""The seats in GTP."""

Move = tuple[int, str]
"""A seat and the name of its move."""


class Failure(Exception):
    """A program did not make a legal move; the message continues the program's name."""


class Process:
    """A running program, which gets lines and answers with lines within a time.

    line: by GTP, the moves of the game that it has been told; None if it knows no game.
    """

    def __init__(self, command: str) -> None:
        """Raises Failure if the program cannot be started."""
        self.line: list[Move] | None = None
        self._seconds = self._deadline = 0.0
        self._lines: Queue[str | None] = Queue(MAX_UNREAD)
        self._last: deque[str] = deque(maxlen=MAX_REPORTED)
        self._has_ended = False
        words: Any = command if sys.platform == "win32" else shlex.split(command)
        # With a separate group, the programs that it starts end with it.
        group: Any = {} if sys.platform == "win32" else {"process_group": 0}
        try:
            self._process = Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE, **group)
        except OSError as error:
            raise Failure(f"cannot be started: {error.strerror}") from None
        outputs = ((self._process.stdout, self._lines.put), (self._process.stderr, self.keep))
        self._readers = [Thread(target=self._read, args=each, daemon=True) for each in outputs]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, put: Callable[[str | None], object]) -> None:
        while not self._has_ended and (line := stream.readline(MAX_LINE)):
            put(line.decode(errors="replace").rstrip("\r\n"))
        put(None)

    def keep(self, line: str | None) -> None:
        """Remember a line that isn't an answer, for last_lines."""
        if line and line.strip():
            self._last.append(sanitized(line, 100))

    def start_clock(self, seconds: float) -> None:
        """From now on, its answers take this time at most."""
        self._seconds, self._deadline = seconds, time.monotonic() + seconds

    def write(self, line: str) -> None:
        """Send a line. That a program has ended is found when its answer is read."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def has_unread_lines(self) -> bool:
        return not self._lines.empty()

    def read(self) -> str:
        """The next line. Raises Failure if there is none within the time."""
        try:
            line = self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except Empty:
            raise Failure(f"did not answer within move_seconds={self._seconds:g}") from None
        if line is not None:
            return line
        try:
            code = self._process.wait(QUIT_SECONDS)
        except TimeoutExpired:
            raise Failure("closed its output") from None
        self._readers[1].join(QUIT_SECONDS)
        raise Failure(f"ended with code {code}" if code >= 0 else f"ended by signal {-code}")

    @property
    def last_lines(self) -> str:
        """The last lines that it wrote, except answers."""
        return "; its last lines: " + " | ".join(self._last) if self._last else ""

    def end(self, patience: float = 0.0) -> None:
        """End the program, by force unless it ends by itself within this time."""
        if patience and self._process.stdin is not None:
            if self.line is not None:
                self.write("quit")
            with contextlib.suppress(OSError, TimeoutExpired):
                self._process.stdin.close()
                self._process.wait(patience)
        self._has_ended = True
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                if sys.platform == "win32":
                    self._process.kill()
                else:
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        with contextlib.suppress(Empty):  # the thread that reads may wait for room
            while True:
                self._lines.get_nowait()


def _check_command(command: str) -> None:
    """Raises ValueError for a command that starts no program."""
    try:
        name = shlex.split(command, posix=os.name != "nt")[0].strip('"')
    except ValueError as error:
        raise ValueError(f"command={command}: {str(error).lower()}") from None
    if shutil.which(name) is None:
        reason = "is not executable" if os.path.isfile(name) else "is not a program"
        raise ValueError(f"command={command}: {name} {reason}")


@dataclass(frozen=True)
class Question:
    """A position to move in. names: of the legal moves. line: the moves that lead to the position;
    None if they are not known."""

    state: State
    names: dict[int, str]
    line: list[Move] | None

    @property
    def seat(self) -> int:
        return int(self.state.current_seat[0])


class Program(Player):
    """A program that the user names. It gets public positions only, and is not asked where there is
    only one legal move.

    rules: of the game, plain, for the program. setup: what a GTP engine is told before each game.
    processes: how many programs think at the same time, each about another game. move_seconds: for
    a move. on_error: what happens after a move that is late, illegal or none: "raise" ends the
    command; with "forfeit" act gives up the game, and the next question goes to a new process.
    """

    follows_games = True

    def __init__(
        self,
        game: Game[Any],
        command: str,
        protocol: str,
        setup: list[str],
        processes: int,
        move_seconds: float,
        on_error: str,
        rules: dict[str, Any] | None = None,
    ) -> None:
        spec, self.game, self._is_gtp = game.spec, game.on_cpu(), protocol == "gtp"
        _check_command(command)
        if self._is_gtp and (spec.seats == 1 or spec.hidden or spec.num_chance_inputs):
            raise ValueError("protocol=gtp needs two seats, no chance and nothing hidden")
        if setup and not self._is_gtp:
            raise ValueError("setup= is for protocol=gtp")
        if on_error == "forfeit" and spec.goal != "outcome":
            raise ValueError(f"on_error=forfeit needs an opponent, and {spec.name} has none")
        self._command, self._setup, self._seconds = command, setup, move_seconds
        self.can_resign = on_error == "forfeit"
        self._rules = {"name": spec.name} if rules is None else rules
        # After chance, moves do not tell the position, and there may be very many of them.
        self.follows_games = not spec.num_chance_inputs
        self._earlier: dict[bytes, tuple[bytes, Move]] = {}
        self._processes: list[Process | None] = [None] * processes
        self._num_forfeits = 0
        weakref.finalize(self, _end_processes, self._processes)
        signals.BEFORE_FORCED_EXIT.append(partial(_end_processes, self._processes, by_force=True))

    # The moves that lead to a position

    def follow(self, before: State, action: Tensor, after: State) -> None:
        """Remember the move that reached each position."""
        before, after, actions = before.to("cpu"), after.to("cpu"), action.tolist()
        keys = zip(_keys(before), _keys(after), strict=True)
        for row, (old, new) in enumerate(keys):
            if old != new and actions[row] != RESIGNS:
                name = self.game.action_to_string(before, row, actions[row])
                self._earlier[new] = old, (int(before.current_seat[row]), name)

    def _line(self, state: State, key: bytes) -> list[Move] | None:
        """The moves that lead to a position, None if they are not known. In another game than the
        present one they may have been made in another order."""
        line: list[Move] = []
        while key in self._earlier:
            key, move = self._earlier[key]
            line.append(move)
        is_known = self.follows_games and len(line) >= int(state.turn[0])
        return line[::-1] if is_known else None

    # Moves

    def choose(self, state: State, rng: Rng) -> Tensor:
        """Raises ConfigError if the program does not make a legal move."""
        return self._choose(state, may_resign=False)

    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        return Decision(self._choose(state, self.can_resign))

    def _choose(self, state: State, may_resign: bool) -> Tensor:
        action, cpu_state = torch.zeros(len(state), dtype=torch.int64), state.to("cpu")
        questions: dict[int, Question] = {}
        keys = _keys(cpu_state)
        for row in (~cpu_state.done).nonzero()[:, 0].tolist():
            one = cpu_state[row : row + 1]
            names = legal_names(self.game, one, 0)
            action[row] = next(iter(names))
            if len(names) > 1:
                questions[row] = Question(one, names, self._line(one, keys[row]))
                if self._is_gtp and questions[row].line is None:
                    text = "protocol=gtp needs the moves that lead to a position, from the start"
                    raise ConfigError(text, "use protocol=lines")
        if questions:
            answers = self._answers([*questions.values()], may_resign)
            action[[*questions]] = torch.tensor(answers)
        return action.to(state.done.device)

    def _answers(self, questions: Sequence[Question], may_resign: bool) -> list[int]:
        """The actions; each process answers one question at a time."""
        count, free = min(len(self._processes), len(questions)), Queue[int]()
        for number in range(count):
            free.put(number)

        def answer(question: Question) -> int | Failure:
            number = free.get()
            try:
                return self._answer(question, number)
            finally:
                free.put(number)

        with ThreadPoolExecutor(count) if count > 1 else contextlib.nullcontext() as pool:
            try:
                answers = map(answer, questions) if pool is None else pool.map(answer, questions)
                return [self._settled(each, may_resign) for each in answers]
            except BaseException:  # the threads of the pool wait for their processes
                if pool is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
                _end_processes(self._processes, by_force=True)
                raise

    def _answer(self, question: Question, number: int) -> int | Failure:
        """The action of a process, or why there is none; the process is then ended."""
        process = None
        try:
            process = self._processes[number] = self._processes[number] or Process(self._command)
            process.start_clock(self._seconds)
            ask = self._ask_by_gtp if self._is_gtp else self._ask_by_line
            text = ask(process, question)
            try:
                return parse_action(self.game, question.state, 0, text, exact=True)
            except ValueError:
                legal = some([*question.names.values()])
                shown = sanitized(text, 40) or "nothing"
                raise Failure(f"answered {shown!r}; legal moves: {legal}") from None
        except Failure as failure:
            lines = ""
            if process is not None:
                process.end()
                self._processes[number], lines = None, process.last_lines
            return Failure(f"{failure}{lines}")

    def _settled(self, answer: int | Failure, may_resign: bool) -> int:
        """The action of an answer, or to resign. Raises ConfigError if it may not resign."""
        if not isinstance(answer, Failure):
            return answer
        text = f"{self._command}: the program {answer}"
        if not may_resign:
            raise ConfigError(text)
        self._num_forfeits += 1
        if self._num_forfeits <= MAX_REPORTED:
            errors.report_error(ConfigError(text, "it forfeits the game"))
        return RESIGNS

    def statistics(self) -> dict[str, float]:
        return {"forfeits": self._num_forfeits} if self._num_forfeits else {}

    def reset_statistics(self) -> None:
        self._num_forfeits = 0

    # Protocols

    def _ask_by_line(self, process: Process, question: Question) -> str:
        """A JSON object in a line; the answer is the name of a move in a line."""
        if process.has_unread_lines():
            raise Failure(f"wrote a line too many: {sanitized(process.read(), 40)!r}")
        line = question.line
        asked = {
            "game": self._rules,
            "position": render(self.game, question.state, 0),
            "moves": None if line is None else [name for _, name in line],
            "legal": [*question.names.values()],
            "seat": question.seat + 1,
        }
        process.write(json.dumps(asked))
        return process.read()

    def _ask_by_gtp(self, process: Process, question: Question) -> str:
        """The Go Text Protocol: the engine is told the moves that it does not know yet."""
        line, told = question.line, process.line
        assert line is not None
        if told is None or line[: len(told)] != told:
            process.line = told = []
            _, rows, columns = self.game.spec.observation
            size = [f"boardsize {rows}"] * (rows == columns)
            for text in (*size, "clear_board", *self._setup):
                _command(process, text)
        for seat, name in line[len(told) :]:
            # Some engines know no move for passing: they pass by themselves.
            is_pass = name.lower() == "pass"
            _command(process, f"play {COLORS[seat]} {name}", may_fail=is_pass)
        answer = _command(process, f"genmove {COLORS[question.seat]}")
        names = {self.game.plain_name(name): name for name in question.names.values()}
        name = names.get(self.game.plain_name(answer), answer)
        process.line = [*line, (question.seat, name)]
        return answer


def _command(process: Process, text: str, may_fail: bool = False) -> str:
    """What an engine answers to a command of GTP. Raises Failure if it refuses the command."""
    process.write(text)
    answer = process.read()
    num_read = 1
    while answer[:1] not in ("=", "?"):
        process.keep(answer)
        answer, num_read = process.read(), num_read + 1
        if num_read > MAX_UNREAD:
            raise Failure(f"wrote {counted(MAX_UNREAD, 'line')} and no answer to {text!r}")
    while process.read().strip():  # an empty line ends the answer
        pass
    if answer[0] == "?" and not may_fail:
        raise Failure(f"refused {text!r}: {sanitized(answer[1:].strip(), 100)}")
    return answer[1:].strip()


def _keys(state: State) -> list[bytes]:
    """What tells positions apart; of positions on the CPU."""
    return [row.tobytes() for row in state.content().numpy()]


def _end_processes(processes: list[Process | None], by_force: bool = False) -> None:
    """End the processes of a player, which may start again."""
    for number, process in enumerate(processes):
        if process is not None:
            process.end(0.0 if by_force else QUIT_SECONDS)
            processes[number] = None
