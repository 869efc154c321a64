"""Renders results for people, with Rich."""
