"""`rlgames` and `python -m rlgames`: the command line, and Ctrl-C while it is imported."""

import sys

from rlgames.core.signals import INTERRUPTED, exit_on_interrupted_import, exit_without_cleanup


def main() -> None:
    with exit_on_interrupted_import(lambda: print("rlgames: interrupted", file=sys.stderr)):
        from rlgames.commands import app
    try:
        app.main()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            exit_without_cleanup(INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
