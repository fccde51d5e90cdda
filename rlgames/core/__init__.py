"""What everything else rests on: errors, text, random streams, signals, processes."""
