"""Checked configs into objects: games, policies, learners, players, agents."""
