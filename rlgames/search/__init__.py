"""Tree search around a player."""
