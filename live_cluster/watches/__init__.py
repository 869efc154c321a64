"""Threads that observe real brokers, and the observed state."""
