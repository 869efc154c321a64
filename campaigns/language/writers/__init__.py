"""Writes the sections of a campaign file from a plan. This is the inverse of the readers."""
