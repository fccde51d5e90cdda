"""The games: their rules as keys."""

from __future__ import annotations

from rlgames.config.schema import Option, OptionConfig, key


class BattleshipConfig(OptionConfig):
    board: int = key(1, 1000, help="number of cells")
    ships: list[int] = key(1, 1000, help="ship lengths")
    shots: int = key(1, 1000, help="shots per turn")
    aim: str = key(
        of=("auto", "joint", "sequential"),
        help="joint: one action per set of cells; sequential: cell by cell",
    )
    encoding: str = key(
        of=("signed", "planes", "posterior"),
        help="planes: unknown, miss, hit; posterior: plus occupancy; signed: -1, 0, 1",
    )
    show: list[str] = key(of=("sizes", "sunk", "first_hit"), help="what is also observed")


class SalvoConfig(BattleshipConfig):
    board: int = key(1, 32, help="cells per side")
    ships: list[int] = key(1, 32, help="ship lengths")
    shots: int = key(1, 1024, help="shots per turn")


class SalvoDuelConfig(OptionConfig):
    board: int = key(1, 32, help="cells per side")
    ships: list[int] = key(1, 32, help="ship lengths of each fleet")
    shots: int | None = key(1, 14, help="shots per turn; null: one for each ship afloat")


class TictactoeConfig(OptionConfig):
    board: int = key(1, 7, help="cells per side")
    line: int = key(1, 7, help="marks in a row that win")


class Connect4Config(OptionConfig):
    rows: int = key(1, 61, help="number of rows")
    columns: int = key(1, 31, help="number of columns")
    line: int = key(1, 61, help="stones in a row that win")


class GomokuConfig(OptionConfig):
    board: int = key(1, 19, help="cells per side")
    line: int = key(1, 19, help="stones in a row that win")


class OthelloConfig(OptionConfig):
    board: int = key(4, 8, help="cells per side: 4, 6 or 8")


class HexConfig(OptionConfig):
    board: int = key(2, 11, help="cells per side")
    swap: bool = key(help="the second seat may take over the first stone")


class BreakthroughConfig(OptionConfig):
    rows: int = key(3, 16, help="rows of the board")
    columns: int = key(2, 16, help="columns of the board")
    home_rows: int = key(1, 8, help="rows of pieces of each seat at the start")


class Game2048Config(OptionConfig):
    board: int = key(1, 8, help="rows")
    columns: int = key(1, 8, help="columns; by default as many as rows")
    fours: float = key(0, 1, help="probability that a new tile is a 4")
    target: int = key(4, 2**62, help="tile that counts as a win; play continues")
    encoding: str = key(
        of=("onehot", "exponents"),
        help="onehot: one plane per tile value; exponents: a single plane",
    )


GAMES = {
    "battleship": Option(BattleshipConfig, "rlgames.games.battleship:battleship", "Battleship"),
    "salvo": Option(SalvoConfig, "rlgames.games.battleship:salvo", "Salvo"),
    "salvo_duel": Option(SalvoDuelConfig, "rlgames.games.salvo_duel:salvo_duel", "SalvoDuel"),
    "tictactoe": Option(TictactoeConfig, "rlgames.games.k_in_a_row:tictactoe", "TicTacToe"),
    "connect4": Option(Connect4Config, "rlgames.games.k_in_a_row:connect4", "Connect4"),
    "gomoku": Option(GomokuConfig, "rlgames.games.k_in_a_row:gomoku", "Gomoku"),
    "othello": Option(OthelloConfig, "rlgames.games.othello:Othello", "Othello"),
    "hex": Option(HexConfig, "rlgames.games.hex:Hex", "Hex"),
    "breakthrough": Option(
        BreakthroughConfig, "rlgames.games.breakthrough:Breakthrough", "Breakthrough"
    ),
    "2048": Option(Game2048Config, "rlgames.games.game_2048:Game2048", "2048"),
}
