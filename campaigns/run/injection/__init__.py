"""Faults as they strike: when, which brokers, and how many at once."""
