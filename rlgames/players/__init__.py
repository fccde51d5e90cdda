"""Everything that chooses actions for a seat."""
