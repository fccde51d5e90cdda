"""Tree search of mctx on pgx's games with a fully connected network, as in pgx's AlphaZero example.

Each move is one compiled call: the search, and the move that it chose; finished games are reset.
"""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from bench_peer_pgx import NAMES
from bench_tools import serve

LAYERS = (512, 256)


@cache
def compiled(game: str, trees: int, simulations: int) -> Callable[[], None]:
    """A function that makes one more move in each of `trees` games, already compiled."""
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    mctx: Any = importlib.import_module("mctx")
    pgx: Any = importlib.import_module("pgx")
    auto_reset = importlib.import_module("pgx.experimental").auto_reset
    env = pgx.make(NAMES[game])
    step, reset_step = jax.vmap(env.step), jax.vmap(auto_reset(env.step, env.init))
    key = jax.random.key(0)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, trees))
    widths = (state.observation[0].size, *LAYERS, env.num_actions + 1)
    init = jax.nn.initializers.he_normal()
    weights = [
        (init(jax.random.fold_in(key, layer), size), jnp.zeros(size[1]))
        for layer, size in enumerate(itertools.pairwise(widths))
    ]
    sign = 1.0 if env.num_players == 1 else -1.0

    def evaluate(weights: Any, state: Any) -> tuple[Any, Any]:
        x = state.observation.reshape(trees, -1).astype(jnp.float32)
        for matrix, bias in weights[:-1]:
            x = jax.nn.relu(x @ matrix + bias)
        x = x @ weights[-1][0] + weights[-1][1]
        return jnp.where(state.legal_action_mask, x[:, :-1], -1e9), jnp.tanh(x[:, -1])

    def recurrent(weights: Any, key: Any, action: Any, state: Any) -> tuple[Any, Any]:
        seat = state.current_player
        state = step(state, action, jax.random.split(key, trees))
        logits, value = evaluate(weights, state)
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(trees), seat],
            discount=jnp.where(state.terminated, 0.0, sign),
            prior_logits=logits,
            value=jnp.where(state.terminated, 0.0, value),
        )
        return output, state

    def move(weights: Any, state: Any, key: Any) -> tuple[Any, Any]:
        key, own, chance = jax.random.split(key, 3)
        logits, value = evaluate(weights, state)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        found = mctx.muzero_policy(
            weights, own, root, recurrent, simulations, invalid_actions=~state.legal_action_mask
        )
        return reset_step(state, found.action, jax.random.split(chance, trees)), key

    run = jax.jit(move)

    def go_on() -> None:
        nonlocal state, key
        state, key = run(weights, state, key)
        jax.block_until_ready(state)

    go_on()
    return go_on


def answer(game: str, trees: int, simulations: int, seconds: float) -> dict[str, Any]:
    """Simulations per second over about so many seconds."""
    go_on = compiled(game, trees, simulations)
    start, moves, elapsed, cpu = time.perf_counter(), 0, 0.0, time.process_time()
    while elapsed < seconds:
        go_on()
        moves, elapsed = moves + 1, time.perf_counter() - start
    work = trees * simulations * moves
    return {"speed": work / elapsed, "per_cpu_second": work / (time.process_time() - cpu)}


if __name__ == "__main__":
    if os.environ["OMP_NUM_THREADS"] == "1":  # XLA takes as many threads as there are cores
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    serve(answer)
