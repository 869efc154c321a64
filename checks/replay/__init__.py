"""Replays the events of a run into the state of its cluster at any moment."""
