"""Reference rules: the games, one position at a time, in plain Python.

They are slow and share no code with `rlgames`, so that the batched games can be tested against
them.
"""


class RuleBook:
    """One game from its start to its end.

    done: the game is over. current_seat: the seat to act. turn: turns finished since the start.
    score: what each seat has scored since the start.
    """

    seats = 1

    def __init__(self):
        self.done = False
        self.current_seat = 0
        self.turn = 0
        self.score = [0.0] * self.seats

    def legal_action_mask(self):
        """The legal actions in rising order; none when the game is over."""
        raise NotImplementedError

    def play(self, action, chance=None):
        """Make a legal move; chance is what happens after it, in games of chance."""
        raise NotImplementedError

    def _check(self, action):
        if action not in self.legal_action_mask():
            raise ValueError(f"{action!r} is not legal here")


class LinesBook(RuleBook):
    """Two seats take turns to place stones; the first to have `line` in a row wins.

    Without gravity an action is an empty cell, row by row from the top; with gravity it is a
    column, and the stone falls to the lowest empty cell of it. Cells hold None, 0 or 1.
    """

    seats = 2

    def __init__(self, rows, columns, line, gravity):
        super().__init__()
        self.rows, self.columns, self.line, self.gravity = rows, columns, line, gravity
        self.cells: list[list[int | None]] = [[None] * columns for _ in range(rows)]

    def legal_action_mask(self):
        if self.done:
            return []
        if self.gravity:
            return [column for column in range(self.columns) if self.cells[0][column] is None]
        return [
            row * self.columns + column
            for row in range(self.rows)
            for column in range(self.columns)
            if self.cells[row][column] is None
        ]

    def play(self, action, chance=None):
        self._check(action)
        if self.gravity:
            column = action
            row = max(row for row in range(self.rows) if self.cells[row][column] is None)
        else:
            row, column = divmod(action, self.columns)
        self.cells[row][column] = self.current_seat
        self.turn += 1
        if self._has_line(self.current_seat):
            self.score[self.current_seat] = 1.0
            self.score[1 - self.current_seat] = -1.0
            self.done = True
        elif all(cell is not None for row in self.cells for cell in row):
            self.done = True
        self.current_seat = 1 - self.current_seat

    def _has_line(self, seat):
        for row in range(self.rows):
            for column in range(self.columns):
                for down, right in [(0, 1), (1, 0), (1, 1), (1, -1)]:
                    if all(
                        self._cell(row + step * down, column + step * right) == seat
                        for step in range(self.line)
                    ):
                        return True
        return False

    def _cell(self, row, column):
        """What the cell holds; None outside the board too."""
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return self.cells[row][column] if inside else None


class SlideBook(RuleBook):
    """2048: one seat slides all tiles, equal tiles merge, and chance adds a tile.

    Actions: 0 up, 1 right, 2 down, 3 left. Cells hold the value of a tile, 0 for none. The
    board starts empty; `place` puts tiles on it.
    """

    def __init__(self, rows, columns):
        super().__init__()
        self.rows, self.columns = rows, columns
        self.cells = [[0] * columns for _ in range(rows)]
        self.done = True

    def place(self, index, value):
        """Put a new tile on the empty cell of that index, row by row from the top."""
        row, column = divmod(index, self.columns)
        if self.cells[row][column] != 0:
            raise ValueError(f"cell {index} already has a tile")
        self.cells[row][column] = value
        self.done = self._moves() == []

    def legal_action_mask(self):
        return [] if self.done else self._moves()

    def play(self, action, chance=None):
        """Slide, then place chance = (index of the cell, value of the new tile)."""
        self._check(action)
        self.cells, gained = self.slid(action)
        self.score[0] += gained
        self.turn += 1
        index, value = chance
        self.place(index, value)

    def slid(self, action):
        """The board after a slide, before a new tile comes, and the value of the merged tiles."""
        cells = [list(row) for row in self.cells]
        gained = 0
        for line in self._towards_wall(action):
            tiles, merged = pushed([self.cells[row][column] for row, column in line])
            gained += merged
            for (row, column), tile in zip(line, tiles, strict=True):
                cells[row][column] = tile
        return cells, gained

    def _moves(self):
        return [action for action in range(4) if self.slid(action)[0] != self.cells]

    def _towards_wall(self, action):
        """Every row or column as a list of (row, column), the cell at the wall first."""
        across = [[(row, column) for column in range(self.columns)] for row in range(self.rows)]
        along = [[(row, column) for row in range(self.rows)] for column in range(self.columns)]
        if action == 0:
            return along
        if action == 1:
            return [line[::-1] for line in across]
        if action == 2:
            return [line[::-1] for line in along]
        return across


def pushed(line):
    """A line of tiles pushed to its start, and the value of the tiles made by merging."""
    waiting = [tile for tile in line if tile != 0]
    result = []
    gained = 0
    while waiting:
        tile = waiting.pop(0)
        if waiting and waiting[0] == tile:
            waiting.pop(0)
            tile = 2 * tile
            gained += tile
        result.append(tile)
    return result + [0] * (len(line) - len(result)), gained


