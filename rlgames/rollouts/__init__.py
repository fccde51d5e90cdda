"""Games played, recorded and read back."""
