"""Reads the sections of a campaign file into a plan, and checks that they fit together."""
