"""Random legal play in torchrl's tic-tac-toe in one batch; finished games are reset."""

from __future__ import annotations

import importlib
import time
from typing import Any

from bench_tools import serve


def answer(game: str, batch: int, moves: int, threads: int) -> dict[str, Any]:
    """Moves per second over about `moves` moves; the board is the observation, so it is free."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(threads)
    tensordict = importlib.import_module("tensordict").TensorDict
    env: Any = importlib.import_module("torchrl.envs").TicTacToeEnv()
    torch.manual_seed(0)
    steps = max(16, moves // batch)
    with torch.no_grad():
        state = env.reset(tensordict(batch_size=[batch]))
        for step in range(steps + 4):
            if step == 4:
                start = time.perf_counter()
            _, state = env.step_and_maybe_reset(env.rand_action(state))
    return {"speed": batch * steps / (time.perf_counter() - start)}


if __name__ == "__main__":
    serve(answer)
