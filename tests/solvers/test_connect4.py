"""Alpha-beta search: held to the values of all positions, and honest about its budget."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from helpers import rng
from markers import quick
from processes import Fork

from rlgames.evaluation.positions import read_positions
from rlgames.games.board_game import BoardState
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.connect4 import AlphaBeta
from rlgames.solvers.optimum import find_optimum


def bits(state: BoardState, row: int = 0) -> tuple[int, int]:
    """The stones of the seat to move, and all stones."""
    own, occupied = state.words[row].tolist()
    return own, occupied


def some_positions(game, games=60, seed=1):
    moves, _ = collect_games(game, [Random(game)], games, rng(seed))
    return moves.state


@pytest.mark.long
def test_the_first_seat_wins_connect_4():
    """Published by Allis and by Allen in 1988; within ten minutes on one core."""
    optimum = find_optimum(KInARow(6, 7, 4, gravity=True), 600)
    assert optimum is not None
    assert optimum.value == 1


def test_an_open_three_wins():
    board = ". . . . . . .\n" * 4 + ". . O O . . .\n. . X X . . .\n1 2 3 4 5 6 7"
    state = parse(KInARow(6, 7, 4, gravity=True), board)
    result = AlphaBeta(6, 7, 4).search(*bits(state), 20)
    assert result.value == 1
    assert set(result.columns) <= {1, 4}
    assert {result.plies(column) for column in result.columns} == {3}


def test_a_win_at_once_and_a_double_threat_need_no_time():
    game = KInARow(6, 7, 4, gravity=True)
    empty, names = ". . . . . . .\n", "\n1 2 3 4 5 6 7"
    wins = parse(game, empty * 5 + "X X X . O O O" + names)
    result = AlphaBeta(6, 7, 4).search(*bits(wins), 0)
    assert (result.columns, result.value, result.plies(3)) == ([3], 1, 1)
    lost = parse(game, empty * 4 + ". O O . . . .\n. X X X . . ." + names)
    result = AlphaBeta(6, 7, 4).search(*bits(lost), 0)
    assert (result.columns, result.value, result.plies(3)) == (list(range(7)), -1, 2)


def test_a_full_board_is_a_draw():
    board = (1 << 2) - 1
    result = AlphaBeta(2, 1, 2).search(0, board, 1)
    assert (result.value, result.columns) == (0, [])


@pytest.mark.parametrize("entries", [1, 100])
def test_a_tiny_table_changes_no_value(entries):
    large, small = AlphaBeta(4, 5, 4), AlphaBeta(4, 5, 4, entries)
    for own, occupied in some_bits():
        result, again = large.search(own, occupied), small.search(own, occupied)
        assert again.value == result.value
        # Which of the winning columns it finds first, and how late a loss, depend on the table.
        assert again.value != 0 or again.columns == result.columns
        assert small.analyze(own, occupied) == large.analyze(own, occupied)
    assert small._table.size <= max(entries, 2)


def some_bits():
    state = some_positions(KInARow(4, 5, 4, gravity=True), 8, 3)[60:80]
    return [bits(state, row) for row in range(len(state))]


def score(rows, columns, line, gravity_board, memory):
    """(outcome, plies) of a position by plain minimax. gravity_board: columns from the bottom up,
    1 for the stones of the seat to move, 0 for the other's."""
    if gravity_board not in memory:
        best = None
        for place, column in enumerate(gravity_board):
            if len(column) == rows:
                continue
            after = (*gravity_board[:place], (*column, 1), *gravity_board[place + 1 :])
            if makes_a_line(after, place, len(column), line):
                best = (1, 1)
                break
            turned = tuple(tuple(1 - stone for stone in each) for each in after)
            outcome, plies = score(rows, columns, line, turned, memory)
            candidate = (-outcome, plies + 1)
            if best is None or worth(candidate) > worth(best):
                best = candidate
        memory[gravity_board] = (0, 0) if best is None else best
    return memory[gravity_board]


def worth(result):
    """Early wins are better than late ones, late losses better than early ones."""
    outcome, plies = result
    return outcome * (1000 - plies)


def makes_a_line(board, place, height, line):
    def run(across, up):
        count = 0
        c, r = place + across, height + up
        while 0 <= c < len(board) and 0 <= r < len(board[c]) and board[c][r] == 1:
            count, c, r = count + 1, c + across, r + up
        return count

    directions = ((1, 0), (0, 1), (1, 1), (1, -1))
    return any(run(across, up) + run(-across, -up) + 1 >= line for across, up in directions)


