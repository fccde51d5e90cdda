"""`rlgames` and `python -m rlgames`: the command line, and Ctrl-C while it is imported."""

import sys

from rlgames.core.signals import exit_on_interrupted_import


def main() -> None:
    with exit_on_interrupted_import(lambda: print("rlgames: interrupted", file=sys.stderr)):
        from rlgames.commands import app
    app.main()


if __name__ == "__main__":
    main()
