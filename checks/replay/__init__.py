"""The state of a cluster at any moment of a run, replayed once from its events."""
