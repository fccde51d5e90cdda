"""`rlgames train -m` and `rlgames resume SWEEP`."""

from __future__ import annotations

from pathlib import Path

from rlgames.config.command_schemas import SWEEP, TRAIN
from rlgames.config.compose import load_config, parse_overrides, to_plain
from rlgames.core.errors import ConfigError
from rlgames.runs.directory import make_run_directory
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import MANIFEST, Job, Sweep
from rlgames.training.components import check_components


def sweep_command(words: list[str]) -> int:
    """Check every job, then run them all; the exit code.

    Raises ConfigError before anything is written, and Interrupted.
    """
    own, launcher, rest = _apart(words)
    cfg = load_config("sweep", own)
    launchers.check_launcher(launcher)
    out = [str(parse_overrides([word])[0].value()) for word in rest if word.startswith("out=")]
    rest = [word for word in rest if not word.startswith("out=")]
    directory = Path(out[-1]) if out else None
    if directory and (directory / "run.json").exists():
        raise ConfigError(f"{directory} already holds a run", "name another out=")
    if directory and (directory / MANIFEST).exists():
        hint = f"name another out=, or go on with it: rlgames resume {directory}"
        raise ConfigError(f"{directory} already holds a sweep", hint)
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
            raise ConfigError("objective= needs something to search", "as in hparams_search=tpe")
        for overrides, job in launchers.load_sweep("train", rest):
            check_components(job)
            sweep.jobs.append(Job(overrides, to_plain(job)))
    if cfg.dry_run:
        return _listed(sweep)
    sweep.directory = directory or make_run_directory(Path("outputs") / "sweeps")
    sweep.directory.mkdir(parents=True, exist_ok=True)
    sweep.write()
    return _run(sweep, rest)


def resume_sweep(directory: Path, words: list[str]) -> int:
    """Run what is not done of a sweep, by the launcher that the words name; the exit code.

    Raises ConfigError and Interrupted.
    """
    own, launcher, rest = _apart(words)
    if any(not word.startswith("plugins=") for word in rest):
        raise ConfigError(f"{rest[0]} has no place beside a sweep", "its jobs are as they were")
    cfg = load_config("sweep", [*own, *rest])
    sweep = Sweep.read(directory)
    if "hparams_search" in cfg or cfg.objective is not None:
        raise ConfigError("a sweep searches as it began", "name neither again")
    launchers.check_launcher(launcher)
    for number in sweep.left:
        needed = sweep.jobs[number].config.get("plugins") or []
        if needed != list(cfg.plugins):
            listed = f"plugins=[{','.join(map(str, needed))}]"
            raise ConfigError(
                f"this sweep needs {listed}",
                f"name them yourself if you trust them: rlgames resume {directory} {listed}",
            )
    if cfg.dry_run:
        return _listed(sweep)
    # Only what is typed is ever handed to a launcher, some of which run commands.
    sweep.launcher = launcher
    return _run(sweep, rest)


def _run(sweep: Sweep, words: list[str]) -> int:
    options = [word for word in words if word.startswith("plugins=")]
    with sweep.owned() as interrupts:
        if sweep.search is None:
            sweep.launch(sweep.left, options, interrupts)
        else:
            from rlgames.sweeps.hparam_search import Search

            search = Search(sweep)
            search.run(options, interrupts)
            search.tell()
    return sweep.tell()


def _listed(sweep: Sweep) -> int:
    sweep.list_left()
    if sweep.search is not None:
        more = sweep.search["trials"] - len(sweep.jobs)
        space = " ".join(sweep.search["space"])
        print(f"{more} trials to come, by {sweep.search['objective']}, over {space}")
    return 0


def _apart(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words for the sweep, for Hydra's launcher, and for the jobs."""
    own: list[str] = []
    launcher: list[str] = []
    rest: list[str] = []
    for word in words:
        name = word.partition("=")[0]
        if name.startswith(("hydra/launcher", "hydra.launcher.")):
            launcher.append(word)
        elif name.startswith(("hydra.", "hydra/", "+hydra", "~hydra")):
            raise ConfigError(
                f"{word} has no place here", "of Hydra's own there is hydra/launcher= and its keys"
            )
        elif name.split(".")[0] in SWEEP.key_names - TRAIN.key_names:
            own.append(word)
        else:
            rest.append(word)
    return own, launcher, rest


def _space(preset: list[str], words: list[str]) -> dict[str, str]:
    """What to search over, by key: the preset's, and all words that name several values; a word
    that names one fixes its key."""
    typed = {word.partition("=")[0]: word for word in words}
    space = {word.partition("=")[0]: word for word in preset}
    found = {name: word for name, word in space.items() if name not in typed}
    found |= {name: word for name, word in typed.items() if launchers.is_sweep(word)}
    if not found:
        raise ConfigError("there is nothing to search over", "as in: lr=interval(0.001,0.01)")
    return found
