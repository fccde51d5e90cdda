"""Configs: what can be chosen and typed, composed by Hydra and checked."""
