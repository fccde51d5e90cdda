"""Whoever chooses an action at a seat."""
