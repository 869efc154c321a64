"""Writes the sections of a campaign file from a plan; the inverse of the readers."""
