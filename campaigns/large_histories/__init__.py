"""Judges histories that are too large for memory, by removing records that no rule needs."""
