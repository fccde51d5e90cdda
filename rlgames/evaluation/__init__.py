"""How well a player plays: estimates, cross tables, Elo."""
