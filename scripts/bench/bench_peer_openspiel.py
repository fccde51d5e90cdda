"""OpenSpiel's tree search with random playouts."""

from __future__ import annotations

import importlib
import time
from typing import Any

from bench_tools import serve

NAMES = {
    "tictactoe": "tic_tac_toe",
    "connect4": "connect_four",
    "othello": "othello",
    "hex": "hex(board_size=11)",
    "breakthrough": "breakthrough(rows=6,columns=6)",
}


def answer(game: str, seconds: float) -> dict[str, Any]:
    """Simulations per second of CPU time: searches of 1,000 from the start of the game, in C++."""
    pyspiel: Any = importlib.import_module("pyspiel")
    rules = pyspiel.load_game(NAMES[game])
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    bot = pyspiel.MCTSBot(rules, evaluator, 2.0, 1000, 100, False, 1, False)
    start, searches = time.process_time(), 0
    while time.process_time() - start < seconds:
        bot.step(rules.new_initial_state())
        searches += 1
    return {"speed": 1000 * searches / (time.process_time() - start)}


if __name__ == "__main__":
    serve(answer)
