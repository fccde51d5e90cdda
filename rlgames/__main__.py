"""`rlgames` and `python -m rlgames`: the command line, and Ctrl-C while it is imported."""

import sys

from rlgames.interrupts import out_of_imports


def main() -> None:
    with out_of_imports(lambda: print("rlgames: interrupted", file=sys.stderr)):
        from rlgames import cli
    cli.main()


if __name__ == "__main__":
    main()
