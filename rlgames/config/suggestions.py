"""Errors for unknown keys, options and values, with the nearest name here.

What Stable-Baselines3, CleanRL, RLlib, TorchRL and OpenSpiel call a key or an option is answered
with its name here. Names are compared without regard to case, dashes and underscores.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence

from rlgames.core.errors import ConfigError, UnknownOption, nearest

KEY_SYNONYMS = """
reward.discount: gamma discount discount_factor
games: episodes num_episodes n_episodes total_episodes
batch: num_envs n_envs num_games
window: n_steps num_steps rollout_fragment_length
lr: learning_rate alpha step_size optim_lr
learner.lr_end: final_lr
learner.entropy_coef: entropy_coef ent_coef entropy_coeff entropy_cost entropy_bonus
learner.value_coef: vf_coef vf_coeff vf_loss_coeff critic_coef critic_coeff value_coef
    value_loss_coef
learner.clip_range: clip clip_range clip_coef clip_param clip_epsilon clip_eps
learner.max_grad_norm: max_grad_norm grad_clip grad_clipping clip_grad_norm max_norm
learner.gae_lambda: gae_lambda gae_lam lambda lambda_ lmbda lam
learner.td_lambda: td_lambda lambda lambda_ lmbda lam
learner.epochs: n_epochs num_epochs update_epochs ppo_epochs num_sgd_iter epochs
learner.num_minibatches: num_minibatches n_minibatches minibatches nminibatches
learner.minibatch_size: minibatch minibatch_size sgd_minibatch_size mini_batch_size
learner.buffer_size: buffer_size replay_buffer_size replay_buffer_capacity memory_size
learner.polyak_tau: tau polyak polyak_tau soft_update_tau
learner.updates_per_batch: gradient_steps updates_per_batch
learner.n_step: n_step nstep n_step_returns
learner.optimizer: optimizer optim optimizer_class
learner.baseline: baseline
sampling.epsilon: epsilon eps exploration_initial_eps start_e initial_epsilon
sampling.epsilon_end: exploration_final_eps end_e final_epsilon
sampling.temperature: temperature
policy.layers: layers hidden_sizes hidden_dim hidden_size num_cells net_arch fcnet_hiddens
    mlp_units hidden hidden_layers units
policy.channels: channels num_filters conv_filters
policy.activation: activation activation_fn fcnet_activation
policy: model network net architecture actor
learner: algo algorithm agent trainer
game: env env_id env_name gym_id environment task
opponent: adversary rival
board: size board_size
rows: height num_rows
columns: width num_columns
search.simulations: simulations num_simulations max_simulations n_simulations rollout_count
    num_rollouts
search.c_puct: c_puct
search.dirichlet_fraction: noise_epsilon root_exploration_fraction dirichlet_epsilon
search.max_num_considered_actions: max_considered_actions num_considered_actions
search.c_visit: maxvisit_init
eval_every: eval_freq eval_interval evaluation_interval eval_frequency
eval_games: n_eval_episodes eval_episodes evaluation_duration num_eval_episodes
save_every: save_freq save_interval checkpoint_freq checkpoint_frequency checkpoint_every
log_every: log_interval log_freq logging_interval
init_from: load load_path pretrained warm_start
checkpoint: ckpt load_best
out: output output_dir save_dir save_path log_dir logdir run_dir exp_name experiment_name
    tensorboard_log
threads: num_threads n_cpu
engine.actors: actors num_actors num_env_runners num_rollout_workers
engine.address: address ray_address
device: cuda gpu use_cuda accelerator
games (it counts games, not moves): steps timesteps total_timesteps total_steps num_timesteps
    max_steps total_frames
games (it counts games, not batches): num_iterations iterations
batch (it counts the games between two updates; learner.minibatch_size or
    learner.num_minibatches divides them): batch_size
batch (it counts games, not moves): train_batch_size frames_per_batch
learner.num_minibatches (it is the number of minibatches, not their size): minibatch_size
    sgd_minibatch_size mini_batch_size
learner.lr_end (learner.lr_end=0 decays to 0 linearly): lr_schedule anneal_lr
learner.target_every (it counts gradient steps): target_update_interval target_network_frequency
    target_network_update_freq
learner.updates_per_batch (it counts gradient steps per batch of games): utd_ratio
search.c_puct (values are 0 to 1 here, not -1 to 1): cpuct uct_c puct_c pb_c_init
search.dirichlet_total (it is alpha times the number of legal actions): dirichlet_alpha
    root_dirichlet_alpha
init_from (it takes the weights alone; rlgames resume RUN resumes a run): resume_from restore
    resume checkpoint
