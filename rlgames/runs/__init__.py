"""A run's files: checkpoints, metrics, TensorBoard, and how they are read."""
