"""The exact optimum, where it can be had."""
