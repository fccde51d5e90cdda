"""Rules of games, as pure functions on batches of tensors; nothing here knows of learning."""
