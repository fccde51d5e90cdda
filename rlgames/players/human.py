"""A person at the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlgames.drawing.terminal import BoardView, format_parts
from rlgames.games.game import Game, State
from rlgames.players.player import Player

HELP = """  a move     {example}
  p          the agent's probabilities here
  h          this help
  q          quit the game"""


class PlayerQuit(EOFError):
    """The person left before the game was over, by command or because the input ended."""

    def __init__(self, by_command: bool) -> None:
        super().__init__(
            "you left the game" if by_command else "the input ended before the game did"
        )
        self.by_command = by_command


class Human(Player):
    """Shows the board and asks for a move until it is legal.

    advisor: the player whose probabilities are shown on request. ask: prints a prompt and returns
    the input, or raises EOFError. show: prints a text.
    """

    def __init__(
        self,
        game: Game[Any],
        advisor: Player | None = None,
        ask: Callable[[str], str] = input,
        show: Callable[[str], None] = print,
    ) -> None:
        self.game, self.advisor, self.ask, self.show = game, advisor, ask, show
        self._previous: State | None = None
        self._turn = 0

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        action = torch.zeros(len(state), dtype=torch.int64)
        is_same_game = len(state) == 1 and int(state.turn[0]) >= self._turn
        if not is_same_game:
            self._previous = None
        self._turn = int(state.turn[0])
        for row in (~state.done).nonzero()[:, 0].tolist():
            action[row] = self._choose_one(state[row : row + 1])
        return action.to(state.done.device)

    def _choose_one(self, state: State) -> int:
        self._show_board(state)
        while True:
            text = self._read_line()
            if text.lower() in ("q", "quit"):
                raise PlayerQuit(by_command=True)
            if text.lower() in ("h", "help", "?"):
                first = int(self.game.legal_action_mask(state)[0].to(torch.uint8).argmax())
                example = f"as in: {self.game.action_to_string(state, 0, first)}"
                self.show(HELP.format(example=example))
            elif text.lower() in ("p", "probabilities"):
                self.show(self._probabilities(state))
            elif text:
                try:
                    action = self.game.parse_action(state, 0, text)
                except ValueError as error:
                    self.show(str(error))
                    continue
                self._previous = self._after_move(state, action)
                return action

    def _read_line(self) -> str:
        try:
            return self.ask("your move (h for help): ").strip()
        except EOFError:
            raise PlayerQuit(by_command=False) from None

    def _show_board(self, state: State) -> None:
        """Show the board below its turn, seat and score."""
        spec, seat = self.game.spec, int(state.current_seat[0])
        title = f"turn {int(state.turn[0]) + 1}"
        if spec.seats > 1:
            title += f", you are seat {seat + 1}"
        if spec.goal == "score":
            title += f", score {float(state.score[0, seat]):g}"
        board = BoardView(self.game, state, since=self._previous)
        self.show("\n" + format_parts(title, board))

    def _probabilities(self, state: State) -> str:
        if self.advisor is None:
            return "there is no agent to ask"
        try:
            probabilities = self.advisor.probabilities(state)[0]
        except NotImplementedError as error:
            return str(error)
        return format_parts(BoardView(self.game, state, probabilities.cpu(), self._previous))

    def _after_move(self, state: State, action: int) -> State:
        """The position after the person's move, as far as the person knows it."""
        if self.game.spec.hidden:
            return state
        afterstate: State = self.game.apply_action(
            state, torch.tensor([action], device=state.done.device)
        )
        return afterstate


class AnnouncingPlayer(Player):
    """A player whose moves are shown to the person."""

    def __init__(self, game: Game[Any], player: Player, show: Callable[[str], None]) -> None:
        self.game, self.player, self.show = game, player, show

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        action = self.player.choose(state, rng)
        if not bool(state.done[0]):
            name = self.game.action_to_string(state, 0, int(action[0]))
            self.show(f"your opponent plays {name}")
        return action
