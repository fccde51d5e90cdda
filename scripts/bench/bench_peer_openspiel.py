"""OpenSpiel: random play of whole games, one after another, and tree search with random playouts.

No observations are computed, as its bots need none.
"""

from __future__ import annotations

import importlib
import random
import time
from typing import Any

from bench_tools import serve

SHIPS = "ship_sizes=[2;3;3;4;5],ship_values=[1;1;1;1;1],num_shots=100"
FLEET = f"board_width=10,board_height=10,{SHIPS}"
NAMES = {
    "tictactoe": "tic_tac_toe",
    "connect4": "connect_four",
    "2048": "2048",
    "battleship": f"battleship({FLEET},allow_repeated_shots=false)",
    "battleship, shots repeated": f"battleship({FLEET},allow_repeated_shots=true)",
    "othello": "othello",
    "hex": "hex(board_size=11)",
    "breakthrough": "breakthrough(rows=6,columns=6)",
}


def answer(game: str, how: str, seconds: float) -> dict[str, Any]:
    """Moves a second, all of the game's, the placing of ships among them; chance is none.

    how: "bots", in C++, or "python", a loop over the legal actions; or "search", simulations per
    second of processor time, by its bot in C++. OpenSpiel's bots refuse games
    without observation tensors, which come as an error.
    """
    pyspiel: Any = importlib.import_module("pyspiel")
    rules = pyspiel.load_game(NAMES[game])
    if how == "search":
        return {"speed": searched(pyspiel, rules, seconds)}
    seats = range(rules.num_players())
    bots = [pyspiel.make_uniform_random_bot(seat, seat + 1) for seat in seats]
    start, moves, games = time.perf_counter(), 0, 0
    while (spent := time.perf_counter() - start) < seconds:
        state = rules.new_initial_state()
        if how == "bots":
            pyspiel.evaluate_bots(state, bots, games)
        else:
            by_hand(state)
        # In 2048 chance comes twice first, and then after every move.
        moves += state.move_number() // 2 - 1 if game == "2048" else state.move_number()
        games += 1
    return {"speed": moves / spent}


def searched(pyspiel: Any, rules: Any, seconds: float) -> float:
    """Its search of 1,000 simulations at the start of the game."""
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    bot = pyspiel.MCTSBot(rules, evaluator, 2.0, 1000, 100, False, 1, False)
    start, searches = time.process_time(), 0
    while time.process_time() - start < seconds:
        bot.step(rules.new_initial_state())
        searches += 1
    return 1000 * searches / (time.process_time() - start)


def by_hand(state: Any) -> None:
    while not state.is_terminal():
        if state.is_chance_node():
            actions, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(random.choices(actions, weights)[0])
        else:
            state.apply_action(random.choice(state.legal_actions()))


if __name__ == "__main__":
    serve(answer)
