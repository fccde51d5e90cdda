"""Makes policies, players and agents from configs and checkpoints."""
