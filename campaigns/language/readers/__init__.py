"""Reads each section of a campaign file into a plan, and checks that all fits together."""
