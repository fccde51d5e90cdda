"""`rlgames train -m` and `rlgames resume SWEEP`."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config import catalogue
from rlgames.config.catalogue import as_typed, conf_dir, quoted
from rlgames.config.checks import to_plain, wrong_interpolation
from rlgames.config.compose import is_sweep, load_composition, load_config, load_shared
from rlgames.config.hydra_job import HydraJob
from rlgames.config.hydra_keys import file_settings, is_hydra_word, job_words
from rlgames.config.launch import chosen_directory, is_sweep_key, split_launch
from rlgames.config.overrides import parse_overrides
from rlgames.config.training_schemas import LaunchConfig
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.directory import (
    NEW_FILES,
    SWEEP_FILES,
    make_run_directory,
    make_sibling,
    remove_new_directories,
)
from rlgames.runs.hyperparameters import MANIFEST
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import MAX_BATCH_SIZE, Job, Sweep
from rlgames.training.components import check_components

LAUNCHER_KEYS = ("hydra/launcher", "hydra.launcher.", "hydra/hydra_logging", "hydra.hydra_logging")

Watch = Callable[[Sweep], AbstractContextManager[object]]
"""Shows the progress of a sweep while its jobs run."""


def sweep_command(words: list[str], keys: LaunchConfig, watch: Watch) -> int:
    """Check all jobs, then run them; the exit code. keys: those that say how it starts.

    Raises ConfigError before anything is written, and Interrupted.
    """
    sweep_words, typed, rest = _split(words)
    cfg = load_config("sweep", sweep_words)
    launchers.check_launcher([word for word in typed if _is_launcher(word)])
    shared = load_shared([*typed, *rest])
    if shared.composed.hydra.mode is not None and not shared.is_multirun:
        raise ConfigError("hydra.mode=RUN and -m contradict each other", "omit one of them")
    settings = [*file_settings(shared.composed, shared.bases)] if shared.bases else []
    launcher = _launcher_words(shared.composed, typed)
    rest = [*_params(shared.composed), *rest]
    out = _directory([word for word in rest if word.startswith("out=")], shared.composed)
    rest = [word for word in rest if not word.startswith("out=")]
    sweep = Sweep(Path("outputs") / "sweeps" / "…", words, launcher)
    if "hparams_search" in cfg:
        from rlgames.sweeps import hparam_search

        hparam_search.import_optuna()
        space = _space(list(cfg.hparams_search.space), rest)
        cfg.hparams_search.space = list(space.values())
        base = [word for word in rest if word.partition("=")[0] not in space]
        first = load_composition("train", [*typed, *base], True)
        jobs = [HydraJob(first.composed, first.typed)]
        if jobs[0].job_directory(0) is not None:
            raise ConfigError("hydra.sweep.subdir= does not fit hparams_search=", "omit one")
        sweep.search = hparam_search.plan_search(cfg.hparams_search, cfg.objective, first.config)
    else:
        if cfg.objective is not None:
            raise ConfigError("objective= needs a search", "add hparams_search=tpe")
        jobs = []
        for number, (overrides, composition) in enumerate(launchers.load_sweep(rest, typed)):
            check_components(composition.config)
            jobs.append(HydraJob(composition.composed, overrides))
            directory = jobs[-1].job_directory(number)
            sweep.jobs.append(Job(overrides, to_plain(composition.config), directory))
        _check_different(sweep)
    named = chosen_directory(out, jobs[0].sweep_directory, "hydra.sweep.dir")
    parent = Path("outputs") / "sweeps"
    sweep.directory = Path(named) if named else parent / "…"
    if keys.dry_run:
        return _print_plan(sweep)
    _create(sweep, named is not None, keys.exist_ok)
    return _run(sweep, [*rest, *job_words(typed, settings)], watch)


def _directory(words: list[str], composed: DictConfig) -> str | None:
    """What the last out= names, with its interpolations resolved; None without one, and for null.

    Raises ConfigError for an interpolation that cannot be resolved.
    """
    if not words:
        return None
    composed = copy.deepcopy(composed)
    try:
        OmegaConf.update(composed, "out", parse_overrides(words[-1:])[0].value())
        return None if composed.out is None else str(composed.out)
    except OmegaConfBaseException as error:
        raise wrong_interpolation(error) from None


def _create(sweep: Sweep, is_named: bool, exist_ok: bool) -> None:
    """Create the directory of a sweep and its manifest. Raises ConfigError."""
    created: list[Path] = []
    try:
        if is_named and exist_ok:
            sweep.directory = make_sibling(sweep.directory, lambda _: _check_new_sweep(sweep))
            created = [sweep.directory]
        elif is_named:
            _check_new_sweep(sweep)
            created = storage.make_directory(sweep.directory)
        else:
            created = [make_run_directory(sweep.directory.parent)]
            sweep.directory = created[0]
        sweep.write()
    except OSError as error:
        remove_new_directories(created)
        path = sanitized(error.filename or sweep.directory)
        hint = "choose another out="
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint) from None


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


def _params(composed: DictConfig) -> list[str]:
    """The overrides in hydra.sweeper.params."""
    params = composed.hydra.sweeper.get("params")
    return [f"{name}={as_typed(value)}" for name, value in (params or {}).items()]


def _launcher_words(composed: DictConfig, typed: list[str]) -> list[str]:
    """The words for Hydra's launcher: those that were typed, and the choice of a file."""
    words = [word for word in typed if _is_launcher(word)]
    choice = composed.hydra.runtime.choices["hydra/launcher"]
    if choice != "basic" and not any(word.startswith("hydra/launcher=") for word in words):
        words.append(f"hydra/launcher={choice}")
    size = composed.hydra.sweeper.get("max_batch_size")
    return words + ([] if size is None else [f"{MAX_BATCH_SIZE}={size}"])


