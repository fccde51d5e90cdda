"""Exact solvers: values of games, positions and actions."""
