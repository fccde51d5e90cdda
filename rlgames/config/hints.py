"""Errors for unknown commands, flags, keys and options, with the nearest name here.

Names are compared without regard to case, dashes and underscores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlgames.core.errors import ConfigError, UnknownOption, closest, nearest

COMMAND_SYNONYMS = {
    "train": "learn fit run",
    "train -m": "sweep tune optimize hpo hyperopt search",
    "resume": "continue restart extend",
    "eval": "evaluate test benchmark",
    "analyze": "analyse mistakes",
    "play": "human",
    "watch": "render replay view enjoy",
    "show": "position board advise",
    "serve": "web ui gui browser server",
    "arena": "tournament elo league match",
    "solve": "optimum optimal exact",
    "report": "runs ls compare plot results history",
    "study": "experiment paper reproduce",
    "games": "list envs environments agents presets",
}
"""What a person or another program calls a command, by how it is typed here."""

FLAG_SYNONYMS = {
    "-m": "sweep grid",
    "--cfg job": "dry_run show_config print_config",
    "--config-dir": "config_folder config_dirs",
    "--config-name": "config_file",
}
"""The same of a flag, without its dashes."""

KEY_SYNONYMS = {
    "reward.discount": "gamma discount_factor",
    "games": "episodes num_episodes steps timesteps total_timesteps total_steps iterations",
    "batch": "num_envs n_envs batch_size train_batch_size",
    "window": "n_steps num_steps rollout_fragment_length",
    "lr": "learning_rate alpha",
    "learner.lr_end": "final_lr lr_schedule anneal_lr",
    "learner.entropy_coef": "ent_coef entropy_coeff entropy_bonus",
    "learner.value_coef": "vf_coef vf_loss_coeff critic_coef",
    "learner.clip_range": "clip clip_coef clip_param clip_epsilon",
    "learner.max_grad_norm": "grad_clip max_norm",
    "learner.gae_lambda": "lam lambda lmbda",
    "learner.td_lambda": "lam lambda lmbda",
    "learner.epochs": "n_epochs num_epochs update_epochs num_sgd_iter",
    "learner.num_minibatches": "n_minibatches minibatches",
    "learner.minibatch_size": "sgd_minibatch_size",
    "learner.buffer_size": "replay_buffer_size memory_size",
    "learner.polyak_tau": "tau polyak",
    "learner.updates_per_batch": "gradient_steps utd_ratio",
    "learner.target_every": "target_update_interval target_network_frequency",
    "sampling.epsilon": "eps start_e exploration_initial_eps",
    "sampling.epsilon_end": "end_e exploration_final_eps",
    "policy.layers": "hidden_sizes hidden_dim net_arch num_cells units",
    "policy.channels": "num_filters conv_filters",
    "policy": "model network actor",
    "learner": "algo algorithm agent trainer",
    "game": "env env_id task",
    "board": "size board_size",
    "rows": "height",
    "columns": "width",
    "search.simulations": "num_simulations num_rollouts",
    "search.c_puct": "cpuct uct_c pb_c_init",
    "search.dirichlet_fraction": "noise_epsilon root_exploration_fraction",
    "eval_every": "eval_freq eval_interval",
    "eval_games": "n_eval_episodes eval_episodes",
    "save_every": "save_freq checkpoint_freq",
    "log_every": "log_interval log_freq",
    "init_from": "load load_path pretrained resume_from",
    "out": "output_dir save_dir log_dir run_dir exp_name",
    "device": "cuda gpu accelerator",
    "engine.actors": "num_env_runners num_rollout_workers",
    "logger": "track use_wandb wandb",
}
"""What Stable-Baselines3, CleanRL, RLlib and OpenSpiel call a key, by its name here."""


def unknown_command(name: str, commands: Sequence[str]) -> ConfigError:
    """The error for a command that is none of these."""
    meant = _synonym(name, COMMAND_SYNONYMS)
    hint = f"did you mean {meant}?" if meant else nearest(name, commands)
    return ConfigError(f"no command is called {name!r}", hint)


def unknown_flag(flag: str, flags: Sequence[str], keys: Sequence[str]) -> ConfigError:
    """The error for a flag that is none of these; keys: of the command."""
    name = flag.lstrip("-")
    key = _synonym(name, {each: _names(each) for each in keys})
    meant = None if key else _synonym(name, FLAG_SYNONYMS) or closest(flag, flags)
    hint = "--help lists the keys, as in key=value"
    if key or meant:
        hint = f"use {key.removeprefix('game.')}=VALUE" if key else f"did you mean {meant}?"
    return ConfigError(f"{flag} is not a flag", hint)


def unknown_key(name: str, names: Sequence[str], hint: str = "") -> ConfigError:
    """The error for a key, as it is typed, that is none of these. hint: what to say if no name is
    near."""
    error = f"no key is called {name!r} here"
    group, _, last = name.rpartition(".")
    if group and last in names:
        return ConfigError(error, f"use {last}=")
    meant = _synonym(last, {key: _names(key) for key in names})
    of_group = [key.removeprefix(f"{group}.") for key in names if key.startswith(f"{group}.")]
    if meant is None and of_group:
        near = closest(last, of_group)
        meant, hint = near and f"{group}.{near}", f"{group} has {', '.join(sorted(of_group))}"
    elif meant is None and group in names:
        return ConfigError(error, f"write {last}: below {group}:")
    elif meant is None:
        last_parts = {each.rpartition(".")[2]: each for each in reversed(names)}
        near = closest(name, [*names, *last_parts])
        meant = near and last_parts.get(near, near)
    return ConfigError(error, f"did you mean {meant}?" if meant else hint or nearest("", names))


def unknown_option(group: str, name: str, names: Sequence[str]) -> UnknownOption:
    """The error for an option of a group that is none of these."""
    same = [each for each in names if _plain(each) == _plain(name)]
    hint = f"did you mean {same[0]}?" if same else nearest(name, names)
    return UnknownOption(f"no {group} is called {name!r}", hint)


def _names(key: str) -> str:
    """What a key is called, here and elsewhere."""
    return f"{key} {key.rpartition('.')[2]} {KEY_SYNONYMS.get(key, '')}"


def _synonym(word: str, synonyms: Mapping[str, str]) -> str | None:
    """The first name that has a word among its synonyms, which spaces separate."""
    plain = _plain(word)
    return next((key for key, of in synonyms.items() if plain in map(_plain, of.split())), None)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
