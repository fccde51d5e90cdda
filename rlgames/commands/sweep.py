"""`rlgames train -m` and `rlgames resume SWEEP`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from rlgames.commands.launch import chosen_directory, is_sweep_word
from rlgames.config.compose import Composition, JobComposer, load, load_config, split
from rlgames.config.files import OptionFiles
from rlgames.config.folders import split_folders
from rlgames.config.keys import typed_values
from rlgames.config.plugins import command_for_run
from rlgames.config.schema import as_typed, names_of
from rlgames.config.training import LaunchConfig, SweepConfig, TrainConfig
from rlgames.config.typed import to_plain
from rlgames.config.words import Grammar, check_hydra_word, is_hydra_word, key_of
from rlgames.core import progress
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs.directory import (
    NEW_FILES,
    SWEEP_FILES,
    DirectoryLock,
    claim_directory,
    lock_directory,
)
from rlgames.runs.files import as_text
from rlgames.runs.hyperparameters import MANIFEST
from rlgames.runs.names import located
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import MAX_BATCH_SIZE, OPTIONS, Job, Sweep
from rlgames.training.components import build_components

LAUNCHER_KEYS = ("hydra/launcher", "hydra.launcher.", MAX_BATCH_SIZE)
FIT_ALWAYS = ("seed", "lr", "out")
"""Keys whose values, each valid by itself, fit whatever the others are."""

MAX_NAME_BYTES = 255
"""The longest name of a directory."""

Watch = Callable[[Sweep], AbstractContextManager[object]]
"""Shows the progress of a sweep while its jobs run."""


def sweep_command(
    words: list[str],
    launch: LaunchConfig,
    watch: Watch,
    checking: AbstractContextManager[object],
) -> int:
    """Check all jobs, then run them; the exit code. launch: how the sweep starts. checking: shows
    the progress of the checks.

    Raises ConfigError before anything is written, and Interrupted.
    """
    folders, _ = split_folders(words)
    sweep_words, own, rest = _split(words)
    cfg = load_config(SweepConfig, sweep_words)
    launcher = [word for word in own if word.startswith(LAUNCHER_KEYS)]
    launchers.check_launcher(launcher)
    grammar = Grammar(TrainConfig, OptionFiles(folders), is_sweep=True)
    overrides = [grammar.plain(word) for word in rest if _is_override(word)]
    fixed = [*own, *(word for word in rest if not _is_override(word))]
    shared = load(TrainConfig, [*fixed, *_shared(grammar, overrides)], is_sweep=True)
    overrides = [*_params(shared, overrides), *overrides]
    overrides = [word for word in overrides if not word.startswith("out=")]
    sweep = Sweep(Path("outputs") / "sweeps" / "…", words, launcher)
    if cfg.hparams_search is not None:
        if shared.hydra_value("hydra.sweep.subdir") is not None:
            raise ConfigError("hydra.sweep.subdir= does not fit hparams_search=", "omit one")
        sweep.search = _search(cfg, grammar, fixed, overrides)
    elif cfg.objective is not None:
        raise ConfigError("objective= needs a search", "add hparams_search=tpe")
    else:
        with checking:
            sweep.jobs = _jobs(grammar.jobs(overrides), fixed)
        if not sweep.jobs:
            ranges = " ".join(word for word in overrides if grammar.is_range(word))
            raise ConfigError(f"{ranges} has no values", "as in seed=range(5)")
        _check_different(sweep)
    named = chosen_directory(
        shared.config.out, shared.hydra_value("hydra.sweep.dir"), "hydra.sweep.dir"
    )
    if launch.dry_run:
        sweep.directory = Path(named) if named else sweep.directory
        return _print_plan(sweep)
    return _run(sweep, _create(sweep, named, launch.exist_ok), rest, watch)


def _jobs(words: Sequence[list[str]], fixed: list[str]) -> list[Job]:
    """The jobs of a sweep, checked; fixed: words that all have and that are not overrides."""
    composer, checked, jobs = JobComposer(fixed), set[str](), []
    for number, own in enumerate(words):
        composition = composer.load(own, number)
        config = located(composition.config)
        plain = to_plain(config)
        alike = as_text({name: plain[name] for name in plain if name not in FIT_ALWAYS})
        if alike not in checked:
            build_components(config)  # which checks that they fit together
            checked.add(alike)
        directory = _subdirectory(composition.hydra_value("hydra.sweep.subdir"))
        jobs.append(Job(own, plain, directory))
        progress.report((number + 1) / len(words))
    return jobs


def _search(
    cfg: SweepConfig, grammar: Grammar, fixed: list[str], overrides: list[str]
) -> dict[str, Any]:
    """The settings of a hyperparameter search, as the manifest stores them."""
    from rlgames.sweeps import hparam_search

    hparam_search.import_optuna()
    space = _space(cfg.hparams_search.space, overrides, grammar)
    base = [word for word in overrides if key_of(word) not in space]
    first = located(load(TrainConfig, [*fixed, *base], is_sweep=True).config)
    ranges = [*space.values()]
    return hparam_search.plan_search(cfg.hparams_search, ranges, cfg.objective, first)


def _params(shared: Composition[TrainConfig], overrides: Sequence[str]) -> list[str]:
    """The overrides in hydra.sweeper.params, without those that are typed."""
    params, typed = shared.hydra_value("hydra.sweeper.params") or {}, typed_values(overrides)
    return [f"{name}={as_typed(value)}" for name, value in params.items() if name not in typed]


def _shared(grammar: Grammar, overrides: Sequence[str]) -> list[str]:
    """The overrides that all jobs share, and that Hydra's own keys may refer to."""
    names = ("experiment", "game", "plugins", "out")
    shared = []
    for word in overrides:
        name = key_of(word)
        choices = grammar.choices(word) if name in names else []
        if name == "out" and len(choices) > 1:
            raise ConfigError(f"{word} is a list of values", "a sweep has one directory")
        shared += choices if len(choices) == 1 else []
    return shared


