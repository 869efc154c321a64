"""A module for each command, with its session."""
