"""Declares the rare states that a run may reach, and counts how often a run reached each."""
