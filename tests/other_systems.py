"""Makes a process on Linux as poor as one on Windows: run by tests, in a process of its own.

What cannot be imitated: sys.platform and os.name, paths with drives and backslashes, file systems
that ignore case, open files that cannot be replaced, locks by msvcrt, and compiled code.
"""

import importlib
import mmap
import multiprocessing
import os
import pkgutil
import re
import select
import signal
import sys
import tempfile
import warnings
from contextlib import suppress

LIBRARIES = ["filelock", "hydra", "numba", "rich", "torch", "PIL.GifImagePlugin"]
LIBRARIES += ["tensorboard.summary.writer.event_file_writer"]
EXTRAS = ["gymnasium", "matplotlib", "pandas", "pettingzoo", "ray", "starlette", "uvicorn"]
"""They look which system it is, and take what it has: imported before that is taken away."""

POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}

WINDOWS_SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL"}
WINDOWS_SIGNALS |= {"SIG_IGN"}

POSIX_NAMES = {
    mmap: "MADV_DONTNEED MADV_HUGEPAGE",
    os: """O_CLOEXEC O_DIRECTORY O_DSYNC O_NOFOLLOW O_NONBLOCK O_SYNC chown chroot fchmod fchown
        fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp getpriority getsid getuid
        initgroups killpg lchown mkfifo mknod nice openpty posix_fadvise posix_fallocate posix_spawn
        pread pwrite register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile
        set_blocking setsid statvfs sync sysconf ttyname uname wait wait3 wait4""",
    select: "POLLHUP epoll poll",
    signal: """alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending
        sigtimedwait sigwait sigwaitinfo""",
}

BAD_NAME = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ](/|$)')


def look(event, args):
    """An audit hook: there is no /proc and no /dev/shm, a directory cannot be opened, and no file
    can have a name that Windows does not allow."""
    if event not in ("open", "os.mkdir", "os.rename"):
        return
    for path in args[: 2 if event == "os.rename" else 1]:
        if not isinstance(path, str | bytes | os.PathLike):
            continue
        name = os.fsdecode(path)
        if name.startswith(("/proc", "/dev/shm")):
            raise FileNotFoundError(2, "No such file or directory", name)
        is_new = event != "open" or (args[2] or 0) & os.O_CREAT
        if is_new and BAD_NAME.search(os.path.abspath(name)):
            raise OSError(22, "Invalid argument", name)
        if event == "open" and args[1] is None and os.path.isdir(name):  # by os.open
            raise PermissionError(13, "Permission denied", name)


class Missing:
    """An importer that says that there is no such module."""

    def find_spec(self, name, path=None, target=None):
        if name in POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def as_on_windows(extras=()):
    """Take away what Windows lacks. extras: libraries to be imported before, if they are there."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in extras:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in [*sys.modules]:
        if name in POSIX_MODULES or name.partition(".")[0] == "filelock":
            del sys.modules[name]
    sys.meta_path.insert(0, Missing())
    for module, names in POSIX_NAMES.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in dir(signal):
        if name.startswith("SIG") and name.isupper() and name not in WINDOWS_SIGNALS:
            delattr(signal, name)
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile
    multiprocessing.set_start_method("spawn", force=True)
    # Text has another encoding there.
    warnings.filterwarnings("error", category=EncodingWarning, module="rlgames")
    sys.addaudithook(look)


def import_everything():
    """Import every module of the package."""
    import rlgames

    for found in pkgutil.walk_packages(rlgames.__path__, "rlgames."):
        if found.name != "rlgames.__main__":
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise


def main(*commands):
    """Run commands of rlgames, one after the other."""
    from rlgames.commands import app

    for words in commands:
        sys.argv = ["rlgames", *words]
        print("$", *sys.argv, flush=True)
        try:
            app.main()
        except SystemExit as ended:
            if ended.code:
                raise
