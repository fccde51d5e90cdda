"""A game in place on a terminal: arrow keys, single keys and a cursor, with prompt_toolkit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from rich.console import Console

from rlgames.core.text import printable
from rlgames.drawing.terminal import BoardView, stack_parts
from rlgames.games.fleets.placement import Placement
from rlgames.games.notation import legal_names, takes_columns
from rlgames.players.human import ANNOUNCEMENT, LineInterface, Position

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

CURSOR_STYLE, MARKED_STYLE = "reverse", "black on yellow"

DIRECTIONS = {Keys.Up: "up", Keys.Down: "down", Keys.Left: "left", Keys.Right: "right"}
LETTERS = {"w": "up", "s": "down", "a": "left", "d": "right"}
"""Keys that move everything, where a game has such actions."""

COMMANDS = {"u": "undo", "p": "probabilities", "q": "quit", "?": "help"}

COMMANDS_HELP = "p: hints, ?: help, q: quit"

NO_CURSOR_HELP = "type a move and press Enter"

MAX_MESSAGES = 6
"""Lines of messages below the board."""


class Cursor:
    """A cursor on the cells of the first board, or on its columns where actions are columns.

    marked: the cells of a turn that takes several.
    """

    def __init__(self, position: Position) -> None:
        self.position, form = position, position.game.board_format
        self.is_by_column = takes_columns(position.game, position.state)
        self.rows, self.columns = form.rows, form.columns
        self.row, self.column = (0 if self.is_by_column else self.rows // 2), self.columns // 2
        self.marked: list[int] = []

    def move(self, direction: str) -> None:
        """Move a step, around the edges of the board."""
        down, right = STEPS[direction]
        if not self.is_by_column:
            self.row = (self.row + down) % self.rows
        self.column = (self.column + right) % self.columns

    def toggle(self) -> None:
        """Mark the cell, or unmark it."""
        cell = self.row * self.columns + self.column
        if not self.is_by_column:
            self.marked = [*({*self.marked} ^ {cell})]

    def chosen(self) -> str:
        """The move as a person writes it: the cells that are marked, or the one at the cursor."""
        if self.is_by_column:
            return str(self.column + 1)
        cells = sorted(self.marked) or [self.row * self.columns + self.column]
        return " ".join(map(self.position.game.board_format.cell_name, cells))

    def highlights(self) -> dict[int, str]:
        """The styles of the cells that are marked and of the one below the cursor."""
        cell = self.row * self.columns + self.column
        if self.is_by_column:
            cells = self.position.game.action_cells(self.position.state, 0)
            assert cells is not None
            lands = cells[self.column].nonzero()[:, 0].tolist()
            cell = lands[0] if lands else self.column
        return dict.fromkeys(self.marked, MARKED_STYLE) | {cell: CURSOR_STYLE}

    def help(self, are_several: bool) -> str:
        """What the keys do."""
        if self.is_by_column:
            return "left, right and Enter, or type a column"
        if are_several:
            return "arrows: move, Space: mark, Enter: shoot, or type cells as in A1 B2"
        return "arrows and Enter, or type a cell"


class ShipCursor:
    """The next ship of a placement, moved and turned."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.length = placement.next_length or 1
        self.row = self.column = 0
        self.is_down = self.length > placement.fleet.columns

    @property
    def cells(self) -> list[int]:
        step = self.placement.fleet.columns if self.is_down else 1
        first = self.row * self.placement.fleet.columns + self.column
        return [first + step * number for number in range(self.length)]

    def move(self, direction: str) -> None:
        """Move a step, not beyond the board."""
        down, right = STEPS[direction]
        self.row, self.column = self.row + down, self.column + right
        self._keep_inside()

    def _keep_inside(self) -> None:
        fleet = self.placement.fleet
        last_row = fleet.rows - (self.length if self.is_down else 1)
        last_column = fleet.columns - (1 if self.is_down else self.length)
        self.row, self.column = (
            min(max(0, self.row), last_row),
            min(max(0, self.column), last_column),
        )

    def toggle(self) -> None:
        """Turn the ship, if it then fits the board."""
        fleet = self.placement.fleet
        if self.length <= (fleet.columns if self.is_down else fleet.rows):
            self.is_down = not self.is_down
            self._keep_inside()

    def chosen(self) -> str:
        """The two ends of the ship."""
        return "-".join(map(self.placement.board_format.cell_name, (self.cells[0], self.cells[-1])))

    def picture(self) -> str:
        """The board with the ships placed and, as +, the one that is being placed."""
        return self.placement.draw(self.cells)


@dataclass
class Page:
    """What is on the screen, and what keys do.

    board: called for each drawing. cursor: moved by the arrow keys, None without one. directions:
    actions that the arrow keys are. names: of the moves that may be typed; a name is complete
    without Enter if is_single.
    """

    title: str
    board: Callable[[], BoardView | str]
    keys: str
    cursor: Cursor | ShipCursor | None = None
    directions: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    is_single: bool = False


