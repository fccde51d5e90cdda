"""The version, which the build reads: a checkout on PYTHONPATH has no metadata to ask."""

__version__ = "0.2.0"
