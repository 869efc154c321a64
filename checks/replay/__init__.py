"""Replays the events of a run, so that rules and tools know its state at any moment."""
