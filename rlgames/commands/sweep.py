"""`rlgames train -m` and `rlgames resume SWEEP`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rlgames.config.checks import to_plain
from rlgames.config.command_schemas import SWEEP, TRAIN
from rlgames.config.compose import load_config
from rlgames.config.overrides import parse_overrides
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.directory import (
    NEW_FILES,
    SWEEP_FILES,
    make_run_directory,
    remove_new_directories,
)
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import MANIFEST, Job, Sweep
from rlgames.training.components import check_components

Watch = Callable[[Sweep], AbstractContextManager[object]]
"""Shows the progress of a sweep while its jobs run."""


def sweep_command(words: list[str], watch: Watch) -> int:
    """Check all jobs, then run them; the exit code.

    Raises ConfigError before anything is written, and Interrupted.
    """
    sweep_words, launcher, rest = _split(words)
    cfg = load_config("sweep", sweep_words)
    launchers.check_launcher(launcher)
    out = [str(parse_overrides([word])[0].value()) for word in rest if word.startswith("out=")]
    rest = [word for word in rest if not word.startswith("out=")]
    directory = Path(out[-1]) if out else None
    if directory:
        _check_new_sweep(directory)
    sweep = Sweep(directory or Path("outputs") / "sweeps" / "…", words, launcher)
    if "hparams_search" in cfg:
        from rlgames.sweeps import hparam_search

        hparam_search.import_optuna()
        space = _space(list(cfg.hparams_search.space), rest)
        cfg.hparams_search.space = list(space.values())
        base = load_config("train", [word for word in rest if word.partition("=")[0] not in space])
        sweep.search = hparam_search.plan_search(cfg.hparams_search, cfg.objective, base)
    else:
        if cfg.objective is not None:
            raise ConfigError("objective= needs a search", "add hparams_search=tpe")
        for overrides, job in launchers.load_sweep("train", rest):
            check_components(job)
            sweep.jobs.append(Job(overrides, to_plain(job)))
    if cfg.dry_run:
        return _print_plan(sweep)
    for number in range(len(sweep.jobs)):
        if directory and os.path.lexists(sweep.path(number)):
            shown = sanitized(sweep.path(number))
            raise ConfigError(f"{shown} exists, and a job would write there", "choose another out=")
    created: list[Path] = []
    try:
        if directory is None:
            created = [make_run_directory(Path("outputs") / "sweeps")]
        else:
            created = storage.make_directory(directory)
        sweep.directory = directory or created[0]
        sweep.write()
    except OSError as error:
        remove_new_directories(created)
        path = sanitized(error.filename or directory or "outputs")
        hint = "choose another out="
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint) from None
    return _run(sweep, rest, watch)


def _check_new_sweep(directory: Path) -> None:
    """Raises ConfigError unless every file that a sweep writes beside its jobs is new."""
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


def resume_sweep(directory: Path, words: list[str], watch: Watch) -> int:
    """Run the unfinished jobs of a sweep with the launcher that the words name; the exit code.

    Raises ConfigError and Interrupted.
    """
    sweep_words, launcher, rest = _split(words)
    if any(not word.startswith("plugins=") for word in rest):
        raise ConfigError(f"{rest[0]} cannot change the jobs of a sweep", "omit it")
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
    if cfg.dry_run:
        return _print_plan(sweep)
    # A launcher receives only typed words, because some launchers run commands.
    sweep.launcher = launcher
    return _run(sweep, rest, watch)


def _run(sweep: Sweep, words: list[str], watch: Watch) -> int:
    options = [word for word in words if word.startswith("plugins=")]
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
    """The words for the sweep, for Hydra's launcher, and for the jobs."""
    sweep_words: list[str] = []
    launcher: list[str] = []
    rest: list[str] = []
    for word in words:
        name = word.partition("=")[0]
        if name.startswith(("hydra/launcher", "hydra.launcher.")):
            launcher.append(word)
        elif name.startswith(("hydra.", "hydra/", "+hydra", "~hydra")):
            raise ConfigError(
                f"{word} is not supported here", "only hydra/launcher= and its keys are"
            )
        elif name.split(".")[0] in SWEEP.key_names - TRAIN.key_names:
            sweep_words.append(word)
        else:
            rest.append(word)
    return sweep_words, launcher, rest


def _space(preset: list[str], words: list[str]) -> dict[str, str]:
    """The search space, by key: the preset's ranges, and all words with several values.

    A word with a single value fixes its key.
    """
    typed = {word.partition("=")[0]: word for word in words}
    ranges = {word.partition("=")[0]: word for word in preset}
    space = {name: word for name, word in ranges.items() if name not in typed}
    space |= {name: word for name, word in typed.items() if launchers.is_sweep(word)}
    if not space:
        raise ConfigError("the search space is empty", "add a range, as in lr=interval(0.001,0.01)")
    return space
