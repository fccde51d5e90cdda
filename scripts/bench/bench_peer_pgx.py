"""Legal play in pgx as one compiled scan over many steps; finished games are reset.

Every step computes the observations and adds them up, or the compiler would leave them out.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from bench_tools import serve

NAMES = {
    "tictactoe": "tic_tac_toe",
    "connect4": "connect_four",
    "2048": "2048",
    "othello": "othello",
    "hex": "hex",
}


@cache
def compiled(
    game: str, batch: int, steps: int, numbers: str, nth: bool, network: bool
) -> Callable[[], None]:
    """A function that plays `steps` more steps of one batch, already compiled by one call.

    numbers: JAX's name of a kind of random numbers, "threefry2x32", its default, or "unsafe_rbg",
    the cheapest. nth: one of them a move is drawn, for the n-th legal one; otherwise `categorical`
    chooses among all actions, as in the examples of pgx. network: two layers of 128 give the logits
    and a value; the log-probabilities are computed, too.
    """
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    pgx: Any = importlib.import_module("pgx")
    auto_reset = importlib.import_module("pgx.experimental").auto_reset
    env = pgx.make(NAMES[game])
    step = jax.vmap(auto_reset(env.step, env.init))

    key = jax.random.key(0, impl=numbers)
    observed, actions = int(np.prod(env.observation_shape)), env.num_actions
    sizes = [observed, 128, 128, actions + 1]
    weights = [
        jax.random.normal(k, (rows, columns)) / rows**0.5
        for k, rows, columns in zip(jax.random.split(key, 3), sizes, sizes[1:], strict=False)
    ]

    def evaluate(key: Any, state: Any) -> Any:
        """The actions of a network, and what a learner needs of them."""
        hidden = state.observation.reshape(batch, observed).astype(jnp.float32)
        for layer in weights[:-1]:
            hidden = jax.nn.relu(hidden @ layer)
        outputs = hidden @ weights[-1]
        logits = jax.nn.log_softmax(
            jnp.where(state.legal_action_mask, outputs[:, :actions], -1e9), axis=-1
        )
        action = jax.random.categorical(key, logits, axis=-1)
        return action, jnp.take_along_axis(logits, action[:, None], axis=1).sum() + outputs[
            :, -1
        ].sum()

    def choose(key: Any, legal: Any) -> Any:
        if not nth:
            return jax.random.categorical(key, jnp.where(legal, 0.0, -1e9), axis=-1)
        count = jnp.cumsum(legal, axis=1)
        rank = jnp.floor(jax.random.uniform(key, (batch,)) * count[:, -1])
        return jnp.argmax(count > rank[:, None], axis=1)

    def one(carry: Any, _: None) -> Any:
        state, key = carry
        key, own, chance = jax.random.split(key, 3)
        if network:
            action, seen = evaluate(own, state)
        else:
            action, seen = choose(own, state.legal_action_mask), state.observation.sum()
        state = step(state, action, jax.random.split(chance, batch))
        return (state, key), seen

    run = jax.jit(lambda carry: jax.lax.scan(one, carry, None, length=steps))
    carry = jax.jit(jax.vmap(env.init))(jax.random.split(key, batch)), key

    def go_on() -> None:
        nonlocal carry
        carry, seen = run(carry)
        jax.block_until_ready((carry, seen))

    go_on()
    return go_on


def answer(
    game: str, batch: int, moves: int, numbers: str, nth: bool, network: bool
) -> dict[str, Any]:
    """Moves per second over about `moves` moves; all rows are live, and all their moves legal."""
    steps = max(16, moves // batch)
    go_on = compiled(game, batch, steps, numbers, nth, network)
    start = time.perf_counter()
    go_on()
    return {"speed": batch * steps / (time.perf_counter() - start)}


if __name__ == "__main__":
    serve(answer)
