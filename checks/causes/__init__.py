"""Explains findings: the chain of events that led to each, its cause, and what prevents it."""
