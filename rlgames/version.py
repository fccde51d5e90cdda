"""The version of rlgames."""

__version__ = "0.2.0"
