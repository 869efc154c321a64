"""Narrates recorded runs: as timelines, as diffs, and record by record."""
