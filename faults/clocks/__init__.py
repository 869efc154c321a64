"""Faults of clocks."""
