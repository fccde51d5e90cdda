"""Random legal play of whole games through the play loop, in moves a second.

Observations are worked out at every move, as a network would need them. Medians of several rounds,
the games in turn, one thread.
"""

from __future__ import annotations

import statistics
import sys

import rlgames

ROUNDS = 5
BATCH = 4096
GAMES = {
    "tictactoe": ["game=tictactoe", "games=500000"],
    "connect4": ["game=connect4", "games=200000"],
    "2048": ["game=2048", "games=20000"],
    "salvo 4x4": ["game=salvo", "shots=1", "games=200000"],
    "salvo 10x10": ["game=salvo", "board=10", "ships=[5,4,3,3,2]", "shots=1", "games=20000"],
    "salvo_duel 5x5": ["game=salvo_duel", "games=50000"],
}


def main() -> None:
    words = ["player=random", "player.observe=true", f"batch={BATCH}", "solve_seconds=0"]
    chosen = {name: GAMES[name] for name in sys.argv[1:]} or GAMES
    found: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(ROUNDS):
        for name, game in chosen.items():
            found[name].append(rlgames.evaluate(None, [*words, *game])["moves_per_s"])
    print(f"random play, observations worked out, batch {BATCH}: million moves a second")
    for name, speeds in found.items():
        low, middle, high = min(speeds), statistics.median(speeds), max(speeds)
        print(f"  {name:16}{middle / 1e6:7.2f}  ({low / 1e6:.2f} to {high / 1e6:.2f})")


if __name__ == "__main__":
    main()
