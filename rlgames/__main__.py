"""`rlgames` and `python -m rlgames`: the command line, and Ctrl-C while it is imported."""

import os
import sys

from rlgames.core.processes import stop_with_parent
from rlgames.core.signals import exit_on_interrupted_import


def main() -> None:
    if "TORCHELASTIC_RUN_ID" in os.environ:
        stop_with_parent()  # now, as torchrun may be killed during the imports
    with exit_on_interrupted_import(lambda: print("rlgames: interrupted", file=sys.stderr)):
        from rlgames import app
    app.main()


if __name__ == "__main__":
    main()
