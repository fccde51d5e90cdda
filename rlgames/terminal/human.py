"""A person at the keyboard: each position is printed below the last, and a line is read."""

from __future__ import annotations

import re
import sys
from typing import Any

import torch
from torch import Tensor

from rlgames.evaluation.advice import Opinion, opinion
from rlgames.games.fleets.placement import Placement
from rlgames.games.game import Game, State
from rlgames.games.notation import move_name, parse_action
from rlgames.players.player import Around, Decision, HasProbabilities, Player
from rlgames.rng import Rng
from rlgames.rollouts.interactive import TakeBack
from rlgames.terminal.boards import BoardView, format_parts

HELP = """  a move     {example}
  p          the agent's probabilities or values here
  h          this help
  q          quit the game"""
UNDO_HELP = "\n  {word:<11}take back your last move"
SHIP_HELP = "the two ends of a ship, as in A1-A4; r: a random fleet, u: take back, q: quit"


class PlayerQuit(EOFError):
    """The person left before the game was over, by command or because the input ended."""

    def __init__(self, by_command: bool) -> None:
        super().__init__(
            "you left the game" if by_command else "the input ended before the game did"
        )
        self.by_command = by_command


class Human(Player):
    """Shows the board and asks for a move until it is legal.

    advisor: the player whose probabilities are shown on request, and before each move where hints
    is set. can_undo: whether the caller of choose handles TakeBack.
    """

    def __init__(
        self,
        game: Game[Any],
        advisor: Player | None = None,
        hints: bool = False,
        can_undo: bool = False,
    ) -> None:
        self.game, self.advisor, self.hints, self.can_undo = game, advisor, hints, can_undo
        self._previous: State | None = None
        self._turn = 0
        self._queue: list[str] = []
        self._knows_rules = False

    def choose(self, state: State, rng: Rng) -> Tensor:
        action = torch.zeros(len(state), dtype=torch.int64)
        is_same_game = len(state) == 1 and int(state.turn[0]) >= self._turn
        if not is_same_game:
            self._previous = None
        if int(state.turn[0]) != self._turn:
            self._drop_queue("the turn was over")
        self._turn = int(state.turn[0])
        for row in (~state.done).nonzero()[:, 0].tolist():
            action[row] = self._choose_one(state[row : row + 1])
        return action.to(state.done.device)

    def _choose_one(self, state: State) -> int:
        if self._queue:
            try:
                return self._play(state, self._queue.pop(0))
            except ValueError as error:
                print(error)
                self._drop_queue("the move before it is not legal")
        if not self._knows_rules:
            self._knows_rules = True
            if rules := self.game.how_to_play:
                print(rules)
        thinks = self._ask_advisor(state) if self.hints else Opinion(None, False)
        board = BoardView(self.game, state, *thinks, self._previous)
        print("\n" + format_parts(self._title(state), board))
        while True:
            action = self._answer(state, _read("your move (h for help): "))
            if action is not None:
                return action

    def _answer(self, state: State, text: str) -> int | None:
        """Do what the person wrote; the action, if it is a move."""
        word = text.lower()
        if word in ("h", "help", "?"):
            first = int(self.game.legal_action_mask(state)[0].to(torch.uint8).argmax())
            example = f"as in: {self.game.action_to_string(state, 0, first)}"
            word = "undo" if self._is_move(state, "u") else "u"
            undo = UNDO_HELP.format(word=word) if self.can_undo else ""
            print(HELP.format(example=example) + undo)
        elif word in ("p", "probabilities"):
            if (thinks := self._ask_advisor(state)).numbers is not None:
                print(format_parts(BoardView(self.game, state, *thinks, self._previous)))
        elif word in ("u", "undo") and not self._is_move(state, text):
            if self.can_undo:
                raise TakeBack
            is_hidden = self.game.spec.hidden
            reason = "the answer has told you something" if is_hidden else "in this game"
            print(f"no move can be taken back: {reason}")
        elif text:
            try:
                return self._play(state, *self._split(state, text))
            except ValueError as error:
                print(error)
        return None

    def _play(self, state: State, text: str, *later: str) -> int:
        """The action of a move; the later ones of the same turn wait. Raises ValueError."""
        action = parse_action(self.game, state, 0, text)
        self._queue += later
        self._previous = state
        if not self.game.spec.hidden:
            taken = torch.tensor([action], device=state.done.device)
            self._previous = self.game.apply_action(state, taken)
        return action

    def _split(self, state: State, text: str) -> list[str]:
        """The moves of a line: one, or several of a turn that has several, as in A1 B2."""
        words = re.split(r"[\s,]+", text)
        has_one = self.game.spec.max_plies_per_turn == 1
        return [text] if has_one or self._is_move(state, text) else words

    def _is_move(self, state: State, text: str) -> bool:
        try:
            parse_action(self.game, state, 0, text)
        except ValueError:
            return False
        return True

    def _drop_queue(self, reason: str) -> None:
        if self._queue:
            print(f"not played: {' '.join(self._queue)}; {reason}")
        self._queue.clear()

    def _title(self, state: State) -> str:
        """The turn, the seat, and the score if the game has one."""
        spec, seat = self.game.spec, int(state.current_seat[0])
        title = f"turn {int(state.turn[0]) + 1}"
        if spec.seats > 1:
            marks = self.game.seat_marks
            title += f", you play {marks[seat]}" if marks else f", you are seat {seat + 1}"
        if spec.goal == "score":
            title += f", score {float(state.score[0, seat]):g}"
        if self.game.board_titles and not sys.stdout.isatty():
            title += "; " + " | ".join(self.game.board_titles)
        return title

    def _ask_advisor(self, state: State) -> Opinion:
        """The advisor's probabilities or values, if it has any."""
        if self.advisor is None:
            print("there is no agent to ask")
        elif not isinstance(self.advisor, HasProbabilities):
            print(f"{type(self.advisor).__name__} has no probabilities")
        else:
            return opinion(self.advisor, state)
        return Opinion(None, False)


class AnnouncingPlayer(Around):
    """A player whose moves are shown to the person."""

    def __init__(self, game: Game[Any], player: Player) -> None:
        super().__init__(player)
        self.game = game

    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        decision = self.player.act(state, rng, progress)
        if not bool(state.done[0]):
            move = move_name(self.game, state, 0, int(decision.action[0]))
            print(f"your opponent plays {move}")
        return decision


def place_fleet(placement: Placement) -> Tensor | None:
    """Uint8 [N]: the fleet that the person places, None for a random one. Raises PlayerQuit."""
    while placement.next_length is not None:
        print("\n" + placement.draw())
        text = _read(f"your ship of {placement.next_length} (h for help): ")
        if text.lower() in ("r", "random"):
            return None
        if text.lower() in ("u", "undo"):
            placement.remove_last()
        elif text.lower() in ("h", "help", "?"):
            print(SHIP_HELP)
        elif text:
            try:
                placement.place_text(text)
            except ValueError as error:
                print(error)
    return placement.layout()


def _read(prompt: str) -> str:
    """A line; raises PlayerQuit."""
    try:
        text = input(prompt).strip()
    except EOFError:
        raise PlayerQuit(by_command=False) from None
    if text.lower() in ("q", "quit"):
        raise PlayerQuit(by_command=True)
    return text