logger (as in logger=wandb): track use_wandb wandb
schedule_games (sampling.epsilon decays over these games, by default all): exploration_fraction
threads (a sweep runs jobs in parallel with hydra/launcher=joblib): num_workers n_jobs
"""
"""A key here, how it differs in parentheses, and names for the same or a similar thing."""

OPTION_SYNONYMS = """
learner=ppo: ppo2 appo ppo_clip actor_critic a2c a3c advantage_actor_critic
learner=reinforce: pg vpg policy_gradient
learner=dqn: ddqn double_dqn q_learning qlearning
learner=td: td0 tabular temporal_difference
learner=alphazero: az expert_iteration exit
learner=behavior_cloning: bc dagger cloning imitation behaviour_cloning
policy=mlp: mlp_policy fc fcnet dense
policy=conv: cnn cnn_policy convnet resnet
policy=table: tabular lookup
policy=ntuple: ntuple_network
sampling=argmax: greedy deterministic max
sampling=stochastic: softmax boltzmann sample categorical
sampling=epsilon_greedy: egreedy eps_greedy
search=mcts: alphazero_mcts puct uct tree_search
search=expectimax: expectiminimax
search=alphabeta: minimax negamax
game=tictactoe: ttt noughts_and_crosses
game=connect4: connect_four four_in_a_row
game=othello: reversi
game=gomoku: five_in_a_row gobang
game=battleship: battleships
game=2048: twenty_forty_eight game_2048
player=exact: optimal perfect minimax solver alphabeta
player=self: selfplay self_play
player=past: league fictitious
player=human: me person player
reward=outcome: win_loss result
reward=score: points
"""
"""An option here, and other names for it."""


def unknown_key(
    name: str,
    names: Sequence[str],
    hint: str = "",
    options_with: Callable[[str], Sequence[str]] = lambda key: (),
) -> ConfigError:
    """The error for a key, as it is typed, that is none of these.

    Args:
        hint: what to say if no name is near.
        options_with: the options of its group that have a key, as in group=option.
    """
    error = f"no key is called {name!r} here"
    if hint_for_name := _hint_for_synonym(name, names, options_with):
        return ConfigError(error, hint_for_name)
    group, _, last = name.rpartition(".")
    known = {part for key in names for part in (key, key.rpartition(".")[2])}
    others = [word for *_, words in key_synonyms() for word in words]
    if group and last in names:
        return ConfigError(error, f"use {last}=")
    for word in difflib.get_close_matches(last.lower(), [*known, *others], 1, 0.8):
        if word not in known and (hint_for_word := _hint_for_synonym(word, names, options_with)):
            return ConfigError(error, f"did you mean {word}? {hint_for_word}")
    if of_group := [key.removeprefix(f"{group}.") for key in names if key.startswith(f"{group}.")]:
        suggestion = nearest(last, of_group).replace("mean ", f"mean {group}.")
        return ConfigError(error, suggestion.replace("available", f"{group} has"))
    suggestion = nearest(name, list(names))
    if hint and not suggestion.startswith("did you mean"):
        suggestion = hint
    return ConfigError(error, suggestion)


def _hint_for_synonym(
    name: str, names: Sequence[str], options_with: Callable[[str], Sequence[str]]
) -> str:
    """The key for what another library calls by a name, or the options that have it; "" if none."""
    for key, note in _synonyms(name):
        if key in names and key != name:
            return f"use {key}=" + (f"; {note}" if note else "")
    for key in [name, *(key for key, _ in _synonyms(name))]:
        if options := options_with(key):
            return f"{key} is a key of {' or '.join(options)}"
    return ""


def unknown_option(group: str, folder: str, name: str, names: Sequence[str]) -> UnknownOption:
    """The error for an option of a group that is none of these."""
    synonym = option_synonym(folder, name, names)
    hint = f"use {group}={synonym}" if synonym else nearest(name, list(names))
    return UnknownOption(f"no {group} is called {name!r}", hint)


def option_synonym(folder: str, name: str, names: Sequence[str]) -> str | None:
    """The one of these options that another library calls by this name; None for any other name."""
    others = [
        option.partition("=")[2]
        for option, words in option_synonyms()
        if option.startswith(f"{folder}=") and _plain(name) in map(_plain, words)
    ]
    same = [each for each in names if _plain(each) == _plain(name)]
    return next((each for each in [*same, *others] if each in names), None)


def key_synonyms() -> Iterator[tuple[str, str, list[str]]]:
    """Each key here, how it differs or "", and what other libraries call it."""
    for line in _lines(KEY_SYNONYMS):
        match = re.fullmatch(r"(\S+?)(?: \((.*)\))?: (.*)", line)
        if match:
            yield match[1], match[2] or "", match[3].split()


def option_synonyms() -> Iterator[tuple[str, list[str]]]:
    """Each option here, as group=option, and what other libraries call it."""
    for line in _lines(OPTION_SYNONYMS):
        option, _, names = line.partition(": ")
        yield option, names.split()


def _synonyms(name: str) -> Iterator[tuple[str, str]]:
    """The keys here for what another library calls by a name, each with how it differs."""
    plain = _plain(name.rpartition(".")[2])
    for key, note, names in key_synonyms():
        if plain in map(_plain, names):
            yield key, note


def _lines(table: str) -> list[str]:
    return table.strip().replace("\n    ", " ").splitlines()


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
