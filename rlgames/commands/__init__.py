"""The functions of the commands; the command line calls them and prints their results."""
