"""The games as environments of Gymnasium, which this module registers, and of PettingZoo.

`gymnasium.make("rlgames/Salvo-v0", board=4, shots=2)` after `import rlgames.envs`.
"""

import gymnasium

NAMES = {
    "Battleship": "battleship",
    "Salvo": "salvo",
    "2048": "2048",
    "TicTacToe": "tictactoe",
    "Connect4": "connect4",
    "SalvoDuel": "salvo_duel",
}

PLACE = f"{__name__}.gymnasium_env"

for name, game in {**NAMES, "Game": None}.items():  # Game-v0 is told its game, maybe one's own
    gymnasium.register(
        f"rlgames/{name}-v0",
        entry_point=f"{PLACE}:GameEnv",
        vector_entry_point=f"{PLACE}:GameVectorEnv",
        kwargs={} if game is None else {"game": game},
    )
