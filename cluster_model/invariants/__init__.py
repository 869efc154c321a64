"""Checks invariants of the cluster while it runs."""