@pytest.mark.parametrize(
    "rules", quick([[3, 3, 3], [3, 4, 3], [4, 3, 4], [4, 4, 3], [4, 4, 4]], [3, 3, 3], [4, 3, 4])
)
def test_every_position_of_a_small_board_has_its_exact_score(rules):
    rows, columns, line = rules
    values: dict[tuple[tuple[int, ...], ...], tuple[int, int]] = {}
    score(rows, columns, line, ((),) * columns, values)
    search = AlphaBeta(*rules)
    for board, (outcome, plies) in values.items():
        stones = [
            (1 << c * (rows + 1) + r, stone)
            for c, col in enumerate(board)
            for r, stone in enumerate(col)
        ]
        if len(stones) == rows * columns:
            continue
        own, occupied = sum(b for b, stone in stones if stone), sum(b for b, _ in stones)
        result = search.analyze(own, occupied)
        assert result.value == outcome
        same = [result.plies(c) for c in result.columns]
        assert (max(same) if outcome == -1 else min(same)) == plies


def labeled_positions():
    file = Path(__file__).parents[2] / "scripts/checks/connect4_positions.txt"
    boards = read_positions(file, KInARow(6, 7, 4, gravity=True)).state.words.tolist()
    lines = [line.split() for line in file.read_text().splitlines() if line[0] != "#"]
    return [(tuple(board), line[3]) for board, line in zip(boards, lines, strict=True)]


@pytest.mark.others
@pytest.mark.parametrize("stones", quick([24, 12, 8], 24))
def test_positions_have_the_outcomes_of_their_labels(stones):
    search = AlphaBeta(6, 7, 4)
    labeled = [(b, o) for b, o in labeled_positions() if b[1].bit_count() >= stones]
    assert len(labeled) > 100
    for board, outcomes in labeled:
        result = search.search(*board)
        best = max(outcomes, key=".-=+".index)
        assert "-=+"[result.value + 1] == best
        columns = [column for column in range(7) if outcomes[column] == best]
        assert set(result.columns) <= set(columns)
        assert best != "=" or result.columns == columns


def random_position(rng, stones):
    """A position after `stones` random moves that complete no line; None where none is left, or
    where the mover can complete one."""

    def drop(board, column):
        own, occupied = board
        pile = 0b111111 << 7 * column
        stone = (occupied + sum(1 << 7 * c for c in range(7))) & pile
        return (own ^ occupied, occupied | stone) if stone else None

    def completes_a_line(board, column):
        own, occupied = drop(board, column) or (0, 0)
        placed = own ^ occupied
        return any(placed & placed >> s & placed >> 2 * s & placed >> 3 * s for s in (1, 6, 7, 8))

    board, moves = (0, 0), list[int]()
    while len(moves) < stones:
        open_ = [c for c in range(7) if drop(board, c) and not completes_a_line(board, c)]
        if not open_:
            return None
        moves.append(rng.choice(open_))
        board = drop(board, moves[-1])
    return None if any(completes_a_line(board, column) for column in range(7)) else (moves, board)


@pytest.mark.others
@pytest.mark.slow
def test_scores_are_those_of_another_solver():
    bitbully = pytest.importorskip("bitbully")
    solver, search, picks = bitbully.BitBully(), AlphaBeta(6, 7, 4), random.Random(0)
    checked = 0
    while checked < 2000:
        position = random_position(picks, picks.randint(12, 41))
        if position is None:
            continue
        moves, board = position
        result = search.analyze(*board)
        scores = solver.score_all_moves(bitbully.Board.from_moves(moves))
        assert {column: (s, s) for column, s in scores.items()} == result.bounds, moves
        checked += 1


def test_a_search_ends_at_once_when_it_is_interrupted(tmp_path):
    search = AlphaBeta(6, 7, 4)
    search.search(0, 0, max_positions=1000)
    with open(tmp_path / "error", "w") as error:
        process = Fork([0, error.fileno(), error.fileno()], lambda: search.search(0, 0))
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        end = time.monotonic() + 5
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
    assert process.poll() == 99
    assert "KeyboardInterrupt" in (tmp_path / "error").read_text()
