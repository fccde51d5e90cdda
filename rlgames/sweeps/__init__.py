"""Sweeps and hyperparameter searches, a process per job."""
