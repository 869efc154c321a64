"""Executes many runs at once, on all cores of a machine."""
