"""Search around a player."""
