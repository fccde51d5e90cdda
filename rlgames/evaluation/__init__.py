"""How well players play: estimates, cross tables, Elo ratings."""