class ScreenInterface(LineInterface):
    """Draws each position where the last one was, and reads keys."""

    asks_for_fleet = True

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(force_terminal=True)
        self._messages: list[str] = []
        self._typed = ""
        self._position: Position | None = None
        self._frozen = 0

    def show_position(self, position: Position) -> None:
        self._position = position

    def show_hints(self, position: Position) -> None:
        self._position = position

    def show_message(self, text: str) -> None:
        last = self._messages[-1] if self._messages else ""
        if text.startswith(ANNOUNCEMENT) and last.startswith(ANNOUNCEMENT):
            self._messages[-1] += text.removeprefix(ANNOUNCEMENT.rstrip())
        else:
            self._messages += text.splitlines()

    def show_placement(self, placement: Placement, board: str) -> None:
        pass

    def show_end(self, board: BoardView, text: str) -> None:
        self._thaw()
        self._console.print(stack_parts(*self._messages[-MAX_MESSAGES:], board, text))
        self._messages.clear()

    def read_move(self, position: Position) -> str:
        shown = self._position or position
        names = [*legal_names(position.game, position.state, 0).values()]
        is_slide = not {*DIRECTIONS.values()}.isdisjoint(names)
        directions = {*DIRECTIONS.values()} if is_slide else set()
        takes_cells = not directions and position.game.action_cells(position.state, 0) is not None
        cursor = Cursor(position) if takes_cells else None

        def board() -> BoardView:
            highlights = {} if cursor is None else cursor.highlights()
            return BoardView(
                shown.game, shown.state, shown.probabilities, shown.since, highlights=highlights
            )

        several = position.game.spec.max_plies_per_turn > 1 or any(" " in each for each in names)
        keys = NO_CURSOR_HELP if cursor is None else cursor.help(several)
        if directions:
            keys = "arrows or WASD: slide"
        page = Page(
            title=shown.title,
            board=board,
            keys=f"{keys}; {'' if position.game.spec.hidden else 'u: undo, '}{COMMANDS_HELP}",
            cursor=cursor,
            directions=directions,
            names=names,
            is_single=not several,
        )
        text = self._read(page)
        self._position = position
        return text

    def read_ship(self, placement: Placement) -> str:
        cursor = ShipCursor(placement)
        page = Page(
            title=f"place your ship of {placement.next_length}",
            board=cursor.picture,
            keys="arrows: move, Space: turn, Enter: place, r: random fleet, u: undo, q: quit",
            cursor=cursor,
        )
        return self._read(page)

    def wants_another_game(self) -> bool:
        page = Page("", lambda: "", "Enter: play again, q: quit")
        try:
            return self._read(page) in ("", "y", "yes")
        except EOFError:
            return False
        finally:
            self._thaw()

    def _read(self, page: Page) -> str:
        """What was typed or pressed on a page. Raises EOFError and KeyboardInterrupt."""
        self._thaw()
        self._typed = ""
        control = FormattedTextControl(lambda: ANSI(self._drawn(page)), show_cursor=False)
        application: Application[str] = Application(
            layout=Layout(Window(control, dont_extend_height=True)),
            key_bindings=self._bindings(page),
            erase_when_done=True,
        )
        text = application.run()
        self._messages.clear()
        board = self._drawn(page, is_waiting=False)  # it stays on the screen while others think
        if board:
            print(board, flush=True)
        self._frozen = len(board.splitlines())
        return text

    def _bindings(self, page: Page) -> KeyBindings:
        bindings = KeyBindings()

        def press_arrow(event: KeyPressEvent, name: str) -> None:
            if name in page.directions:
                event.app.exit(result=name)
            elif page.cursor is not None:
                page.cursor.move(name)

        for key, name in DIRECTIONS.items():
            bindings.add(key)(lambda event, name=name: press_arrow(event, name))

        @bindings.add(Keys.Enter)
        @bindings.add(Keys.ControlJ)  # Enter that was pressed while the opponent was thinking
        def _(event: KeyPressEvent) -> None:
            chosen = "" if page.cursor is None else page.cursor.chosen()
            event.app.exit(result=self._typed or chosen)

        @bindings.add(Keys.Backspace)
        def _(event: KeyPressEvent) -> None:
            self._typed = self._typed[:-1]

        @bindings.add(Keys.ControlC)
        def _(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt())

        @bindings.add(Keys.ControlD)
        def _(event: KeyPressEvent) -> None:
            event.app.exit(exception=EOFError())

        @bindings.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            answer = self._press(page, event.data)
            if answer:
                event.app.exit(result=answer)

        return bindings

    def _press(self, page: Page, key: str) -> str:
        """The answer that a key completes; empty while there is none yet."""
        if not key.isprintable():
            return ""
        if not self._typed:
            if LETTERS.get(key.lower()) in page.directions:
                return LETTERS[key.lower()]
            starts = any(name.lower().startswith(key.lower()) for name in page.names)
            if key.lower() in COMMANDS and (page.directions or not starts):
                return COMMANDS[key.lower()]
            if isinstance(page.cursor, ShipCursor) and key.lower() == "r":
                return "random"
            if key == " ":
                if page.cursor is not None:
                    page.cursor.toggle()
                return ""
        self._typed += key
        typed = self._typed.strip().upper()
        longer = [name for name in page.names if name.upper().startswith(typed)]
        return self._typed if page.is_single and [n.upper() for n in longer] == [typed] else ""

    def _drawn(self, page: Page, is_waiting: bool = True) -> str:
        """A page as text with control sequences for colors."""
        self._console.size = Console().size
        board = page.board()
        parts: list[str | BoardView] = [page.title] if page.title else []
        parts += [board] if board else []
        parts += [printable(line) for line in self._messages[-MAX_MESSAGES:]]
        if is_waiting:
            parts += [f"> {printable(self._typed)}"] if self._typed else []
            parts.append(page.keys)
        with self._console.capture() as capture:
            self._console.print(stack_parts(*parts), end="")
        return capture.get().rstrip("\n")

    def _thaw(self) -> None:
        """Remove what was left there."""
        if self._frozen:
            sys.stdout.write(f"\x1b[{self._frozen}A\r\x1b[J")
            sys.stdout.flush()
        self._frozen = 0
