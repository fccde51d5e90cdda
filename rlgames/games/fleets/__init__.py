"""Hidden fleets: layouts of ships, where they can be, and games of shots at them."""