def _is_override(word: str) -> bool:
    """Whether a word is an override of the config, not a flag or a key of the launch."""
    return word[:1] != "-" and key_of(word) not in names_of(LaunchConfig)


def _subdirectory(name: str | None) -> str | None:
    """The directory of a job inside its sweep, as hydra.sweep.subdir names it. ConfigError."""
    if name is None:
        return None
    path = Path(name)
    if path.is_absolute() or {*path.parts} & {".", ".."}:
        raise ConfigError(
            f"hydra.sweep.subdir={sanitized(name)} lies outside the sweep", "use a plain name"
        )
    if any(len(part.encode()) > MAX_NAME_BYTES for part in path.parts):
        raise ConfigError(
            f"hydra.sweep.subdir={sanitized(name, 60)} is too long for the name of a directory",
            f"use at most {MAX_NAME_BYTES} bytes",
        )
    return name


def _create(sweep: Sweep, named: str | None, exist_ok: bool) -> DirectoryLock:
    """Claim the directory of a sweep and write its manifest. Raises ConfigError."""
    check = partial(check_new_sweep, sweep)
    with claim_directory(named, sweep.directory.parent, check, exist_ok) as lock:
        sweep.directory = lock.directory
        sweep.write()
    return lock


def _check_different(sweep: Sweep) -> None:
    """Raises ConfigError where hydra.sweep.subdir names one directory for two jobs."""
    numbers: dict[str, int] = {}
    for number in range(len(sweep.jobs)):
        name = sweep.name(number)
        if numbers.setdefault(name, number) != number:
            raise ConfigError(
                f"hydra.sweep.subdir names {sanitized(name)} for jobs {numbers[name]} and {number}",
                "write ${hydra.job.num} into it",
            )


def check_new_sweep(sweep: Sweep, directory: Path) -> None:
    """Raises ConfigError unless every file that a sweep writes in a directory is new."""
    if os.path.lexists(directory / MANIFEST):
        hint = f"name another out=, or resume it: rlgames resume {directory}"
        raise ConfigError(f"{sanitized(directory)} already holds a sweep", hint)
    if any((directory / "checkpoints").glob("*.safetensors")):
        raise ConfigError(f"{sanitized(directory)} already holds a run", "name another out=")
    jobs = (sweep.name(number) for number in range(len(sweep.jobs)))
    for name in (*SWEEP_FILES, *NEW_FILES, *jobs):
        if os.path.lexists(directory / name):
            shown = sanitized(directory / name)
            raise ConfigError(f"{shown} exists, and a sweep would write there", "name another out=")


