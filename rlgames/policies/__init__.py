"""Policies: networks and value functions that score the actions of a state."""