class SalvoBook(RuleBook):
    """Battleship for one seat: every turn shoots at `shots` cells, or all that are left.

    ships_cells: the cells with ships on them, counted row by row from the top. The score is
    the number of hits; the game is over when every ship cell is hit.
    """

    def __init__(self, rows, columns, ships_cells, shots):
        super().__init__()
        self.ships_cells, self.shots = set(ships_cells), shots
        self.unshot = set(range(rows * columns))
        self.hit_turn = {}  # the turn, from 1, when a cell was hit

    def legal_action_mask(self):
        """The cells that may still be shot at."""
        return [] if self.done else sorted(self.unshot)

    def play(self, action, chance=None):
        self.play_set({action})

    def play_set(self, cells):
        """One turn: shoot at a set of cells."""
        cells = set(cells)
        if self.done or not cells <= self.unshot:
            raise ValueError(f"{sorted(cells)} cannot be shot at")
        if len(cells) != min(self.shots, len(self.unshot)):
            raise ValueError(f"{len(cells)} is the wrong number of shots")
        self.unshot -= cells
        self.score[0] += len(cells & self.ships_cells)
        self.turn += 1
        self.hit_turn |= dict.fromkeys(cells & self.ships_cells, self.turn)
        self.done = not self.ships_cells & self.unshot


class DuelBook(RuleBook):
    """Two-player Salvo: a turn has as many shots as its seat has ships afloat when it
    starts, or every_turn.

    fleets: for each seat the ships it owns, each a set of cells counted row by row from the
    top. The seat aims at one cell of the other's board after another; all shots of a turn
    land together at its end, and then the other seat moves.
    """

    seats = 2

    def __init__(self, rows, columns, fleets, every_turn=None):
        self.every_turn = every_turn
        super().__init__()
        self.area = rows * columns
        self.fleets = [[set(ship) for ship in fleet] for fleet in fleets]
        # By seat: the cells of the other's board it has shot at.
        self.shot: list[set[int]] = [set(), set()]
        # By seat: the turn, from 1, when it hit a cell, and the turns in which it sank ships.
        self.hit_turn: list[dict[int, int]] = [{}, {}]
        self.sunk_turns: list[list[int]] = [[], []]
        self.action_cells = []  # cells the mover has aimed at in this turn
        self.shots = self._shots()

    def afloat(self, seat):
        """The seat's own ships of which some cell is not yet hit."""
        return [ship for ship in self.fleets[seat] if not ship <= self.shot[1 - seat]]

    def legal_action_mask(self):
        if self.done:
            return []
        taken = self.shot[self.current_seat] | set(self.action_cells)
        return [cell for cell in range(self.area) if cell not in taken]

    def play(self, action, chance=None):
        self._check(action)
        self.action_cells.append(action)
        if len(self.action_cells) < self.shots:
            return
        other = 1 - self.current_seat
        num_afloat = len(self.afloat(other))
        self.shot[self.current_seat] |= set(self.action_cells)
        self.turn += 1
        hits = set(self.action_cells) & set().union(*self.fleets[other])
        self.hit_turn[self.current_seat] |= dict.fromkeys(hits, self.turn)
        num_sunk = num_afloat - len(self.afloat(other))
        self.sunk_turns[self.current_seat] += [self.turn] * num_sunk
        self.action_cells = []
        if not self.afloat(other):
            self.score[self.current_seat] = 1.0
            self.score[other] = -1.0
            self.done = True
        self.current_seat = other
        self.shots = self._shots()

    def _shots(self):
        """How many shots the turn that starts now has."""
        return min(
            self.every_turn or len(self.afloat(self.current_seat)),
            self.area - len(self.shot[self.current_seat]),
        )


class OthelloBook(RuleBook):
    """Two seats take turns to place discs that flip others; the last action is passing.

    A disc must flip at least one disc of the other seat: a straight run of them between it and a
    disc of its own seat. Who cannot, passes; the game is over when neither seat can place a disc.
    Cells hold None, 0 or 1.
    """

    seats = 2

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.cells: list[list[int | None]] = [[None] * size for _ in range(size)]
        middle = size // 2
        for row, column in ((middle - 1, middle), (middle, middle - 1)):
            self.cells[row][column] = 0
            self.cells[row][row] = 1

    def flipped(self, seat, row, column):
        """The cells whose discs a disc of this seat would flip."""
        cells: list[tuple[int, int]] = []
        if self.cells[row][column] is not None:
            return cells
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                run, at = [], (row + down, column + right)
                while (down or right) and self._holds(at, 1 - seat):
                    run.append(at)
                    at = (at[0] + down, at[1] + right)
                if self._holds(at, seat):
                    cells += run
        return cells

    def legal_action_mask(self):
        if self.done:
            return []
        return self._placements(self.current_seat) or [self.size**2]

    def play(self, action, chance=None):
        self._check(action)
        seat = self.current_seat
        if action < self.size**2:
            row, column = divmod(action, self.size)
            for cell in [*self.flipped(seat, row, column), (row, column)]:
                self.cells[cell[0]][cell[1]] = seat
        self.turn += 1
        self.current_seat = 1 - seat
        self.done = not self._placements(0) and not self._placements(1)
        if self.done:
            first, second = (sum(line.count(each) for line in self.cells) for each in (0, 1))
            outcome = float((first > second) - (first < second))
            self.score = [outcome, -outcome]

    def _placements(self, seat):
        places = range(self.size**2)
        return [cell for cell in places if self.flipped(seat, *divmod(cell, self.size))]

    def _holds(self, cell, seat):
        inside = 0 <= cell[0] < self.size and 0 <= cell[1] < self.size
        return inside and self.cells[cell[0]][cell[1]] == seat


