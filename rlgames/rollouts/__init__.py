"""Playing, recording and checking games."""
