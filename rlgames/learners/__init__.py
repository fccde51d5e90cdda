"""Learning algorithms: update a policy from trajectories."""
