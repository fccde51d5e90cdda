"""`rlgames engine`: the Go Text Protocol, version 2, for the games of rlgames.

Each command is a line, `[id] name arguments`; each answer is `=[id] result` or `?[id] message` and
an empty line. Source: the draft specification of GTP 2 by Gunnar Farnebäck, October 2002,
http://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/. Names that begin with "rlgames-" are
private extensions, as the specification recommends. Cells are vertices of the protocol, as in its
section 2.11, on every board; coordinates=play names them as `rlgames play` does.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import torch

from rlgames.commands.run_config import config_for_run, game_and_player
from rlgames.config.commands import EngineConfig
from rlgames.core.errors import ConfigError, to_user_error, value_errors
from rlgames.core.rng import make_generator
from rlgames.core.untrusted import sanitized
from rlgames.factory.agents import load_shipped_agent, with_search
from rlgames.factory.components import build_device
from rlgames.games.capabilities import HiddenInformation, find
from rlgames.games.game import Game, State
from rlgames.games.notation import legal_names, parse, parse_action, render
from rlgames.players.player import Player
from rlgames.rollouts.interactive import UndoableGame
from rlgames.runs.names import shipped_agent
from rlgames.solvers.optimum import on_cpu
from rlgames.version import __version__

MAX_LINE_BYTES = 1 << 16
"""The longest command that is read; a position of the largest board is shorter."""

COLORS = ("black", "white")
"""The colors of the seats: black moves first."""

SEAT_OF_COLOR = {name: seat for seat, color in enumerate(COLORS) for name in (color, color[0])}


class CommandError(Exception):
    """A command that cannot be executed, with the message of its answer."""


def engine_command(run: Path | None, overrides: list[str]) -> int:
    """Answer commands until `quit` or the end of the input; the exit code."""
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


def build_engine(run: Path | None, overrides: list[str]) -> Engine:
    """The engine of a run or a player. Raises ConfigError."""
    cfg = config_for_run(EngineConfig, run, overrides)
    if cfg.player is not None and cfg.player.name == "human":
        raise ConfigError("an engine reads commands, not the moves of a person", "use rlgames play")
    device = build_device(cfg.device, cfg.threads)
    game, player = game_and_player(cfg, device, run)
    if game.spec.seats > 1 and game.spec.hidden:
        raise ConfigError(
            f"in {game.spec.name} each seat hides something, and an engine shows what it plays",
            "use rlgames play or rlgames arena",
        )
    if player is None and (agent := load_shipped_agent(cfg.game, device)) is not None:
        player = with_search(agent, game, cfg.search, shipped_agent(game.spec.name))
    if player is None:
        raise ConfigError(
            "engine needs a run or a player",
            f"as in: rlgames engine player=random game={cfg.game.name}",
        )
    seed = secrets.randbits(63) if cfg.seed is None else cfg.seed
    rng = make_generator(seed, "play", game.device)
    return Engine(game, player, rng, has_vertices=cfg.coordinates == "gtp")


class Engine:
    """A game and a player that chooses moves in it.

    has_vertices: name cells as the protocol does, not as `rlgames play`. has_quit: whether `quit`
    was answered. Raises ConfigError for a board that the protocol cannot name.
    """

    def __init__(
        self, game: Game[Any], player: Player, rng: torch.Generator, has_vertices: bool = True
    ) -> None:
        if has_vertices:
            with value_errors(hint="use coordinates=play"):
                game.board_format = game.board_format.with_vertices()
        self.game, self.player, self.rng = game, player, rng
        self.has_quit = False
        self.queries: dict[str, Callable[[], str]] = {
            "protocol_version": lambda: "2",
            "name": lambda: "rlgames",
            "version": lambda: __version__,
            "list_commands": lambda: "\n".join([*self.queries, *self.commands]),
            "quit": self._quit,
            "clear_board": self._clear_board,
            "undo": self._undo,
            "showboard": self._showboard,
            "final_score": self._final_score,
            "rlgames-legal_moves": self._legal_moves,
        }
        """The commands without arguments."""
        self.commands: dict[str, Callable[[list[str]], str]] = {
            "known_command": self._known_command,
            "boardsize": self._boardsize,
            "komi": self._komi,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": lambda words: self._choose(words, "reg_genmove")[1],
            "rlgames-position": self._position,
        }
        """Those with arguments."""
        self._clear_board()

    def answer(self, line: str) -> str:
        """The answer to a line; empty for an empty line and for a comment. Raises nothing but
        KeyboardInterrupt: an error is an answer."""
        text = "".join(char for char in line.replace("\t", " ") if char >= " " and char != "\x7f")
        words = text.partition("#")[0].split()
        if not words:
            return ""
        number = words.pop(0) if re.fullmatch("[0-9]{1,18}", words[0]) else ""
        try:
            result = self._execute(words)
        except CommandError as error:
            return self.refuse(str(error), number)
        except Exception as error:  # of a player: the game continues
            return self.refuse(to_user_error(error).error, number)
        return f"={number} {result}".rstrip(" ") + "\n\n"

    def _execute(self, words: list[str]) -> str:
        """The result of a command. Raises CommandError."""
        name, arguments = "".join(words[:1]), words[1:]
        if name in self.commands:
            return self.commands[name](arguments)
        if name not in self.queries:
            raise CommandError("unknown command")
        if arguments:
            raise CommandError(f"syntax error: {name} takes no arguments")
        return self.queries[name]()

    def refuse(self, message: str, number: str = "") -> str:
        """The answer to a command that failed."""
        return f"?{number} {sanitized(message)}\n\n"

    @property
    def state(self) -> State:
        return self.line.state

    def _known_command(self, words: list[str]) -> str:
        if len(words) != 1:
            raise CommandError("syntax error: known_command takes the name of a command")
        return str(words[0] in {*self.queries, *self.commands}).lower()

    def _quit(self) -> str:
        self.has_quit = True
        return ""

    def _boardsize(self, words: list[str]) -> str:
        """`boardsize SIZE` or `boardsize COLUMNS ROWS`: the agent's board, and a new game."""
        if len(words) not in (1, 2) or not all(re.fullmatch("[0-9]{1,4}", w) for w in words):
            raise CommandError("syntax error: boardsize takes a size, or columns and rows")
        _, rows, columns = self.game.spec.observation
        if [int(words[0]), int(words[-1])] != [columns, rows]:
            raise CommandError(f"unacceptable size: the board has {columns} columns, {rows} rows")
        return self._clear_board()

    def _clear_board(self) -> str:
        self.line = UndoableGame(self.game, self.game.initial(1, self.rng), self.rng)
        return ""

    def _komi(self, words: list[str]) -> str:
        try:
            is_zero = len(words) == 1 and float(words[0]) == 0
        except ValueError:
            raise CommandError("syntax error: komi is a number") from None
        if not is_zero:
            raise CommandError("komi must be 0")
        return ""

    def _play(self, words: list[str]) -> str:
        """`play COLOR MOVE`; in a one-player game the color may be omitted."""
        words = self._without_color(words, "play")
        if not words:
            raise CommandError("syntax error: play takes a color and a move")
        try:
            action = parse_action(self.game, self.state, 0, " ".join(words), exact=True)
        except ValueError as error:
            raise CommandError(f"illegal move: {error}") from None
        self.line.play(torch.tensor([action], device=self.state.done.device))
        return ""

    def _genmove(self, words: list[str]) -> str:
        """`genmove COLOR`: the player's move, which is played."""
        action, name = self._choose(words, "genmove")
        self.line.play(action)
        return name

    def _choose(self, words: list[str], command: str) -> tuple[torch.Tensor, str]:
        if self._without_color(words, command):
            raise CommandError(f"syntax error: {command} takes a color")
        self._check_not_over()
        public = self.game.public(self.state)
        action = self.player.choose(public, self.rng)
        return action, self.game.action_to_string(public, 0, int(action[0]))

    def _undo(self) -> str:
        if self.game.spec.hidden:
            raise CommandError("cannot undo: the answer has shown what was hidden")
        if not len(self.line):
            raise CommandError("cannot undo: no move was played")
        self.line.undo()
        return ""

    def _showboard(self) -> str:
        board = render(self.game, self.game.public(self.state), 0).splitlines()
        status = (
            "the game is over"
            if bool(self.state.done[0])
            else f"turn {int(self.state.turn[0]) + 1}"
        )
        if not bool(self.state.done[0]) and self.game.spec.seats > 1:
            status += f", {self._color()} to move"
        # An empty line would end the answer.
        return "\n" + "\n".join([*filter(str.strip, board), status])

    def _final_score(self) -> str:
        """B+1, W+1 or 0; in a one-player game the score, or the number of turns."""
        if not bool(self.state.done[0]):
            raise CommandError("cannot score: the game is not over")
        score = self.state.score[0].tolist()
        if self.game.spec.seats == 1:
            is_score = self.game.spec.goal == "score"
            return f"{score[0]:g}" if is_score else str(int(self.state.turn[0]))
        best = max(score)
        return "0" if min(score) == best else f"{COLORS[score.index(best)][0].upper()}+{best:g}"

    def _legal_moves(self) -> str:
        """The legal moves, one in a line; none where the game is over."""
        if bool(self.state.done[0]):
            return ""
        return "\n".join(legal_names(self.game, self.state, 0).values())

    def _position(self, words: list[str]) -> str:
        """`rlgames-position BOARD`: play on from a board as showboard writes it, with / between
        its lines. What it hides is drawn from all that agrees with it."""
        try:
            state = parse(on_cpu(self.game), "\n".join(" ".join(words).split("/")))
        except ValueError as error:
            raise CommandError(f"invalid position: {error}") from None
        state = state.to(self.game.device)
        hidden = find(self.game, HiddenInformation)
        if hidden is not None:
            state = hidden.resample(state, self.rng)
        self.line = UndoableGame(self.game, state, self.rng)
        return ""

    def _without_color(self, words: list[str], command: str) -> list[str]:
        """The arguments after the color. Raises CommandError for a wrong or a missing color."""
        seats = self.game.spec.seats
        color = SEAT_OF_COLOR.get(words[0].lower()) if words else None
        if color is None and seats > 1:
            raise CommandError(f"syntax error: {command} takes a color, black or white")
        if color is not None and color >= seats:
            raise CommandError(f"invalid color: {self.game.spec.name} is played alone, by black")
        self._check_not_over()
        if color is not None and color != int(self.state.current_seat[0]):
            raise CommandError(f"illegal move: it is {self._color()}'s turn")
        return words if color is None else words[1:]

    def _check_not_over(self) -> None:
        if bool(self.state.done[0]):
            raise CommandError("illegal move: the game is over")

    def _color(self) -> str:
        return COLORS[int(self.state.current_seat[0])]
