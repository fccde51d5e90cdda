"""The games as environments of Gymnasium, registered by this module, and of PettingZoo.

`gymnasium.make("rlgames/Salvo-v0", board=4, shots=2)` after `import rlgames.envs`.
"""

import gymnasium

from rlgames.config.registry import REGISTRY

IDS = {part.gym_id: name for name, part in REGISTRY["game"].items() if part.gym_id}
"""By the name in a Gymnasium id: the game."""

MODULE = f"{__name__}.gymnasium_env"

for name, game in {**IDS, "Game": None}.items():  # Game-v0 takes game=NAME, also of a plugin
    gymnasium.register(
        f"rlgames/{name}-v0",
        entry_point=f"{MODULE}:GameEnv",
        vector_entry_point=f"{MODULE}:GameVectorEnv",
        kwargs={} if game is None else {"game": game},
    )