def _is_launcher(word: str) -> bool:
    """Whether an override is for Hydra's launcher: its choice, its settings, its logging."""
    return word.lstrip("+").startswith(LAUNCHER_KEYS)


def _check_new_sweep(sweep: Sweep) -> None:
    """Raises ConfigError unless every file that a sweep writes is new."""
    directory = sweep.directory
    if os.path.lexists(directory / MANIFEST):
        hint = f"choose another out=, or resume it: rlgames resume {directory}"
        raise ConfigError(f"{sanitized(directory)} already holds a sweep", hint)
    if any((directory / "checkpoints").glob("*.safetensors")):
        raise ConfigError(f"{sanitized(directory)} already holds a run", "choose another out=")
    for name in (*SWEEP_FILES, *NEW_FILES):
        if os.path.lexists(directory / name):
            shown = sanitized(directory / name)
            raise ConfigError(
                f"{shown} exists, and a sweep needs a new directory", "choose another out="
            )

    for number in range(len(sweep.jobs)):
        if os.path.lexists(sweep.path(number)):
            shown = sanitized(sweep.path(number))
            raise ConfigError(f"{shown} exists, and a job would write there", "choose another out=")


def resume_sweep(directory: Path, words: list[str], watch: Watch) -> int:
    """Run the unfinished jobs of a sweep with the launcher that the words name; the exit code.

    Raises ConfigError and Interrupted.
    """
    keys, words = split_launch(words)
    sweep_words, typed, rest = _split(words)
    launcher = [word for word in typed if _is_launcher(word)]
    shared = job_words(typed, ())
    others = [word for word in typed if word not in (*launcher, *shared)]
    others += [word for word in rest if not word.startswith("plugins=")]
    if others or keys.exist_ok:
        word = [*others, "exist_ok=true"][0]
        raise ConfigError(f"{word} cannot change the jobs of a sweep", "omit it")
    load_shared(typed)  # which checks them
    cfg = load_config("sweep", [*sweep_words, *rest])
    sweep = Sweep.read(directory)
    if "hparams_search" in cfg or cfg.objective is not None:
        raise ConfigError("a resumed sweep keeps its search", "omit hparams_search= and objective=")
    launchers.check_launcher(launcher)
    for number in sweep.unfinished:
        needed = sweep.jobs[number].config.get("plugins") or []
        if needed != list(cfg.plugins):
            listed = f"plugins=[{','.join(map(str, needed))}]"
            raise ConfigError(
                f"this sweep needs {listed}",
                f"name them yourself if you trust them: rlgames resume {directory} {listed}",
            )
    if keys.dry_run:
        return _print_plan(sweep)
    # A launcher receives only typed words, because some launchers run commands.
    sweep.launcher = launcher
    return _run(sweep, [*rest, *shared], watch)


def _run(sweep: Sweep, words: list[str], watch: Watch) -> int:
    options = [word for word in words if word.startswith("plugins=") or is_hydra_word(word)]
    folders = [quoted(str(folder)) for folder in catalogue.FOLDERS if folder != conf_dir()]
    options += [f"hydra.searchpath=[{','.join(folders)}]"] * bool(folders)
    with sweep.owned() as interrupts:
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


def _print_plan(sweep: Sweep) -> int:
    sweep.print_unfinished()
    if sweep.search is not None:
        more = sweep.search["trials"] - len(sweep.jobs)
        space = " ".join(sweep.search["space"])
        print(f"{more} more trials, by {sweep.search['objective']}, over {space}")
    return 0


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words for the sweep, Hydra's own, and those for the jobs."""
    sweep_words: list[str] = []
    own: list[str] = []
    rest: list[str] = []
    for word in words:
        if is_hydra_word(word):
            own.append(word)
        elif is_sweep_key(word):
            sweep_words.append(word)
        else:
            rest.append(word)
    return sweep_words, own, rest


def _space(preset: list[str], words: list[str]) -> dict[str, str]:
    """The search space, by key: the preset's ranges, and all words with several values.

    A word with a single value fixes its key.
    """
    typed = {word.partition("=")[0]: word for word in words}
    ranges = {word.partition("=")[0]: word for word in preset}
    space = {name: word for name, word in ranges.items() if name not in typed}
    space |= {name: word for name, word in typed.items() if is_sweep(word)}
    if not space:
        raise ConfigError("the search space is empty", "add a range, as in lr=interval(0.001,0.01)")
    return space
