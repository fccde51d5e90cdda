"""Positions and plots for people: on a terminal and as pictures."""
