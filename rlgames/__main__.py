"""`python -m rlgames`."""

from rlgames.cli import main

main()
