"""A person at the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlgames.drawing.terminal import Diagram, printed
from rlgames.games.game import Game, State
from rlgames.players.player import Player

HELP = """  a move     {example}
  p          the agent's probabilities here
  h          this help
  q          leave the game"""


class PlayerQuit(EOFError):
    """The person left before the game was over; `asked` tells that they said so."""

    def __init__(self, asked: bool) -> None:
        super().__init__("the game was left" if asked else "the input ended before the game did")
        self.asked = asked


class Human(Player):
    """Shows the board, asks for a move, and asks again until there is a legal one.

    advisor: whose probabilities are shown on request. ask: prints a question and returns what is
    typed, or raises EOFError. tell: prints a line.
    """

    def __init__(
        self,
        game: Game[Any],
        advisor: Player | None = None,
        ask: Callable[[str], str] = input,
        tell: Callable[[str], None] = print,
    ) -> None:
        self.game, self.advisor, self.ask, self.tell = game, advisor, ask, tell
        self._since: State | None = None
        self._turn = 0

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        action = torch.zeros(len(state), dtype=torch.int64)
        if len(state) > 1 or int(state.turn[0]) < self._turn:  # not the game that was shown last
            self._since = None
        self._turn = int(state.turn[0])
        for row in (~state.done).nonzero()[:, 0].tolist():
            action[row] = self._one(state[row : row + 1])
        return action.to(state.done.device)

    def _one(self, state: State) -> int:
        game = self.game
        seats = f", you are seat {int(state.current_seat[0]) + 1}" if game.spec.seats > 1 else ""
        score = float(state.score[0, int(state.current_seat[0])])
        scored = f", score {score:g}" if game.spec.goal == "score" else ""
        board = Diagram(game, state, since=self._since)
        self.tell("\n" + printed(f"turn {int(state.turn[0]) + 1}{seats}{scored}", board))
        while True:
            try:
                text = self.ask("your move (h for help): ").strip()
            except EOFError:
                raise PlayerQuit(asked=False) from None
            if text.lower() in ("q", "quit"):
                raise PlayerQuit(asked=True)
            if text.lower() in ("h", "help", "?"):
                first = int(game.legal_action_mask(state)[0].to(torch.uint8).argmax())
                self.tell(HELP.format(example=f"as in: {game.action_to_string(state, 0, first)}"))
            elif text.lower() in ("p", "probabilities"):
                self.tell(self._probabilities(state))
            elif text:
                try:
                    action = game.parse_action(state, 0, text)
                except ValueError as error:
                    self.tell(str(error))
                    continue
                self._since = self._after(state, action)
                return action

    def _probabilities(self, state: State) -> str:
        if self.advisor is None:
            return "there is no agent to ask"
        try:
            likely = self.advisor.probabilities(state)[0]
        except NotImplementedError as error:
            return str(error)
        return printed(Diagram(self.game, state, likely.cpu(), self._since))

    def _after(self, state: State, action: int) -> State:
        """The position as the person knows it once they have moved."""
        if self.game.spec.hidden:
            return state
        moved: State = self.game.apply_action(
            state, torch.tensor([action], device=state.done.device)
        )
        return moved


class AnnouncingPlayer(Player):
    """A player whose moves are told to the person."""

    def __init__(self, game: Game[Any], player: Player, tell: Callable[[str], None]) -> None:
        self.game, self.player, self.tell = game, player, tell

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        action = self.player.choose(state, rng)
        if not bool(state.done[0]):
            self.tell(f"it plays {self.game.action_to_string(state, 0, int(action[0]))}")
        return action
