"""Repeats a served run from its recording."""
