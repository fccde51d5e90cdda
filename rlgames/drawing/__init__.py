"""Positions and figures as a person sees them: on a terminal and as pictures."""
