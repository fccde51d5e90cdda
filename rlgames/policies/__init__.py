"""Networks from an observation to a score for every action, and perhaps a value."""