def resume_sweep(directory: Path, words: list[str], watch: Watch) -> int:
    """Run the unfinished jobs of a sweep with the launcher that the words name; the exit code.

    Raises ConfigError and Interrupted.
    """
    launch, others = split(LaunchConfig, words)
    sweep_words, own, rest = _split(others)
    trials = [word for word in sweep_words if word.startswith("hparams_search.trials=")]
    launcher = [word for word in own if word.startswith(LAUNCHER_KEYS)]
    allowed = (*launcher, *trials, *(word for word in rest if word.startswith(OPTIONS)))
    for word in words:
        if word not in allowed and key_of(word) != "dry_run":
            hint = "only hparams_search.trials= can change"
            raise ConfigError(f"{word} cannot change the jobs of a sweep", hint)
    for word in launcher:
        check_hydra_word(word, is_sweep=True)
    cfg = load_config(SweepConfig, [*(["hparams_search=tpe"] if trials else []), *trials, *rest])
    sweep = Sweep.read(directory)
    if trials:
        if sweep.search is None:
            raise ConfigError(f"{trials[0]} needs a search, and {directory} is a sweep", "omit it")
        if cfg.hparams_search.trials < len(sweep.jobs):
            error = f"{trials[0]} is too few: {len(sweep.jobs)} were already proposed"
            raise ConfigError(error, "omit it")
        sweep.search["trials"] = cfg.hparams_search.trials
    launchers.check_launcher(launcher)
    for config in [sweep.jobs[number].config for number in sweep.unfinished]:
        needed = config.get("plugins") or []
        if config and needed != cfg.plugins:
            command = command_for_run("resume", directory, needed)
            hint = f"name them yourself if you trust them: {command}"
            raise ConfigError(f"this sweep needs plugins={as_typed(needed)}", hint)
    if launch.dry_run:
        return _print_plan(sweep)
    # A launcher receives only typed words, because some launchers run commands.
    sweep.launcher = launcher
    lock = lock_directory(directory)
    sweep.jobs = Sweep.read(directory).jobs  # another process may have added jobs to a search
    return _run(sweep, lock, rest, watch)


def _run(sweep: Sweep, lock: DirectoryLock, words: list[str], watch: Watch) -> int:
    options = job_options(words)
    with sweep.owned(lock) as interrupts:
        if sweep.search is None:
            with watch(sweep):
                sweep.launch(sweep.unfinished, options, interrupts)
        else:
            from rlgames.sweeps.hparam_search import Search

            search = Search(sweep)
            with watch(sweep):
                search.run(options, interrupts)
            search.print_best()
    return sweep.report()


def job_options(words: Sequence[str]) -> list[str]:
    """The words that the process of a job gets: the folders of options, and the plugins."""
    folders, rest = split_folders(words)
    modules = [word for word in rest if word.startswith("plugins=")]
    return [*(f"--config-dir={folder}" for folder in folders), *modules]


def _print_plan(sweep: Sweep) -> int:
    sweep.print_unfinished()
    if sweep.search is not None:
        more = max(0, sweep.search["trials"] - len(sweep.jobs))
        space = " ".join(sweep.search["space"])
        print(f"{more} more trials, by {sweep.search['objective']}, over {space}")
    return 0


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words for the sweep, Hydra's own, and those for the jobs."""
    own = [word for word in words if is_hydra_word(word)]
    for_sweep = [word for word in words if is_sweep_word(word)]
    return for_sweep, own, [word for word in words if word not in (*own, *for_sweep)]


def _space(preset: list[str], words: list[str], grammar: Grammar) -> dict[str, str]:
    """The search space, by key: the preset's ranges, and all words with several values.

    A word with a single value fixes its key.
    """
    typed = {key_of(word): word for word in words}
    ranges = {key_of(word): word for word in preset}
    space = {name: word for name, word in ranges.items() if name not in typed}
    space |= {name: word for name, word in typed.items() if grammar.is_range(word)}
    if not space:
        raise ConfigError("the search space is empty", "add a range, as in lr=interval(0.001,0.01)")
    return space
