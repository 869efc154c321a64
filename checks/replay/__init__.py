"""The state of a cluster at any moment of a run, replayed from its events: one replay, for everything that asks."""
