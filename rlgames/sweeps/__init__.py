"""Sweeps and hyper-parameter searches, a process per job."""
