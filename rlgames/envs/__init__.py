"""The games as environments of Gymnasium, registered by this module, and of PettingZoo.

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

MODULE = f"{__name__}.gymnasium_env"

for name, game in {**NAMES, "Game": None}.items():  # Game-v0 takes game=NAME, also of a plugin
    gymnasium.register(
        f"rlgames/{name}-v0",
        entry_point=f"{MODULE}:GameEnv",
        vector_entry_point=f"{MODULE}:GameVectorEnv",
        kwargs={} if game is None else {"game": game},
    )
