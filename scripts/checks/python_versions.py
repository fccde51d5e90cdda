"""Runs the quick tests on Debian's newest Pythons, in a small system in a folder.

It needs root, Debian's mmdebstrap and the archives of `make dist`. Debian's mirror is the one that
apt uses on this machine, and packages come from where pip finds them here.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SUITE = "sid"
FOLDER = Path("build/pythons")
"""The system: removed by make clean, otherwise used again."""

MOUNTS = """set -eu
cd {root}
mount -t proc proc proc
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
mount --bind dev/pts/ptmx dev/ptmx
"""
"""Of a namespace that ends with its process, and the mounts with it."""

SMOKE = ["game=tictactoe", "games=400", "batch=50"]


def main() -> int:
    """Print the result of each Python. Returns 1 if anything failed, 2 if something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=["3.13", "3.14"])
    parser.add_argument("--tests", default="", help="words for pytest, instead of all quick tests")
    chosen = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        print("needs root and mmdebstrap: sudo apt-get install mmdebstrap", file=sys.stderr)
        return 2
    root = FOLDER.absolute()
    if not (root / "etc").exists():
        bootstrap(root, chosen.versions)
    folders = pip_settings(root)
    results = {name: tested(root, name, folders, chosen.tests) for name in chosen.versions}
    print()
    for name, lines in results.items():
        print(f"Python {name}: {lines[-1]}", *lines[:-1], sep="\n  ")
    return int(any(re.search(r"failed|error", lines[-1]) for lines in results.values()))


def bootstrap(root: Path, versions: list[str]) -> None:
    """Install the newest Debian with these Pythons into a folder."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"]
    mirrors = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    if not mirrors:
        raise SystemExit("apt has no list of Debian's packages: run apt-get update first")
    words = ["apt-config", "dump"]
    settings = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    # A proxy, for example. The list of a mirror may be older than Debian allows.
    kept = [line for line in settings if re.match(r"Acquire::(https?|Check-Date)\b", line)]
    options = [f"--aptopt={line}" for line in (*kept, 'Acquire::Check-Valid-Until "false";')]
    packages = ",".join(["ca-certificates", "git", *(f"python{name}-venv" for name in versions)])
    root.parent.mkdir(exist_ok=True)
    words = ["mmdebstrap", "--variant=minbase", *options, f"--include={packages}"]
    subprocess.run([*words, SUITE, root, mirrors[0]], check=True)


def pip_settings(root: Path) -> list[Path]:
    """Give the system pip's settings and the files that they name. Returns the folders that they
    name, to be mounted."""
    words = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(:env:|global|install)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    found.sort(key=lambda each: each[0] == ":env:")  # variables come before files
    settings = {name: value for _, name, value in found}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    (root / "etc" / "pip.conf").write_text("\n".join(["[global]", *lines, ""]))
    folders = []
    for word in " ".join(settings.values()).split():
        path = Path(word.removeprefix("file://"))
        if path.is_absolute() and path.is_file():
            (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to("/"))
        elif path.is_absolute() and path.is_dir():
            # The pages of an index lead to files beside it.
            folders.append(path.parent if word.startswith("file://") else path)
    return folders


def tested(root: Path, version: str, folders: list[Path], tests: str) -> list[str]:
    """Install the wheel, train with it, and run the tests of the source archive. Returns what
    failed and, last, a summary."""
    (archive,), (wheel,) = Path("dist").glob("*.tar.gz"), Path("dist").glob("*.whl")
    source = root / "source"
    for path in source.rglob("*"):
        if path.is_file() and path.parent.name != "__pycache__":  # with the compiled kernels
            path.unlink()
    shutil.unpack_archive(archive, source, filter="data")
    shutil.copy(wheel, source)
    venv, here = f"/venv{version}", f"/source/{archive.name.removesuffix('.tar.gz')}"
    python = f"{venv}/bin/python"
    package = f"rlgames-lab[dev] @ file:///source/{wheel.name}"
    words = tests or "-n 2 --dist worksteal"
    steps = [
        f"[ -e {venv} ] || python{version} -m venv {venv}",
        f"{python} -m pip install -qq -c {here}/constraints.txt {shlex.quote(package)}",
        f"{python} -m pip install -qq --no-deps --force-reinstall /source/{wheel.name}",
        f"cd /source && rm -rf run && {venv}/bin/rlgames train {shlex.join(SMOKE)} out=run",
        f"cd {here} && {python} -m pytest {words}",
    ]
    output: list[str] = []
    for step in steps:
        output, code = inside(root, folders, step)
        if code:
            break
    failed = [line for line in output if re.match(r"(FAILED|ERROR) ", line)]
    ends = [line for line in output if re.search(r"\d+ (passed|failed|errors?)\b.* in ", line)]
    return [*failed, ends[-1].strip("= ") if ends else f"error: {step}"]


def inside(root: Path, folders: list[Path], command: str) -> tuple[list[str], int]:
    """Run a command in the system, and show what it prints. Returns the lines and the code."""
    mounts = MOUNTS.format(root=shlex.quote(str(root)))
    for folder in map(str, folders):
        place = shlex.quote(folder.removeprefix("/"))
        mounts += f"mkdir -p {place}\nmount --bind {shlex.quote(folder)} {place}\n"
    own = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin", "TMPDIR": "/tmp"}
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "PY"))}
    print(f"$ {command}", flush=True)
    script = f"{mounts}exec chroot . sh -c {shlex.quote(command)}"
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    process = subprocess.Popen(
        words, env=kept | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    return lines, process.wait()


if __name__ == "__main__":
    sys.exit(main())
