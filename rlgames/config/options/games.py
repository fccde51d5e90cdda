"""The games: their rules as keys."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import Part, key


@dataclass
class BattleshipConfig:
    name: str = "battleship"
    board: int = key(10, 1, 1000)
    ships: list[int] = key([3], 1, 1000)
    shots: int = key(1, 1, 1000)
    aim: str = key("auto", of=("auto", "joint", "sequential"))
    encoding: str = key("planes", of=("signed", "planes", "posterior"))
    show: list[str] = key([], of=("sizes", "sunk", "first_hit"))


@dataclass
class SalvoConfig(BattleshipConfig):
    name: str = "salvo"
    board: int = key(4, 1, 32)
    ships: list[int] = key([4, 2], 1, 32)
    shots: int = key(2, 1, 1024)


@dataclass
class SalvoDuelConfig:
    name: str = "salvo_duel"
    board: int = key(5, 1, 32)
    ships: list[int] = key([3, 2, 2], 1, 32)


@dataclass
class TictactoeConfig:
    name: str = "tictactoe"
    board: int = key(3, 1, 7)
    line: int = key(3, 1, 7)


@dataclass
class Connect4Config:
    name: str = "connect4"
    rows: int = key(6, 1, 61)
    columns: int = key(7, 1, 31)
    line: int = key(4, 1, 61)


@dataclass
class GomokuConfig:
    name: str = "gomoku"
    board: int = key(15, 1, 19)
    line: int = key(5, 1, 19)


@dataclass
class OthelloConfig:
    name: str = "othello"
    board: int = key(8, 2, 8)


@dataclass
class HexConfig:
    name: str = "hex"
    board: int = key(11, 2, 11)
    swap: bool = True


@dataclass
class BreakthroughConfig:
    name: str = "breakthrough"
    rows: int = key(8, 3, 16)
    columns: int = key(8, 2, 16)
    home_rows: int = key(2, 1, 8)


@dataclass
class Game2048Config:
    name: str = "2048"
    board: int = key(4, 1, 8)
    columns: int = key(4, 1, 8)
    fours: float = key(0.1, 0, 1)
    target: int = key(2048, 4, 2**62)
    encoding: str = key("onehot", of=("onehot", "exponents"))


GAMES = {
    "battleship": Part(
        BattleshipConfig, "rlgames.games.battleship:battleship", gym_id="Battleship"
    ),
    "salvo": Part(SalvoConfig, "rlgames.games.battleship:salvo", gym_id="Salvo"),
    "salvo_duel": Part(SalvoDuelConfig, "rlgames.games.salvo_duel:salvo_duel", gym_id="SalvoDuel"),
    "tictactoe": Part(TictactoeConfig, "rlgames.games.k_in_a_row:tictactoe", gym_id="TicTacToe"),
    "connect4": Part(Connect4Config, "rlgames.games.k_in_a_row:connect4", gym_id="Connect4"),
    "gomoku": Part(GomokuConfig, "rlgames.games.k_in_a_row:gomoku", gym_id="Gomoku"),
    "othello": Part(OthelloConfig, "rlgames.games.othello:othello", gym_id="Othello"),
    "hex": Part(HexConfig, "rlgames.games.hex:hex_game", gym_id="Hex"),
    "breakthrough": Part(
        BreakthroughConfig, "rlgames.games.breakthrough:breakthrough", gym_id="Breakthrough"
    ),
    "2048": Part(Game2048Config, "rlgames.games.game_2048:game_2048", gym_id="2048"),
}
