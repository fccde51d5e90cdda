"""The games of pgx: legal play as one compiled scan over many steps, and tree search of mctx around
a network, as in pgx's AlphaZero example. Finished games are reset.

Every step of play computes the observations and adds them up, or the compiler would leave them out.
A move of the search is one compiled call: the search, and the move that it chose.
"""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from bench_tools import serve

NAMES = {
    "tictactoe": "tic_tac_toe",
    "connect4": "connect_four",
    "2048": "2048",
    "othello": "othello",
    "hex": "hex",
}

HAS_ONE_CORE = os.environ["OMP_NUM_THREADS"] == "1"


@cache
def environment(game: str) -> tuple[Any, Any]:
    """A game, and a step in a batch of it that begins a new game after the last move of one."""
    jax: Any = importlib.import_module("jax")
    env = importlib.import_module("pgx").make(NAMES[game])
    auto_reset = importlib.import_module("pgx.experimental").auto_reset
    return env, jax.vmap(auto_reset(env.step, env.init))


def network(env: Any, key: Any, state: Any, *layers: int) -> tuple[Any, Callable[..., Any]]:
    """The weights of a network of such layers, and a function of them and positions that returns
    logits, which exclude illegal moves, and values."""
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    widths = (state.observation[0].size, *layers, env.num_actions + 1)
    init = jax.nn.initializers.he_normal()
    weights = [
        (init(jax.random.fold_in(key, layer), size), jnp.zeros(size[1]))
        for layer, size in enumerate(itertools.pairwise(widths))
    ]

    def evaluate(weights: Any, state: Any) -> tuple[Any, Any]:
        x = state.observation.reshape(len(state.observation), -1).astype(jnp.float32)
        for matrix, bias in weights[:-1]:
            x = jax.nn.relu(x @ matrix + bias)
        x = x @ weights[-1][0] + weights[-1][1]
        return jnp.where(state.legal_action_mask, x[:, :-1], -1e9), jnp.tanh(x[:, -1])

    return weights, evaluate


@cache
def playing(game: str, batch: int, steps: int, has_network: bool) -> Callable[[], None]:
    """A function that plays `steps` more steps of one batch, already compiled by one call.

    Random numbers are those of JAX that cost least; 2048 draws chance game by game, which is slow
    with unsafe_rbg. At random, one of them a move is drawn, for the n-th legal one. has_network:
    two layers of 128 give logits, of which the log-probabilities are computed, and a value.
    """
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    env, step = environment(game)
    key = jax.random.key(0, impl="threefry2x32" if game == "2048" else "unsafe_rbg")
    begun = jax.jit(jax.vmap(env.init))(jax.random.split(key, batch))
    weights, evaluate = network(env, key, begun, 128, 128)

    def choose(key: Any, state: Any) -> Any:
        """The actions, and what has to be computed."""
        if has_network:
            logits, value = evaluate(weights, state)
            logits = jax.nn.log_softmax(logits, axis=-1)
            action = jax.random.categorical(key, logits, axis=-1)
            chosen = jnp.take_along_axis(logits, action[:, None], axis=1)
            return action, chosen.sum() + value.sum()
        count = jnp.cumsum(state.legal_action_mask, axis=1)
        rank = jnp.floor(jax.random.uniform(key, (batch,)) * count[:, -1])
        return jnp.argmax(count > rank[:, None], axis=1), state.observation.sum()

    def one(carry: Any, _: None) -> Any:
        state, key = carry
        key, own, chance = jax.random.split(key, 3)
        action, seen = choose(own, state)
        return (step(state, action, jax.random.split(chance, batch)), key), seen

    run = jax.jit(lambda carry: jax.lax.scan(one, carry, None, length=steps))
    carry = begun, key

    def go_on() -> None:
        nonlocal carry
        carry, seen = run(carry)
        jax.block_until_ready((carry, seen))

    go_on()
    return go_on


@cache
def searching(game: str, trees: int, simulations: int) -> Callable[[], None]:
    """A function that makes one more move in each of `trees` games, already compiled."""
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    mctx: Any = importlib.import_module("mctx")
    env, reset_step = environment(game)
    step, key = jax.vmap(env.step), jax.random.key(0)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, trees))
    weights, evaluate = network(env, key, state, 512, 256)
    sign = 1.0 if env.num_players == 1 else -1.0

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


def play_speed(game: str, batch: int, moves: int, network: bool) -> float:
    """Moves per second over about `moves` moves, of CPU time on one core, else by the clock; all
    rows are live, and all their moves legal."""
    steps = max(16, moves // batch)
    go_on = playing(game, batch, steps, network)
    clock = time.process_time if HAS_ONE_CORE else time.perf_counter
    start = clock()
    go_on()
    return batch * steps / (clock() - start)


def search_speed(game: str, trees: int, simulations: int, seconds: float) -> float:
    """Simulations per second of processor time over about so many seconds."""
    go_on = searching(game, trees, simulations)
    start, moves = time.process_time(), 0
    while time.process_time() - start < seconds:
        go_on()
        moves += 1
    return trees * simulations * moves / (time.process_time() - start)


def answer(**words: Any) -> dict[str, float]:
    """The speed of a search, or of play."""
    return {"speed": search_speed(**words) if "trees" in words else play_speed(**words)}


if __name__ == "__main__":
    if HAS_ONE_CORE:  # XLA takes as many threads as there are cores
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    serve(answer)
