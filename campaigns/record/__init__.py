"""Writes the records of runs (files and reports), and reads them back."""
