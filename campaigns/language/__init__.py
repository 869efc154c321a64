"""Reads, checks and writes campaign files."""
