"""Loggers: where the config, metrics, pictures and results of a run go."""