class HexBook(RuleBook):
    """Two seats take turns to place stones on a rhombus; a chain between its own two sides wins.

    The first seat connects the first row with the last one, the second seat the first column with
    the last one. With swap the last action, legal in the second turn only, replaces the first stone
    by one of the second seat on the cell with row and column exchanged. Cells hold None, 0 or 1.
    """

    seats = 2

    def __init__(self, size, swap):
        super().__init__()
        self.size, self.swap = size, swap
        self.cells: list[list[int | None]] = [[None] * size for _ in range(size)]

    def legal_action_mask(self):
        if self.done:
            return []
        places = [(row, column) for row in range(self.size) for column in range(self.size)]
        empty = [row * self.size + col for row, col in places if self.cells[row][col] is None]
        return [*empty, self.size**2] if self.swap and self.turn == 1 else empty

    def play(self, action, chance=None):
        self._check(action)
        if action == self.size**2:
            first = next(cell for cell in range(action) if self._at(*divmod(cell, self.size)) == 0)
            row, column = divmod(first, self.size)
            self.cells[row][column] = None
            self.cells[column][row] = 1
        else:
            self.cells[action // self.size][action % self.size] = self.current_seat
            if self._is_connected(self.current_seat):
                self.done = True
                self.score = [1.0, -1.0] if self.current_seat == 0 else [-1.0, 1.0]
        self.turn += 1
        self.current_seat = 1 - self.current_seat

    def _at(self, row, column):
        inside = 0 <= row < self.size and 0 <= column < self.size
        return self.cells[row][column] if inside else None

    def _is_connected(self, seat):
        """Follow the chains from one of the seat's sides."""
        side = [(0, place) if seat == 0 else (place, 0) for place in range(self.size)]
        queue = [cell for cell in side if self._at(*cell) == seat]
        reached = set(queue)
        while queue:
            row, column = queue.pop()
            if (row, column)[seat] == self.size - 1:
                return True
            for down, right in [(0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1)]:
                near = (row + down, column + right)
                if self._at(*near) == seat and near not in reached:
                    reached.add(near)
                    queue.append(near)
        return False


class BreakthroughBook(RuleBook):
    """Two seats move pieces forward, the first one up and the second one down.

    A piece moves one row forward, straight or diagonally, to an empty cell; diagonally it may take
    a piece of the other seat. Who reaches the last row or has taken all pieces wins. Action
    3 * place + step: place counts the cells and step the directions (left, straight, right) as the
    seat sees them that moves upward, which for the second seat is from the lower right corner.
    Cells hold None, 0 or 1.
    """

    seats = 2

    def __init__(self, rows, columns, home_rows):
        super().__init__()
        self.rows, self.columns = rows, columns
        self.cells: list[list[int | None]] = [[None] * columns for _ in range(rows)]
        for row in range(home_rows):
            self.cells[row] = [1] * columns
            self.cells[rows - 1 - row] = [0] * columns

    def legal_action_mask(self):
        actions = range(3 * self.rows * self.columns)
        return [] if self.done else [action for action in actions if self._is_legal(action)]

    def play(self, action, chance=None):
        self._check(action)
        (row, column), (to_row, to_column) = self.move(action)
        self.cells[row][column] = None
        self.cells[to_row][to_column] = self.current_seat
        enemies = sum(line.count(1 - self.current_seat) for line in self.cells)
        self.done = enemies == 0 or to_row == (0, self.rows - 1)[self.current_seat]
        if self.done:
            self.score = [1.0, -1.0] if self.current_seat == 0 else [-1.0, 1.0]
        self.turn += 1
        self.current_seat = 1 - self.current_seat

    def move(self, action):
        """The cells from which and to which an action moves."""
        place, step = divmod(action, 3)
        row, column = divmod(place, self.columns)
        if self.current_seat == 0:
            return (row, column), (row - 1, column + step - 1)
        row, column = self.rows - 1 - row, self.columns - 1 - column
        return (row, column), (row + 1, column - (step - 1))

    def _is_legal(self, action):
        (row, column), (to_row, to_column) = self.move(action)
        inside = 0 <= to_row < self.rows and 0 <= to_column < self.columns
        if not inside or self.cells[row][column] != self.current_seat:
            return False
        target = self.cells[to_row][to_column]
        return target is None or (target != self.current_seat and to_column != column)
